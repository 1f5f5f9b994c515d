// Finds the family, lets it read the fields, and turns JSON faults into errors with a line.
#include "sim/model/config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/model/closest_name.h"
#include "sim/model/config_fields.h"
#include "sim/model/family.h"
#include "sim/model/family_table.h"
#include "sim/model/mlp.h"
#include "sim/model/python_json.h"

namespace shard::model {
namespace {

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return ":" + std::to_string(lines + 1) + ":" + std::to_string(before.size() - line_start + 1);
}

/// The library's message without its "[json.exception...] parse error at line L, column C: " head.
std::string syntax_message(std::string_view what) {
  for (std::string_view head : {"] ", "parse error", ": "}) {
    const std::size_t at = what.find(head);
    if (at == std::string_view::npos) break;
    what.remove_prefix(head == "parse error" ? at : at + head.size());
  }
  return std::string(what);
}

/// The library compares and prints recursively; real files are three deep.
constexpr int kDeepest = 100;

Result<nlohmann::json> parse_json(std::string_view text, const std::string& file) {
  // The library takes a NUL for the end of the text and would not see what follows it.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return Error{Errc::malformed, "is not JSON: it has a NUL byte", file + line_and_column(text, nul + 1), {}};
  }
  try {
    bool too_deep = false;
    const auto keep_shallow = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      too_deep = too_deep || depth > kDeepest;
      return depth <= kDeepest;
    };
    nlohmann::json json = nlohmann::json::parse(without_infinities(text), keep_shallow);
    if (too_deep) {
      return Error{Errc::malformed, "is nested more than " + std::to_string(kDeepest) + " deep", file, {}};
    }
    if (!json.is_object()) {
      return Error{Errc::malformed, "is not a JSON object", file + "#/",
                   "write the model's fields as {\"key\": value}"};
    }
    return json;
  } catch (const nlohmann::json::parse_error& fault) {
    return Error{
        Errc::malformed, "is not JSON: " + syntax_message(fault.what()), file + line_and_column(text, fault.byte), {}};
  } catch (const nlohmann::json::exception& fault) {  // a number that no type holds
    return Error{Errc::malformed, "is not JSON: " + syntax_message(fault.what()), file, {}};
  }
}

/// architectures[0], if there is one.
std::string first_architecture(ConfigFields& fields) {
  const nlohmann::json* list = fields.find({"architectures"});
  if (list == nullptr || !list->is_array() || list->empty() || !list->front().is_string()) return {};
  return list->front().get<std::string>();
}

/// "torch_dtype", in newer files "dtype", with or without "torch." before the type's name. Others than these three say
/// nothing of training.
std::optional<Dtype> stored_dtype(ConfigFields& fields) {
  std::optional<Dtype> found;
  for (const std::string_view key : {"torch_dtype", "dtype"}) {
    const nlohmann::json* field = fields.find({key});
    if (found || field == nullptr || !field->is_string()) continue;
    std::string name = field->get<std::string>();
    if (name.starts_with("torch.")) name.erase(0, 6);
    if (name == "float32") found = Dtype::f32;
    if (name == "bfloat16") found = Dtype::bf16;
    if (name == "float16") found = Dtype::f16;
  }
  return found;
}

constexpr std::string_view kMlp = "mlp";

/// The longest prefix of the class's name decides: Gemma3ForCausalLM is no GemmaForCausalLM.
const FamilyTable* family_of_class(std::string_view architecture) {
  const FamilyTable* found = nullptr;
  std::size_t longest = 0;
  for (const FamilyTable& table : family_tables()) {
    for (const std::string_view prefix : table.class_prefixes) {
      if (prefix.size() <= longest || !architecture.starts_with(prefix)) continue;
      found = &table;
      longest = prefix.size();
    }
  }
  return found;
}

