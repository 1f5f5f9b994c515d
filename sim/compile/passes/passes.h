// The passes of the compiler, each a function from plan to plan; compile.cpp runs them in this order.
#pragma once

#include <memory>

#include "sim/ir/plan.h"

namespace shard::plan {

/// Forward operators of the model on one micro-batch, in phase steady_step. Parameters are buffers 0..P-1, values
/// follow. `strategy` must have passed check().
[[nodiscard]] Plan build(std::shared_ptr<const model::Model> model, const Strategy& strategy, std::int32_t rank);

/// Backward operators after the forward ones; a gradient buffer per parameter; values that backward reads become
/// activations.
[[nodiscard]] Plan differentiate(Plan plan);

/// Recompute::block: values made and read inside one block are made again before that block's backward.
[[nodiscard]] Plan recompute(Plan plan);

/// Repeats the micro-batch, loads its data, places its loss, and adds the inner nodes of the gradient tree.
[[nodiscard]] Plan accumulate(Plan plan);

/// What ranks that share one model (Strategy::tensor_parallel) exchange becomes collectives of their group.
[[nodiscard]] Plan tensor_parallel(Plan plan);

/// Parameters and gradients into units; gathers before use and reductions after the last contribution, per stage.
[[nodiscard]] Plan shard(Plan plan);

/// Optimizer state and steps, refresh of parameters, the mean loss; phases creation and digest.
[[nodiscard]] Plan optimize(Plan plan);

/// What does not rest on the device: moves in front of and behind what uses it, steps where optimizer state rests.
/// Decides where Plan::placed is not filled yet: by the strategy's shares, or by what the device has room for.
[[nodiscard]] Plan place(Plan plan);

/// Gathers run `prefetch` ahead; tree nodes leave the way of reductions; ids; first and steady step.
[[nodiscard]] Plan schedule(Plan plan);

/// A dependency wherever ops of different streams touch the same content.
[[nodiscard]] Plan order(Plan plan);

/// Lifetimes, an offset for every buffer (apart from what still works on another stream, where memory is not scarce),
/// and a dependency wherever bytes are reused across streams.
[[nodiscard]] Plan allocate(Plan plan);
class Packings;
/// The same, where several plans have arenas in common.
[[nodiscard]] Plan allocate(Plan plan, Packings& known);

}  // namespace shard::plan
