// The parts of the reader of DeepSpeed's configurations.
#pragma once

#include <string>

#include "sim/foreign/reading.h"
#include "traces/base/result.h"

namespace shard::foreign {

// What rows take by themselves.
[[nodiscard]] Result<void> take_zero_flag(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_stage(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_shard_group(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_clipping(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_rate(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_betas(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_schedule(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_warmup(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_tensor_parallel(Reading& reading, const Leaf& leaf, const Row& row);

/// What keys say together, once every row is through.
[[nodiscard]] Result<void> settle_deepspeed(Reading& reading);

/// Keys of what rests in host memory or on disk; null for what a tool does not have.
struct OffloadKeys {
  const char* optimizer = nullptr;
  const char* optimizer_flag = nullptr;
  const char* ratio = nullptr;
  const char* path = nullptr;
  const char* pin[2] = {nullptr, nullptr};  ///< of the optimizer
  const char* param = nullptr;
  const char* param_flags[2] = {nullptr, nullptr};
};
[[nodiscard]] Result<void> settle_offload(Reading& reading, const OffloadKeys& keys);
/// Takes groups back that do not divide the ranks: those that split a model, those that share shards.
void settle_groups(Reading& reading);

/// Sizes that steer stage 3, which say nothing elsewhere.
[[nodiscard]] Result<void> settle_stage3(Reading& reading);

/// ZeRO stage in force.
[[nodiscard]] int stage_in_force(const Reading& reading);
/// "fp32", "bf16", "fp16": in force.
[[nodiscard]] std::string precision_in_force(const Reading& reading);

}  // namespace shard::foreign
