// `shardscope simulate --like colossalai-gemini`: its options, and how they become a prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/cli/command_line.h"
#include "sim/cli/output.h"
#include "sim/commands/strategy_options.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::commands {

/// Values as given. Lives as long as the Command it was declared in.
struct GeminiFlags {
  std::string parameters{};
  double shard_param_frac = 1.0;
  double offload_optim_frac = 0.0;
  double offload_param_frac = 0.0;
  int rank = 0;
};

/// Declares --parameters, --shard-param-frac, --offload-optim-frac, --offload-param-frac, --rank.
void add_gemini_options(cli::Command& command, GeminiFlags& flags);

/// Errc::contradiction when one of them is given and Gemini is not what is predicted.
[[nodiscard]] Result<void> refuse_gemini_options(const cli::Command& command);

struct GeminiRequest {
  std::string like;
  const GeminiFlags& flags;
  const StrategyOptions& strategy;
  std::string cluster;
  std::optional<Bytes> device_capacity;
  std::int64_t steps = 0;  ///< if given
  cli::Format format{};
};

/// Prints the prediction; the exit code.
[[nodiscard]] int simulate_gemini_command(const cli::Command& command, const GeminiRequest& request);

}  // namespace shard::commands
