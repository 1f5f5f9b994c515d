// `simulate --like colossalai-gemini`: what Colossal-AI's chunks would send, copy and hold.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/command_line.h"
#include "sim/cli/table.h"
#include "sim/commands/assumed.h"
#include "sim/commands/strategy_options.h"
#include "sim/like/frameworks/framework.h"
#include "sim/like/simulate_gemini.h"
#include "traces/base/result.h"

namespace shard::commands {

/// Its own options, as given. Lives as long as the Command it was declared in.
struct GeminiFlags {
  std::string parameters{};
  double shard_param_frac = 1.0;
  double offload_optim_frac = 0.0;
  double offload_param_frac = 0.0;
  int rank = 0;
};

/// Declares --parameters, --shard-param-frac, --offload-optim-frac, --offload-param-frac, --rank.
void add_gemini_options(cli::Command& command, GeminiFlags& flags);

struct GeminiRequest {
  const like::Framework& framework;
  const GeminiFlags& flags;
  const StrategyOptions& strategy;
  std::string cluster;
  std::optional<Bytes> device_capacity;
  std::int64_t steps = 0;                                     ///< if given
  std::function<void(const std::vector<std::string>&)> note;  ///< is told what was read and found
};

struct GeminiPrediction {
  like::GeminiResult result;
  Assumed taken;  ///< what the figures rest on
};

[[nodiscard]] Result<GeminiPrediction> predict_gemini(const cli::Command& command, const GeminiRequest& request);

/// One row per step.
[[nodiscard]] cli::Table steps_table(const like::GeminiResult& result);

}  // namespace shard::commands
