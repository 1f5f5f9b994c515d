// Options of the dynamic loss scaler, in every command that plans: its rule is in sim/ir/scaler.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/cli/command_line.h"
#include "sim/ir/scaler.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"

namespace shard::commands {

/// Defaults are those of plan::ScalerKnobs.
struct ScalerOptions {
  double initial_scale = 65536;
  double min_scale = 1;
  std::optional<double> max_scale{};
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 1000;
  std::int64_t hysteresis = 2;
};

/// Declares --initial-scale, --min-scale, --max-scale, --growth-factor, --backoff-factor, --growth-interval,
/// --hysteresis. They are values in a planned buffer: a plan does not depend on them.
void add_scaler_options(cli::Command& command, ScalerOptions& options);
[[nodiscard]] std::vector<std::string_view> scaler_option_names();

/// Contradictions (78): knobs of a scaler that the strategy does not have, limits that cross.
[[nodiscard]] Result<void> check_scaler(const cli::Command& command, const ScalerOptions& options,
                                        const plan::Strategy& strategy);

/// An option of the scaler given to a strategy without one: contradiction (78).
[[nodiscard]] Result<void> check_has_scaler(const cli::Command& command, const char* option,
                                            const plan::Strategy& strategy);

[[nodiscard]] plan::ScalerKnobs scaler_knobs(const ScalerOptions& options);

}  // namespace shard::commands
