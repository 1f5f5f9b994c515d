// What `shardscope verify` found, as JSON and as text.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "executor/commands/train_run.h"
#include "executor/train/agreement.h"

namespace shard::commands {

struct VerifyReport {
  const Prepared* prepared = nullptr;
  const Prepared* reference = nullptr;
  std::int64_t steps = 0;
  bool promised = true;  ///< equal bits are
  train::Agreement agreement{};
};

/// "stage 0 on one rank"
[[nodiscard]] std::string reference_text(const plan::Strategy& reference);

/// Keys: docs/json.md, "verify --json".
[[nodiscard]] nlohmann::ordered_json to_json(const cli::Command& command, const VerifyReport& report);
[[nodiscard]] std::string to_text(const VerifyReport& report);

}  // namespace shard::commands
