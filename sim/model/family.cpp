// Fields in the table's order, each a name for the expressions behind it; then the parameters, block by block.
#include "sim/model/family.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/model/model_limits.h"
#include "sim/model/parameter_builder.h"
#include "sim/model/rope.h"

namespace shard::model {
namespace {

/// A whole number as a table writes it: "32000".
std::optional<std::int64_t> constant(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double real_of(std::string_view text) {
  return std::stod(std::string(text));
}

const nlohmann::json& empty_object() {
  static const nlohmann::json empty = nlohmann::json::object();
  return empty;
}

/// The fields of one configuration, by the rows of its table.
class FieldReader {
 public:
  FieldReader(ConfigFields& fields, Model& model, FamilyValues& family)
      : top_(fields), model_(model), family_(family), values_(family.values), lists_(family.lists) {}

  void read(const FieldRow& row) {
    ConfigFields& fields = section(row.section);
    const Keys keys{std::span<const std::string_view>(row.keys)};
    std::int64_t value = 0;
    using Kind = FieldRow::Kind;
    switch (row.kind) {
      case Kind::integer: value = integer(row, fields, keys); break;
      case Kind::count: value = fields.count(keys, evaluate(absent_or_null(row, fields, keys), values_)); break;
      case Kind::flag: value = fields.boolean(keys, evaluate(row.fallback, values_) != 0) ? 1 : 0; break;
      case Kind::real: return real(row, fields, keys);
      case Kind::text: return text(row, fields, keys);
      case Kind::list: return list(row, fields, keys);
      case Kind::computed: value = evaluate(row.fallback, values_); break;
      case Kind::dropout: return fields.dropout(row.keys.front(), real_of(row.fallback));
    }
    values_.set(row.name, value);
    values_.set(std::string(row.name) + "_given", row.kind != Kind::computed && fields.find(keys) != nullptr ? 1 : 0);
    play(row.role, value);
  }
  /// Takes the nested objects' values and faults over.
  void finish() {
    for (auto& [name, fields] : sections_) top_.absorb(std::move(fields));
    sections_.clear();
  }
  [[nodiscard]] float range() const { return range_; }

 private:
  ConfigFields& section(std::string_view name) {
    if (name.empty()) return top_;
    if (const auto known = sections_.find(name); known != sections_.end()) return known->second;
    const nlohmann::json* object = top_.find({name});
    if (object != nullptr && !object->is_object()) {
      top_.malformed(name, std::string("is ") + object->type_name() + ", not an object");
      object = nullptr;
    }
    return sections_.emplace(name, top_.nested(name, object == nullptr ? empty_object() : *object)).first->second;
  }
  static std::string_view absent_or_null(const FieldRow& row, ConfigFields& fields, Keys keys) {
    return !row.if_null.empty() && fields.is_null(keys) ? row.if_null : row.fallback;
  }
  std::int64_t integer(const FieldRow& row, ConfigFields& fields, Keys keys) {
    const std::string_view fallback = absent_or_null(row, fields, keys);
    if (const std::optional<std::int64_t> value = constant(fallback); value && *value > 0)
      return fields.positive(keys, *value);
    return fields.positive_or_derived(keys, evaluate(fallback, values_));
  }
  void real(const FieldRow& row, ConfigFields& fields, Keys keys) {
    if (row.role == "range") {
      range_ = static_cast<float>(fields.non_negative_number(keys, real_of(row.fallback)));
      return;
    }
    const double value = fields.positive_number(keys, real_of(row.fallback));
    values_.set(row.name, fields.is_null(keys) ? 0 : 1);
    if (row.role == "epsilon") model_.epsilon = static_cast<float>(value);
  }
  void text(const FieldRow& row, ConfigFields& fields, Keys keys) {
    const std::string value = fields.text(keys, row.fallback);
    if (row.role == "activation") family_.activation = value;
    for (const std::string_view word : row.words) {
      std::string name(row.name);
      (name += '_') += word;
      values_.set(name, value.starts_with(word) ? 1 : 0);
    }
  }
  void list(const FieldRow& row, ConfigFields& fields, Keys keys) {
    std::vector<std::int64_t> layers = fields.list(keys);
    std::sort(layers.begin(), layers.end());
    lists_[row.name] = std::move(layers);
    values_.set(row.name, 0);
  }
  void play(std::string_view role, std::int64_t value) {
    if (role.empty()) return;
    static constexpr std::pair<std::string_view, bool Model::*> kFlags[] = {
        {"tied", &Model::tied_embeddings}, {"attention_bias", &Model::attention_bias}, {"mlp_bias", &Model::mlp_bias}};
    for (const auto& [name, member] : kFlags)
      if (name == role) model_.*member = value != 0;
    static constexpr std::pair<std::string_view, std::int64_t Model::*> kSizes[] = {
        {"vocabulary", &Model::vocabulary},
        {"hidden", &Model::hidden},
        {"layers", &Model::layers},
        {"heads", &Model::heads},
        {"kv_heads", &Model::kv_heads},
        {"head_dim", &Model::head_dim},
        {"intermediate", &Model::intermediate},
        {"max_sequence", &Model::max_sequence},
        {"window", &Model::window}};
    for (const auto& [name, member] : kSizes)
      if (name == role) model_.*member = value;
  }

  ConfigFields& top_;
  Model& model_;
  FamilyValues& family_;
  Values& values_;
  std::map<std::string_view, std::vector<std::int64_t>>& lists_;
  std::map<std::string_view, ConfigFields> sections_;
  float range_ = 0.02F;
};

/// Parameters, by the rows of the table. What does not depend on the layer is worked out once.
class ParameterWriter {
 public:
  ParameterWriter(ConfigFields& fields, const FamilyValues& family, float range, Model& model)
      : fields_(fields), family_(family), values_(family.values), add_(model), known_(family.table->rows) {
    using Kind = Initialization::Kind;
    const auto layers = static_cast<float>(std::max<std::int64_t>(1, model.layers));
    normal_ = {Kind::normal, range};
    residual_ = {Kind::normal, range / std::sqrt(2.0F * layers)};
  }

  void write(const std::vector<TableRow>& rows, const std::string& prefix) {
    for (const TableRow& row : rows) {
      if (fields_.error() || add_.too_large()) return;
      const Numbers& numbers = numbers_of(row);
      if (!numbers.counts) continue;
      if (row.word == "blocks" || row.word == "repeat")
        repeat(row, numbers, prefix);
      else if (row.word == "when")
        write(row.rows, prefix);
      else if (row.word == "under")
        write(row.rows, prefix + std::string(row.arguments.front()) + ".");
      else
        parameter(row, numbers, prefix + std::string(row.arguments.front()));
    }
  }
  [[nodiscard]] const ParameterBuilder& builder() const { return add_; }

 private:
  struct Numbers {
    bool known = false;
    bool counts = true;
    bool bias = false;
    std::vector<std::int64_t> sizes;
  };

  /// The expressions of a row: a block's count, a parameter's dimensions.
  const Numbers& numbers_of(const TableRow& row) {
    Numbers& numbers = known_[row.number];
    if (numbers.known && !row.per_layer) return numbers;
    numbers = Numbers{};
    numbers.known = true;
    const auto holds = [&](std::string_view condition) { return evaluate(condition, values_) != 0; };
    numbers.counts = (row.only.empty() || holds(row.only)) && (row.word != "when" || holds(row.arguments.front()));
    if (!numbers.counts || row.word == "when" || row.word == "under") return numbers;
    numbers.bias = !row.bias.empty() && holds(row.bias);
    const bool block = row.word == "blocks" || row.word == "repeat";
    for (std::size_t i = block ? 0 : 1; i < (block ? 1 : row.arguments.size()); ++i) {
      const std::int64_t size = evaluate(row.arguments[i], values_);
      numbers.sizes.push_back(size);
      if (block || (size >= 1 && size < kTooLarge)) continue;
      const std::string what = std::string(row.arguments.front()) + " would have ";
      fields_.contradiction(first_name(row.arguments[i]),
                            size < 1 ? what + "a dimension of " + std::to_string(size)
                                     : what + "more than 2^53 elements, the most that is supported");
    }
    return numbers;
  }
  void repeat(const TableRow& row, const Numbers& numbers, const std::string& prefix) {
    const std::int64_t count = numbers.sizes.front();
    const std::string_view key = first_name(row.arguments.front());
    check_layers(fields_, key, count);
    const bool blocks = row.word == "blocks";
    for (std::int64_t i = 0; i < count && !fields_.error() && !add_.too_large(); ++i) {
      if (blocks) {
        enter_layer(family_, i, values_);
        add_.set_block(block_++);
      }
      write(row.rows, prefix + std::string(row.arguments[1]) + "." + std::to_string(i) + ".");
    }
    if (blocks) add_.set_block(-1);
    if (add_.too_many())
      fields_.contradiction(key, "asks for " + std::to_string(count) + " of \"" + std::string(row.arguments[1]) +
                                     "\"; a model of more than " + std::to_string(kMaxTensors) +
                                     " tensors is not supported");
  }
  void parameter(const TableRow& row, const Numbers& numbers, const std::string& name) {
    const Initialization zeros{Initialization::Kind::zeros, 0};
    const Initialization ones{Initialization::Kind::ones, 0};
    const Initialization& drawn = row.residual ? residual_ : normal_;
    const std::vector<std::int64_t>& sizes = numbers.sizes;
    if (fields_.error()) return;
    if (row.word == "tensor") return add_.add(name, sizes, drawn);
    if (row.word == "zeros") return add_.add(name, sizes, zeros);
    if (row.word == "ones") return add_.add(name, sizes, ones);
    const bool norm = row.word == "norm";
    assert(norm || row.word == "linear" || row.word == "conv1d" || row.word == "embedding");
    add_.add(name + ".weight", sizes, norm ? ones : drawn);
    if (numbers.bias) add_.add(name + ".bias", {row.word == "conv1d" ? sizes.back() : sizes.front()}, zeros);
  }

  ConfigFields& fields_;
  const FamilyValues& family_;
  Values values_;
  ParameterBuilder add_;
  Initialization normal_;
  Initialization residual_;
  std::vector<Numbers> known_;
  std::int32_t block_ = 0;
};

/// The key of the field that plays the role.
std::string_view key_of_role(const FamilyTable& table, std::string_view role) {
  for (const FieldRow& row : table.fields)
    if (row.role == role) return row.keys.front();
  return "";
}

void run_checks(const FamilyTable& table, ConfigFields& fields, const Values& values, Model& model) {
  const auto value = [&](std::string_view name) { return NamedSize{name, evaluate(name, values)}; };
  for (const TableRow& row : table.checks) {
    if (!row.only.empty() && evaluate(row.only, values) == 0) continue;
    if (row.word == "layers") {
      check_layers(fields, row.arguments[0], evaluate(row.arguments[0], values));
    } else if (row.word == "divides") {
      check_heads_divide_hidden(fields, value(row.arguments[0]), value(row.arguments[1]));
    } else if (row.word == "most" && value(row.arguments[0]).size > value(row.arguments[1]).size) {
      model.not_simulated =
          Error{Errc::contradiction,
                "is " + std::to_string(value(row.arguments[0]).size) + ", more than the " +
                    std::to_string(value(row.arguments[1]).size) + " of " + std::string(row.arguments[1]),
                fields.where(row.arguments[0]), ""};
    } else if (row.word == "refuse") {
      std::string what = "is set, and";
      for (std::size_t i = 1; i < row.arguments.size(); ++i) (what += ' ') += row.arguments[i];
      fields.contradiction(row.arguments[0], std::move(what));
    }
  }
}

/// Heads that no operator has: the parameters are what they are.
void note_heads(const FamilyTable& table, const ConfigFields& fields, Model& model) {
  const auto refuse = [&](std::string what, std::string help) {
    if (!model.not_simulated)
      model.not_simulated =
          Error{Errc::contradiction, std::move(what), fields.where(key_of_role(table, "kv_heads")), std::move(help)};
  };
  const std::string heads = std::to_string(model.heads);
  if (model.kv_heads > 0 && model.heads % model.kv_heads != 0)
    refuse("is " + std::to_string(model.kv_heads) + ", which does not divide " +
               std::string(key_of_role(table, "heads")) + " " + heads,
           "set it to " + heads + " or a divisor of it");
  if (!table.rope.empty() && model.head_dim % 2 != 0)
    refuse("leads to heads of " + std::to_string(model.head_dim) + "; rotary positions need an even head dimension",
           "");
  if (model.not_simulated && !model.not_trained) model.not_trained = model.not_simulated;
}

/// Is the field's value among those that are trained?
bool trained(const nlohmann::json& value, const std::vector<std::string_view>& values) {
  return std::any_of(values.begin(), values.end(), [&](std::string_view known) {
    if (value.is_string()) return value.get_ref<const std::string&>() == known;
    if (value.is_boolean()) return value.get<bool>() == (known == "true");
    return value.is_number() && value.get<double>() == std::atof(std::string(known).c_str());
  });
}

/// What the values of some fields, or the family as a whole, keep from being simulated or trained.
void note_limits(const FamilyTable& table, ConfigFields& fields, Model& model) {
  const std::string family(table.model_type);
  const auto at_type = [&](std::string what, std::string help) {
    return Error{Errc::contradiction, std::move(what), fields.where("model_type"), std::move(help)};
  };
  if (table.operators.empty())
    model.not_simulated = at_type(
        "is \"" + family + "\", an " + std::string(table.kind) + ": its parameters are known, its operators are not",
        "inspect and chunk search (--forecast no) need none; simulate a decoder");
  if (!table.untrained.empty())
    model.not_trained = at_type(
        "is \"" + family + "\", which is predicted and not trained: " + std::string(table.untrained) + " is missing",
        "use simulate or search; the README of sim/model/families lists what is trained");
  for (const Limit& limit : table.limits) {
    std::optional<Error>& refusal = limit.of_simulation ? model.not_simulated : model.not_trained;
    const nlohmann::json* value = fields.find({limit.key});
    if (refusal || value == nullptr || trained(*value, limit.values)) continue;
    std::string known;
    for (const std::string_view v : limit.values) (known += known.empty() ? "" : ", ") += v;
    refusal =
        Error{Errc::contradiction,
              "is " + ConfigFields::shown(*value) +
                  (limit.of_simulation ? ", which is not simulated; " : ", which is not trained; ") + known + " is",
              fields.where(limit.key), "its parameters are known: inspect"};
    if (!limit.of_simulation)
      refusal->help = "use simulate or search, which take it for " + std::string(limit.values.front());
  }
  if (model.not_simulated && !model.not_trained) model.not_trained = model.not_simulated;
}

}  // namespace

Model simulated_part(Model model) {
  if (!model.described || model.described->table->simulated.empty()) return model;
  const std::vector<std::string_view>& prefixes = model.described->table->simulated;
  Model part = model;
  part.parameters.clear();
  part.initialization.clear();
  part.parameter_block.clear();
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    const std::string& name = model.parameters[p].name;
    if (std::none_of(prefixes.begin(), prefixes.end(), [&](std::string_view b) { return name.starts_with(b); }))
      continue;
    part.parameters.push_back(std::move(model.parameters[p]));
    part.initialization.push_back(model.initialization[p]);
    part.parameter_block.push_back(model.parameter_block[p]);
  }
  part.notes.push_back("the part whose parameters begin with " + std::string(prefixes.front()) +
                       " is simulated: " + std::to_string(part.parameter_elements()) + " parameters");
  return part;
}

void enter_layer(const FamilyValues& family, std::int64_t layer, Values& values) {
  values.set("layer", layer);
  for (const auto& [name, layers] : family.lists)
    values.set(name, std::binary_search(layers.begin(), layers.end(), layer) ? 1 : 0);
}

void describe_family(const FamilyTable& table, ConfigFields& fields, Model& model) {
  model.family = table.model_type == "gpt2"    ? Family::gpt2
                 : table.model_type == "llama" ? Family::llama
                                               : Family::other;
  model.class_name = table.class_name;
  auto family = std::make_shared<FamilyValues>();
  family->table = &table;
  family->values.set("layer", 0);
  FieldReader reader(fields, model, *family);
  for (const FieldRow& row : table.fields) reader.read(row);
  reader.finish();
  for (const std::string_view key : table.ignored) fields.ignore({key});
  note_limits(table, fields, model);
  if (!table.rope.empty())
    read_rotary(fields, {.theta = real_of(table.rope), .part = table.rope_part.empty() ? 0 : real_of(table.rope_part)},
                model);
  if (fields.find({"per_layer_config"}) != nullptr)
    fields.contradiction("per_layer_config", "gives layers of their own, which is not supported");
  run_checks(table, fields, family->values, model);
  note_heads(table, fields, model);
  if (fields.error()) return;
  ParameterWriter writer(fields, *family, reader.range(), model);
  writer.write(table.parameters, "");
  check_total(fields, writer.builder());
  for (const std::string_view note : table.notes) model.notes.emplace_back(note);
  model.described = std::move(family);
}

}  // namespace shard::model