/// The table of the file's family; none for an mlp, and where fields.error() says why.
const FamilyTable* find_family(ConfigFields& fields, const std::string& architecture) {
  if (fields.find({"model_type"}) == nullptr) {
    if (const FamilyTable* table = family_of_class(architecture)) return table;
    const bool is_of_deepspeed =
        fields.find({"zero_optimization"}) != nullptr || fields.find({"train_micro_batch_size_per_gpu"}) != nullptr;
    fields.malformed("model_type", "is missing; without it the model's shape is unknown",
                     is_of_deepspeed ? "DeepSpeed's configuration is --ds-config FILE, and --model the model's"
                                     : "add \"model_type\": \"gpt2\", \"llama\" or that of another family");
    return nullptr;
  }
  const std::string type = fields.text({"model_type"}, "");
  if (fields.error() || type == kMlp) return nullptr;
  std::vector<std::string_view> known{kMlp};
  std::string list(kMlp);
  for (const FamilyTable& table : family_tables()) {
    if (table.model_type == type) return &table;
    known.push_back(table.model_type);
    (list += ", ") += table.model_type;
  }
  const std::string hint = did_you_mean(type, known);
  fields.contradiction("model_type", "is \"" + type + "\", which is not a known family (" + list + ")",
                       hint.empty() ? "for commands that need no operators, give --parameters FILE" : hint);
  return nullptr;
}

/// Writes the number where the family's table looks for it.
Result<void> set_layers(nlohmann::json& json, const FamilyTable* family, std::int64_t layers, std::string_view file) {
  const FieldRow* row = nullptr;
  if (family != nullptr)
    for (const FieldRow& each : family->fields)
      if (each.role == "layers") row = &each;
  if (row == nullptr)
    return Error{Errc::contradiction, "has no number of layers that another could stand for", std::string(file),
                 "a model made of equal blocks"};
  nlohmann::json& fields = row->section.empty() ? json : json[std::string(row->section)];
  for (const std::string_view key : row->keys) fields.erase(std::string(key));
  // Numbers of a file that are not negative are unsigned, as the library reads them.
  fields[std::string(row->keys.front())] = static_cast<std::uint64_t>(std::max<std::int64_t>(layers, 0));
  return {};
}

/// What a model's size hangs on and the file does not say; a file may leave out what its class has anyway.
std::string absent_shape(const std::vector<ConfigValue>& values) {
  constexpr std::array<std::string_view, 7> kShape{
      "num_hidden_layers", "n_layer", "num_layers", "hidden_size", "n_embd", "d_model", "intermediate_size"};
  std::string text;
  for (const ConfigValue& value : values)
    if (value.source == ConfigValue::Source::default_value && std::ranges::find(kShape, value.key) != kShape.end())
      text +=
          (text.empty() ? "not in the file, and so the default of its class: " : ", ") + value.key + " " + value.value;
  return text;
}

}  // namespace

Result<ConfiguredModel> parse_config(std::string_view text, std::string_view name, std::string_view file,
                                     std::optional<std::int64_t> layers) {
  Result<nlohmann::json> json = parse_json(text, std::string(file));
  if (!json) return json.error();
  ConfigFields as_written(*json, file);
  const std::string architecture = first_architecture(as_written);
  const FamilyTable* family = find_family(as_written, architecture);
  if (as_written.error()) return *as_written.error();
  if (layers)
    if (const Result<void> ok = set_layers(*json, family, *layers, file); !ok) return ok.error();
  ConfigFields fields(*json, file);
  first_architecture(fields);
  find_family(fields, architecture);

  ConfiguredModel result;
  result.model.name = name;
  if (family == nullptr)
    describe_mlp(fields, result.model);
  else
    describe_family(*family, fields, result.model);
  if (fields.error()) return *fields.error();
  result.dtype = stored_dtype(fields);
  result.config = layers ? json->dump(2) + '\n' : std::string(text);
  result.dropouts = fields.dropouts();
  if (!architecture.empty() && architecture != result.model.class_name) {
    result.model.notes.push_back("architecture " + architecture + " read; " +
                                 (family == nullptr ? "an mlp" : result.model.class_name) + " is built");
  }
  if (family != nullptr)
    if (std::string note = absent_shape(fields.values()); !note.empty()) result.model.notes.push_back(std::move(note));
  for (std::string& note : fields.misspelling_notes()) result.model.notes.push_back(std::move(note));
  result.values = fields.values();
  return result;
}

}  // namespace shard::model
