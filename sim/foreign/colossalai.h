// Reads configurations of Colossal-AI (and InternEvo, which began from it): Python files, programs, launch scripts, and
// the YAML of its Lightning strategy.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/foreign/reading.h"
#include "traces/base/result.h"

namespace shard::foreign {

/// The tables (colossalai_rows.cpp): of Python files, launch scripts, YAML.
[[nodiscard]] std::span<const Row> colossalai_rows();
[[nodiscard]] std::span<const Row> colossalai_launch_rows();
[[nodiscard]] std::span<const Row> colossalai_lightning_rows();

// Takes of their rows.
/// Accounted for when all is read.
[[nodiscard]] Result<void> colossal_later(Reading& reading, const Leaf& leaf, const Row& row);
/// TensorShardStrategy, BucketTensorShardStrategy.
[[nodiscard]] Result<void> colossal_strategy(Reading& reading, const Leaf& leaf, const Row& row);
/// cuda, cpu, auto, static, const.
[[nodiscard]] Result<void> colossal_policy(Reading& reading, const Leaf& leaf, const Row& row);
/// MiB of a bucket; 0 or less: none.
[[nodiscard]] Result<void> colossal_bucket(Reading& reading, const Leaf& leaf, const Row& row);
/// A number; None is the framework's default.
[[nodiscard]] Result<void> colossal_number(Reading& reading, const Leaf& leaf, const Row& row);
/// A norm; 0 and None: none.
[[nodiscard]] Result<void> colossal_clip(Reading& reading, const Leaf& leaf, const Row& row);
/// "fp16", "torch.bfloat16", 16, ...
[[nodiscard]] Result<void> colossal_precision(Reading& reading, const Leaf& leaf, const Row& row);
/// AMP_TYPE.NAIVE, TORCH, APEX.
[[nodiscard]] Result<void> colossal_amp(Reading& reading, const Leaf& leaf, const Row& row);
/// HybridAdam, CPUAdam, FusedAdam, ...
[[nodiscard]] Result<void> colossal_optimizer(Reading& reading, const Leaf& leaf, const Row& row);
/// Two numbers: beta1 and beta2.
[[nodiscard]] Result<void> colossal_betas(Reading& reading, const Leaf& leaf, const Row& row);
/// A flag or a fraction of layers: recompute.
[[nodiscard]] Result<void> colossal_checkpoint(Reading& reading, const Leaf& leaf, const Row& row);
/// A size of 1 is as here; more is not modelled.
[[nodiscard]] Result<void> colossal_one(Reading& reading, const Leaf& leaf, const Row& row);
/// gemini, zero2, torch_ddp, ...: stage and unit.
[[nodiscard]] Result<void> colossal_plugin(Reading& reading, const Leaf& leaf, const Row& row);
[[nodiscard]] Result<void> colossal_stage(Reading& reading, const Leaf& leaf, const Row& row);
/// A model by a name that is known here.
[[nodiscard]] Result<void> colossal_model(Reading& reading, const Leaf& leaf, const Row& row);
/// Mi of elements, as Colossal-AI counts its "mb": our option has elements.
[[nodiscard]] Result<void> colossal_mega(Reading& reading, const Leaf& leaf, const Row& row);
/// A whole number of at least 1, or none.
[[nodiscard]] Result<void> colossal_count(Reading& reading, const Leaf& leaf, const Row& row);

/// Stage, unit and precision that follow from which classes are there; tensor parallelism; batches; fractions of static
/// placement; InternEvo's model.
[[nodiscard]] Result<void> settle_colossalai(Reading& reading);

/// The words of the documents for where data rests ("cuda", "cpu") as --placement has them; nothing for others.
[[nodiscard]] std::optional<std::string> placement_word(std::string_view word);

}  // namespace shard::foreign
