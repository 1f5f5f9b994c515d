// The ops that steer a step: begin_control, inspect and decide of sim/ir/SPEC.md, on plain memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/cpu/kernels/exact_sum.h"
#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "sim/ir/control_block.h"
#include "sim/ir/plan.h"

namespace shard::cpu {

/// Empties `facts`. With a loss scaler (`state`, else null) a newborn scale becomes the initial one, and `loss_scale`
/// is that of this step, infinite where an overflow is injected.
void begin_control(const plan::ControlKnobs& knobs, std::span<GradientFacts> facts, plan::ScalerState* state,
                   float* loss_scale);

/// Elements [first, first + elems) of an inspect op's gradient, and the key that the first of them is known by.
struct InspectedPiece {
  std::int64_t first = 0;
  std::int64_t elems = 0;
  std::int64_t first_key = 0;
};
/// What inspect_stepped() and inspect_local() look at, on whatever device.
[[nodiscard]] std::vector<InspectedPiece> stepped_pieces(const plan::Plan& plan, std::int32_t tensor_rank,
                                                         std::int32_t flat, Elems begin, Elems elems);
[[nodiscard]] std::vector<InspectedPiece> local_pieces(const plan::Plan& plan, std::int32_t flat, OpId op);

/// Adds a flat's elements [begin, begin + elems) to what is known: squares, and what is not finite. `gradient` begins
/// at element `begin`. Of the ranks that share a model only the first adds parameters that are not cut.
void inspect_stepped(ThreadPool& pool, const plan::Plan& plan, std::int32_t tensor_rank, std::int32_t flat, Elems begin,
                     Elems elems, ConstElements gradient, GradientFacts& facts);

/// Notes what is not finite in a flat's gradient; squares are left alone. Backward reaches a flat's last parameter
/// first, so that comes first here too. `op`: this op, which says when it looked.
void inspect_local(ThreadPool& pool, const plan::Plan& plan, std::int32_t flat, OpId op, ConstElements gradient,
                   GradientFacts& facts);

/// The decision, from the facts of `a.members` members: of each those on what it steps, and with a scaler those on its
/// local gradients. Updates `state` where there is one (else null). Where `a` clips, the norm is kept within
/// knobs.max_norm. norm = sqrt(sum of squares) x factor / loss scale, multiplier = min(1, max_norm / (norm + 1e-6)) /
/// loss scale (torch.nn.utils.clip_grad_norm_). Without a scaler nothing is skipped: a norm that is not finite makes
/// the multiplier not a number.
[[nodiscard]] plan::ControlBlock decide(const plan::Plan& plan, const plan::Decide& a,
                                        std::span<const GradientFacts> facts, const plan::ControlKnobs& knobs,
                                        plan::ScalerState* state);

}  // namespace shard::cpu
