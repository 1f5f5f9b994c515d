// The passes of the compiler, each a function from draft to draft; compile.cpp runs them in this order. None calls
// another.
#pragma once

#include <memory>

#include "sim/compile/draft.h"

namespace shard::plan {

/// Forward operators of the model on one micro-batch, in phase steady_step. Parameters are buffers 0..P-1, values
/// follow. `strategy` must have passed check().
[[nodiscard]] Draft build(std::shared_ptr<const model::Model> model, const Strategy& strategy, std::int32_t rank);

/// Backward operators after the forward ones; a gradient buffer per parameter; values that backward reads become
/// activations.
[[nodiscard]] Draft differentiate(Draft plan);

/// Recompute::block: values made and read inside one block are made again before that block's backward.
[[nodiscard]] Draft recompute(Draft plan);

/// Two ops of the model become one where the target has it (Target::fuses): what recomputation repeats, too.
[[nodiscard]] Draft fuse(Draft plan);

/// Repeats the micro-batch, loads its data, places its loss, and adds the inner nodes of the gradient tree.
[[nodiscard]] Draft accumulate(Draft plan);

/// What ranks that share one model (Strategy::tensor_parallel) exchange becomes collectives of their group.
[[nodiscard]] Draft tensor_parallel(Draft plan);

/// Parameters and gradients into units; gathers before use and reductions after the last contribution, per stage.
[[nodiscard]] Draft shard(Draft plan);

/// Optimizer state and steps, refresh of parameters, the mean loss; phases creation and digest.
[[nodiscard]] Draft optimize(Draft plan);

/// What does not rest on the device, by Plan::placed, which the compiler decides from what optimize returns: moves in
/// front of and behind what uses it, steps where optimizer state rests.
[[nodiscard]] Draft place(Draft plan);

/// Host memory becomes pinned memory where the target wants that (Target::pins).
[[nodiscard]] Draft pin(Draft plan);

/// Gathers run `prefetch` ahead; tree nodes leave the way of reductions; ids; first and steady step.
[[nodiscard]] Draft schedule(Draft plan);

/// Strategy::evaluates: phase evaluate, the ops of a step that its mean loss needs, with nothing dropped. They keep ids
/// and order, so that what holds of the bytes of a step holds of them.
[[nodiscard]] Draft evaluate(Draft plan);

/// A dependency wherever ops of different streams touch the same content.
[[nodiscard]] Draft order(Draft plan);

/// Lifetimes, an offset for every buffer (apart from what still works on another stream, where memory is not scarce),
/// and a dependency wherever bytes are reused across streams.
[[nodiscard]] Draft allocate(Draft plan);
class Packings;
/// The same, where several plans have arenas in common.
[[nodiscard]] Draft allocate(Draft plan, Packings& known);

/// Collectives say behind which others they start; the rest may be in flight together.
[[nodiscard]] Draft overlap(Draft plan);

}  // namespace shard::plan
