// rope_scaling, rope_parameters, and the older keys beside them.
#include "sim/model/rope.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "sim/model/rope_scaling.h"

namespace shard::model {
namespace {

/// The object of `key` is one, or absent.
const nlohmann::json* object_at(ConfigFields& fields, std::string_view key) {
  const nlohmann::json* found = fields.find({key});
  if (found == nullptr || found->is_object()) return found;
  fields.malformed(key, "is " + ConfigFields::shown(*found) + ", neither an object nor null");
  return nullptr;
}

/// A key of a scaling, and what it says.
struct ScalingType {
  std::string pointer;
  std::string type;
};

/// What is done to the positions, if the object says that anything is.
std::optional<ScalingType> scaling_type(ConfigFields& fields, std::string_view key, const nlohmann::json& scaling) {
  for (const char* type_key : {"rope_type", "type"}) {
    const auto type = scaling.find(type_key);
    if (type == scaling.end() || type->is_null()) continue;
    std::string pointer = std::string(key) + "/" + type_key;
    if (type->is_string()) return ScalingType{std::move(pointer), type->get<std::string>()};
    fields.malformed(pointer, "is not a string");
    return std::nullopt;
  }
  return std::nullopt;
}

void refuse_training(const ConfigFields& fields, std::string_view key, const ScalingType& at, const std::string& why,
                     Model& model) {
  if (model.not_trained) return;
  model.not_trained = Error{
      Errc::contradiction,
      "is \"" + at.type + "\" and " + why + ": predicted (memory, communication and time are the same) and not trained",
      fields.where(at.pointer), "set \"" + std::string(key) + "\" to null to train with unscaled positions"};
}

/// Kinds of layers with positions of their own.
void note_nested(ConfigFields& fields, std::string_view key, const nlohmann::json& scaling, Model& model) {
  if (const std::optional<ScalingType> at = scaling_type(fields, key, scaling); at && at->type != "default")
    refuse_training(fields, key, *at, "of one kind of layers", model);
}

/// The share of a head that turns; 0: all of it.
void read_part(ConfigFields& fields, const nlohmann::json* parameters, double fallback, Model& model) {
  fields.ignore({"rotary_pct"});
  if (fallback == 0) return;
  double part = fallback;
  if (fields.find({"rotary_pct"}) != nullptr) part = fields.positive_number({"rotary_pct"}, fallback);
  part = fields.positive_number({"partial_rotary_factor"}, part);
  if (parameters != nullptr && parameters->contains("partial_rotary_factor")) {
    ConfigFields inside = fields.nested("rope_parameters", *parameters);
    part = inside.positive_number({"partial_rotary_factor"}, part);
    fields.absorb(std::move(inside));
  }
  if (part >= 1) return;
  model.rotary.columns = static_cast<std::int64_t>(static_cast<double>(model.head_dim) * part);
  if ((model.rotary.columns < 2 || model.rotary.columns % 2 != 0) && !model.not_trained)
    model.not_trained = Error{Errc::contradiction,
                              "turns " + std::to_string(model.rotary.columns) + " of " +
                                  std::to_string(model.head_dim) + " elements of a head, which are not pairs",
                              fields.where("partial_rotary_factor"), ""};
}

void read_scaling(ConfigFields& fields, std::string_view key, const nlohmann::json& scaling, Model& model) {
  const std::optional<ScalingType> at = scaling_type(fields, key, scaling);
  if (!at || fields.error()) return;
  UnscaledRotary unscaled{.theta = static_cast<double>(model.rotary_base),
                          .columns = model.rotary.columns > 0 ? model.rotary.columns : model.head_dim,
                          .max_sequence = model.max_sequence};
  if (fields.find({"original_max_position_embeddings"}) != nullptr)
    unscaled.original_at_top = fields.positive({"original_max_position_embeddings"}, model.max_sequence);
  RotaryScaling scaled = model.rotary;
  if (const std::optional<std::string> missing = scale_rotary(at->type, scaling, unscaled, scaled))
    refuse_training(fields, key, *at, *missing, model);
  else
    model.rotary = std::move(scaled);
}

double theta_of(ConfigFields& fields, std::string_view key, const nlohmann::json& parameters, double fallback) {
  ConfigFields inside = fields.nested(key, parameters);
  const double theta = inside.positive_number({"rope_theta"}, fallback);
  fields.absorb(std::move(inside));
  return theta;
}

double read_theta(ConfigFields& fields, const nlohmann::json* parameters, const nlohmann::json* nested,
                  double fallback) {
  if (nested != nullptr && nested->contains("rope_theta"))
    return theta_of(fields, "rope_parameters/full_attention", *nested, fallback);
  if (parameters != nullptr && parameters->contains("rope_theta"))
    return theta_of(fields, "rope_parameters", *parameters, fallback);
  fields.ignore({"rotary_emb_base"});
  const bool older = fields.find({"rope_theta"}) == nullptr && fields.find({"rotary_emb_base"}) != nullptr;
  return older ? fields.positive_number({"rotary_emb_base"}, fallback)
               : fields.positive_number({"rope_theta"}, fallback);
}

}  // namespace

void read_rotary(ConfigFields& fields, const RotaryDefaults& defaults, Model& model) {
  const nlohmann::json* scaling = object_at(fields, "rope_scaling");
  fields.ignore({"rope_local_base_freq", "original_max_position_embeddings"});
  const nlohmann::json* parameters = object_at(fields, "rope_parameters");
  const nlohmann::json* nested = nullptr;
  if (parameters != nullptr) {
    const auto full = parameters->find("full_attention");
    if (full != parameters->end() && full->is_object()) nested = &*full;
  }
  model.rotary_base = static_cast<float>(read_theta(fields, parameters, nested, defaults.theta));
  read_part(fields, parameters, defaults.part, model);
  if (nested != nullptr) note_nested(fields, "rope_parameters/full_attention", *nested, model);
  // Both: as transformers, rope_scaling.
  if (scaling != nullptr)
    read_scaling(fields, "rope_scaling", *scaling, model);
  else if (parameters != nullptr)
    read_scaling(fields, "rope_parameters", *parameters, model);
}

}  // namespace shard::model
