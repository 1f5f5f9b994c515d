// One object, parsed once.
#include "sim/model/known_models.h"

#include <nlohmann/json.hpp>

namespace shard::model {
namespace {

const nlohmann::json& known_models() {
  static const nlohmann::json models = nlohmann::json::parse(known_models_text().front().json);
  return models;
}

}  // namespace

std::optional<std::string> known_model_config(std::string_view name) {
  const auto found = known_models().find(name);
  if (found == known_models().end()) return std::nullopt;
  return found->dump();
}

std::string known_model_source(std::string_view name) {
  const auto found = known_models().find(name);
  return found == known_models().end() ? "" : found->value("_source", "");
}

std::vector<std::string> known_model_names() {
  std::vector<std::string> names;
  for (const auto& [name, config] : known_models().items()) names.push_back(name);
  return names;
}

}  // namespace shard::model
