// Frequencies of rotary positions that a configuration scales.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "sim/model/graph.h"

namespace shard::model {

/// What the scaling starts from.
struct UnscaledRotary {
  double theta = 0;
  std::int64_t columns = 0;                       ///< of a head, that turn
  std::int64_t max_sequence = 0;                  ///< max_position_embeddings
  std::optional<std::int64_t> original_at_top{};  ///< original_max_position_embeddings where it stands at the top
};

/// Writes factor and frequencies as modeling_rope_utils.py of transformers 5 has them, in double and rounded at the
/// end. `type`: default, linear, dynamic, yarn, longrope (su), llama3. What keeps it from that, as the end of a
/// sentence that begins with the type, or nothing.
[[nodiscard]] std::optional<std::string> scale_rotary(std::string_view type, const nlohmann::json& scaling,
                                                      const UnscaledRotary& unscaled, RotaryScaling& into);

}  // namespace shard::model
