// rope_scaling, rope_parameters, and the older keys beside them.
#include "sim/model/rope.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace shard::model {
namespace {

/// The object of `key` is one, or absent.
const nlohmann::json* object_at(ConfigFields& fields, std::string_view key) {
  const nlohmann::json* found = fields.find({key});
  if (found == nullptr || found->is_object()) return found;
  fields.malformed(key, "is " + ConfigFields::shown(*found) + ", neither an object nor null");
  return nullptr;
}

/// What is done to the positions, if the object says that anything is.
void note_scaling(ConfigFields& fields, std::string_view key, const nlohmann::json& scaling, Model& model) {
  for (const char* type_key : {"rope_type", "type"}) {
    const auto type = scaling.find(type_key);
    if (type == scaling.end() || type->is_null()) continue;
    const std::string pointer = std::string(key) + "/" + type_key;
    if (!type->is_string()) {
      fields.malformed(pointer, "is not a string");
    } else if (type->get<std::string>() != "default" && !model.not_trained) {
      model.not_trained =
          Error{Errc::contradiction,
                "is " + ConfigFields::shown(*type) +
                    ": rotary positions with scaling are predicted (memory, communication and time are the same) and "
                    "not trained",
                fields.where(pointer), "set \"" + std::string(key) + "\" to null to train with unscaled positions"};
    }
    return;
  }
}

double theta_of(ConfigFields& fields, std::string_view key, const nlohmann::json& parameters, double fallback) {
  ConfigFields inside = fields.nested(key, parameters);
  const double theta = inside.positive_number({"rope_theta"}, fallback);
  fields.absorb(std::move(inside));
  return theta;
}

}  // namespace

void read_rotary(ConfigFields& fields, double fallback, Model& model) {
  if (const nlohmann::json* scaling = object_at(fields, "rope_scaling"))
    note_scaling(fields, "rope_scaling", *scaling, model);
  fields.ignore({"rope_local_base_freq"});
  const nlohmann::json* parameters = object_at(fields, "rope_parameters");
  if (parameters != nullptr) {
    note_scaling(fields, "rope_parameters", *parameters, model);
    const auto full = parameters->find("full_attention");
    const bool nested = full != parameters->end() && full->is_object();
    if (nested) note_scaling(fields, "rope_parameters/full_attention", *full, model);
    if (nested && full->contains("rope_theta")) {
      model.rotary_base = static_cast<float>(theta_of(fields, "rope_parameters/full_attention", *full, fallback));
      return;
    }
    if (parameters->contains("rope_theta")) {
      model.rotary_base = static_cast<float>(theta_of(fields, "rope_parameters", *parameters, fallback));
      return;
    }
  }
  fields.ignore({"rotary_emb_base"});
  const bool older = fields.find({"rope_theta"}) == nullptr && fields.find({"rotary_emb_base"}) != nullptr;
  model.rotary_base = static_cast<float>(older ? fields.positive_number({"rotary_emb_base"}, fallback)
                                               : fields.positive_number({"rope_theta"}, fallback));
}

}  // namespace shard::model
