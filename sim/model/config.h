// config.json text -> Model, with every value's provenance. Pure; read_model.h reads the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/config_value.h"
#include "sim/model/graph.h"
#include "traces/base/result.h"

namespace shard::model {

/// A model and how each of its values came about.
struct ConfiguredModel {
  Model model;
  std::vector<ConfigValue> values;  ///< in the order in which they were read
  std::optional<Dtype> dtype{};     ///< what the file says the weights are stored as (torch_dtype); nothing follows it
  std::string config{};             ///< the description, JSON: as it was given, or with the layers that were asked for
  std::vector<ConfiguredDropout> dropouts{};  ///< one of each value; nothing follows them
};

/// Parses a Hugging Face config.json of a family that has a table (family_table.h), or an mlp's. The family is
/// `model_type`, or else the beginning of architectures[0].
///   name  becomes Model::name;   file  names the text in errors
/// Errors: malformed (not JSON, a missing or wrong field), contradiction (an unknown family, unsupported or
/// contradicting values). `where` is "FILE#/POINTER", or FILE:LINE:COLUMN where the text is not JSON. Any text is safe:
/// sizes are bounded before anything is allocated for them.
///   layers  the model is to have, in place of its own; contradiction for one that is not made of equal blocks
[[nodiscard]] Result<ConfiguredModel> parse_config(std::string_view text, std::string_view name, std::string_view file,
                                                   std::optional<std::int64_t> layers = std::nullopt);

}  // namespace shard::model
