// Reads the arguments that a launch script gives to Megatron-LM.
#pragma once

#include <span>
#include <string>

#include "sim/foreign/reading.h"
#include "traces/base/result.h"

namespace shard::foreign {

/// The table (megatron_rows.cpp).
[[nodiscard]] std::span<const Row> megatron_rows();

// Takes of its rows.
/// Accounted for by settle_megatron().
[[nodiscard]] Result<void> megatron_later(Reading& reading, const Leaf& leaf, const Row& row);
/// Without a value: true.
[[nodiscard]] Result<void> megatron_flag(Reading& reading, const Leaf& leaf, const Row& row);
/// As take_number, and a setting of the training alone.
[[nodiscard]] Result<void> megatron_number(Reading& reading, const Leaf& leaf, const Row& row);
/// 1 is as here; more is not modelled.
[[nodiscard]] Result<void> megatron_one(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> megatron_precision(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> megatron_scale(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> megatron_stage(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> megatron_zero(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> megatron_sharding(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> megatron_offload(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> megatron_granularity(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> megatron_recompute(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> megatron_optimizer(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> megatron_clip(Reading& reading, const Leaf& leaf, const Row& row);

/// Ranks, batches, what the framework does by default, and the model where none is given.
[[nodiscard]] Result<void> settle_megatron(Reading& reading, std::span<const LeftOut> unread);
/// The ranks that a launcher's arguments come to: processes of a node times nodes, each by the first key that is there.
/// What is not there, or not known, is named in left_out.
void settle_ranks(Reading& reading, std::span<const std::string_view> processes,
                  std::span<const std::string_view> nodes, std::span<const LeftOut> unread);

/// Leaves out what only a run knows; where the option is one of ours, with its name.
void leave_unread(Reading& reading, std::span<const LeftOut> unread, std::span<const Row> rows);

/// Leaves of a document that nothing has accounted for go to left_out.
void leave_rest(ForeignConfig& config, const Value& root);

}  // namespace shard::foreign
