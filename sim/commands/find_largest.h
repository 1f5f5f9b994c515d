// The largest number that still fits: what `simulate --find` searches.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "traces/base/result.h"

namespace shard::commands {

/// What is searched.
enum class Sought : std::uint8_t { nothing, micro_batch, sequence, layers };

/// A largest number, and why no larger one: it does not fit, or cannot be (`contradiction`).
struct Largest {
  std::int64_t value = 0;  ///< 0: not even the first fits
  std::optional<Error> contradiction{};
};

/// The largest multiple of `step` for which `fits` says yes, with all smaller ones taken to fit, too: by doubling, then
/// halving the interval. A number that contradicts the rest is too large. `fits` is asked once for each number.
/// Errors: those of `fits` for the first number, and of others whatever is no contradiction.
[[nodiscard]] Result<Largest> find_largest(std::int64_t step,
                                           const std::function<Result<bool>(std::int64_t number)>& fits);

}  // namespace shard::commands
