// `shardscope compare` of two strategies: what each takes, side by side.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/cli/command_line.h"
#include "sim/cli/output.h"
#include "sim/commands/simulate_strategy.h"

namespace shard::commands {

/// What `compare` says of model, strategy and machine: it counts for both files. Lives as long as the Command.
void add_shared_options(cli::Command& command, SimulateOptions& options);
/// Errc::contradiction where one of them is given with traces, which say all of it themselves.
[[nodiscard]] Result<void> refuse_shared_options(const cli::Command& command);

/// A quantity of both.
struct ComparedQuantity {
  enum class Of : std::uint8_t { memory, traffic, time } of{};
  enum class CountedIn : std::uint8_t { bytes, calls, seconds, per_second } unit{};
  std::string key;   ///< with the unit, as in JSON
  std::string name;  ///< for people
  double a = 0;
  double b = 0;
  /// Of the larger one: 0 where they are equal, 1 where one has none.
  [[nodiscard]] double apart() const;
};
[[nodiscard]] constexpr const char* to_string(ComparedQuantity::Of v) {
  switch (v) {
    case ComparedQuantity::Of::memory: return "memory";
    case ComparedQuantity::Of::traffic: return "traffic";
    case ComparedQuantity::Of::time: return "time";
  }
  return "?";
}

/// What both predictions say, largest difference first; without what neither has.
[[nodiscard]] std::vector<ComparedQuantity> compared_quantities(const engine::Simulation& a,
                                                                const engine::Simulation& b);

/// Simulates both files (holds_options()) and prints. `check`: exit 1 where memory or traffic differ.
[[nodiscard]] int compare_strategies(const cli::Command& command, const std::string& first, const std::string& second,
                                     cli::Format format, bool check);

}  // namespace shard::commands
