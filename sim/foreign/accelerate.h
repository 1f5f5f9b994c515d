// The parts of the reader of accelerate's configurations.
#pragma once

#include <span>

#include "sim/foreign/reading.h"
#include "traces/base/result.h"

namespace shard::foreign {

[[nodiscard]] std::span<const Row> accelerate_rows();
/// Of the file of Hugging Face Trainer's --fsdp_config.
[[nodiscard]] std::span<const Row> fsdp_rows();

// What rows take by themselves. Sections of another distributed_type than the file's are left out by each.
[[nodiscard]] Result<void> take_distributed_type(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_mixed_precision(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_degree(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_section_stage(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_section_clipping(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_sharding_strategy(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_reshard(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_fsdp_offload(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_fsdp_recompute(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_version(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_orig_params(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_wrap_policy(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_wrapped_class(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_backward_prefetch(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_megatron_recompute(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> take_megatron_optimizer(Reading& reading, const Leaf& leaf, const Row& row);

}  // namespace shard::foreign
