// Which derivative an operator computes.
#pragma once

#include <cstdint>

namespace shard::model {

/// backward is all derivatives at once; a linear operator has two backward ops, one for its input, one for its weights.
enum class Direction : std::uint8_t { forward, backward, backward_input, backward_weight };

[[nodiscard]] constexpr const char* to_string(Direction d) {
  switch (d) {
    case Direction::forward: return "forward";
    case Direction::backward: return "backward";
    case Direction::backward_input: return "backward_input";
    case Direction::backward_weight: return "backward_weight";
  }
  return "?";
}

}  // namespace shard::model
