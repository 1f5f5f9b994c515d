// What stands beside an answer: what our own executor would take where the answer is another framework's, and what sums
// in a fixed order cost where it is our own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sim/commands/simulate_strategy.h"
#include "traces/base/numbers.h"

namespace shard::commands {

struct Beside {
  /// Of another framework's answer: our own executor with the same strategy on the same machine. None where it does not
  /// run that, or the answer is its own.
  struct Own {
    Bytes peak;    ///< of the rank that takes most
    Seconds step;  ///< a steady one
    double tokens_per_second = 0;
  };
  std::optional<Own> own{};
  /// Of our own answer: what of its peak goes without --reproducible. None where it is not asked for, or the answer is
  /// another framework's.
  std::optional<Bytes> reproducible{};
};

[[nodiscard]] Beside beside(const Simulated& simulated);

/// Our own executor with the strategy of another framework's answer, on the same machine. Nothing where it does not run
/// that, or the answer is its own.
[[nodiscard]] std::optional<engine::Simulation> own_beside(const Simulated& simulated);

/// A line, or nothing where there is nothing to say.
[[nodiscard]] std::string to_text(const Beside& beside, ShowBytes show);
/// "own_executor" (null, or an object with "peak_device_bytes", "step_seconds" and "tokens_per_second") and
/// "reproducible_bytes" (null).
void add_json(nlohmann::ordered_json& json, const Beside& beside);

}  // namespace shard::commands
