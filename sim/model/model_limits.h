// Checks that several families share: heads, layers and total size.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/model/config_fields.h"
#include "sim/model/graph.h"
#include "sim/model/parameter_builder.h"

namespace shard::model {

/// More layers than any model has had; keeps a hostile count from filling memory with names.
inline constexpr std::int64_t kMaxLayers = 16384;

struct NamedSize {
  std::string_view key;
  std::int64_t size;
};

/// Each records a fault in `fields` (Errc::contradiction) if the check fails.
void check_layers(ConfigFields& fields, std::string_view key, std::int64_t layers);
void check_heads_divide_hidden(ConfigFields& fields, NamedSize heads, NamedSize hidden);
void check_total(ConfigFields& fields, const ParameterBuilder& parameters);

}  // namespace shard::model
