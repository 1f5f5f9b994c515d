// Finds the family, lets it read the fields, and turns JSON faults into errors with a line.
#include "sim/model/config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/model/closest_name.h"
#include "sim/model/config_fields.h"
#include "sim/model/gpt2.h"
#include "sim/model/llama.h"
#include "sim/model/mlp.h"

namespace shard::model {
namespace {

/// A family's name in model_type and the beginning of its Hugging Face class names (none: empty).
struct FamilyEntry {
  std::string_view model_type;
  std::string_view class_prefix;
  std::string_view language_model;
  void (*describe)(ConfigFields&, Model&);
};

constexpr std::array<FamilyEntry, 3> kFamilies{{
    {"gpt2", "GPT2", "GPT2LMHeadModel", describe_gpt2},
    {"llama", "Llama", "LlamaForCausalLM", describe_llama},
    {"mlp", "", "", describe_mlp},
}};

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
    nlohmann::json json = nlohmann::json::parse(text, keep_shallow);
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

const FamilyEntry* find_family(ConfigFields& fields, const std::string& architecture) {
  if (fields.find({"model_type"}) == nullptr) {
    for (const FamilyEntry& family : kFamilies) {
      if (!family.class_prefix.empty() && architecture.starts_with(family.class_prefix)) return &family;
    }
    fields.malformed("model_type", "is missing; without it the model's shape is unknown",
                     "add \"model_type\": \"gpt2\", \"llama\" or \"mlp\"");
    return nullptr;
  }
  const std::string type = fields.text({"model_type"}, "");
  if (fields.error()) return nullptr;
  std::vector<std::string_view> known;
  for (const FamilyEntry& family : kFamilies) {
    if (family.model_type == type) return &family;
    known.push_back(family.model_type);
  }
  const std::string hint = did_you_mean(type, known);
  fields.contradiction("model_type", "is \"" + type + "\", which is not a known family (gpt2, llama, mlp)",
                       hint.empty() ? "for commands that need no operators, give --parameters FILE" : hint);
  return nullptr;
}

}  // namespace

Result<ConfiguredModel> parse_config(std::string_view text, std::string_view name, std::string_view file) {
  const Result<nlohmann::json> json = parse_json(text, std::string(file));
  if (!json) return json.error();
  ConfigFields fields(*json, file);
  const std::string architecture = first_architecture(fields);
  const FamilyEntry* family = find_family(fields, architecture);
  if (fields.error()) return *fields.error();

  ConfiguredModel result;
  result.model.name = name;
  family->describe(fields, result.model);
  if (fields.error()) return *fields.error();
  result.dtype = stored_dtype(fields);
  result.model.notes = fields.dropout_notes();
  if (!architecture.empty() && architecture != family->language_model) {
    result.model.notes.push_back("architecture " + architecture + " read; " + std::string(family->language_model) +
                                 " is built");
  }
  for (std::string& note : fields.misspelling_notes()) result.model.notes.push_back(std::move(note));
  result.values = fields.values();
  return result;
}

}  // namespace shard::model
