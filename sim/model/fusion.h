// Pairs of ops that a target may do as one: what the first makes is what the other begins with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/model/direction.h"
#include "sim/model/operators.h"

namespace shard::model {

/// The op of `first` in that direction, and of `then` in the one that goes with it.
struct Fusion {
  OperatorKind first{};
  Direction direction{};
  OperatorKind then{};
};

/// What follows a forward op is one too; behind the gradient of a product's input there is a backward op.
[[nodiscard]] constexpr Direction direction_behind(Direction direction) {
  return direction == Direction::forward ? Direction::forward : Direction::backward;
}

inline constexpr std::array kFusions = std::to_array<Fusion>({
    {OperatorKind::add, Direction::forward, OperatorKind::layer_norm},
    {OperatorKind::add, Direction::forward, OperatorKind::rms_norm},
});

/// Its place in kFusions.
[[nodiscard]] constexpr std::optional<std::size_t> fusion(OperatorKind first, Direction direction, OperatorKind then) {
  for (std::size_t i = 0; i < kFusions.size(); ++i)
    if (kFusions[i].first == first && kFusions[i].direction == direction && kFusions[i].then == then) return i;
  return std::nullopt;
}

}  // namespace shard::model
