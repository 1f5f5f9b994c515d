// Attention's blocks against the card: no other kernel takes more than every card has.
#include "executor/cuda/backend/card_check.h"

#include <sstream>

#include "executor/cuda/api/card.h"
#include "executor/cuda/api/machine.h"
#include "executor/cuda/kernels/attention_shared.h"
#include "executor/rank/shapes_of.h"

namespace shard::cuda {
namespace {

std::string in_kb(std::int64_t bytes) {
  std::ostringstream text;
  text.precision(4);
  text << static_cast<double>(bytes) / 1024 << " KB";
  return text.str();
}

Bytes shared_of(const AttentionShape& shape, bool forward) {
  return Bytes{forward ? attention_forward_shared(shape) : attention_backward_shared(shape)};
}

/// The widest heads up to which all fit.
std::int64_t widest(AttentionShape shape, bool forward, Bytes shared) {
  shape.head_dim = 1;
  while (shared_of(shape, forward) <= shared) ++shape.head_dim;
  return shape.head_dim - 1;
}

}  // namespace

Result<void> check_card(const plan::Plan& plan, Rank rank, const DeviceFacts& card) {
  const Bytes shared = card_limits(card.compute_capability).shared;
  for (const plan::PhaseOps& phase : plan.phases)
    for (const plan::Op& op : phase.ops) {
      const auto* const compute = std::get_if<plan::Compute>(&op.action);
      if (compute == nullptr || compute->kind != model::OperatorKind::attention) continue;
      const AttentionShape shape = executor::attention_shape(*compute->attributes);
      const bool forward = compute->direction == plan::Direction::forward;
      const Bytes needed = shared_of(shape, forward);
      if (needed <= shared) continue;
      return Error{.code = Errc::unavailable,
                   .what = "attention with heads of " + std::to_string(shape.head_dim) + " takes " +
                           in_kb(needed.count()) + " of shared memory a block, and " + card.name +
                           " of compute capability " + capability_text(card.compute_capability) + " has " +
                           in_kb(shared.count()),
                   .where = "rank " + std::to_string(rank.value) + " op " + std::to_string(op.id.value) + " '" +
                            std::string(op.name) + "'",
                   .help = "heads of " + std::to_string(widest(shape, forward, shared)) +
                           " or narrower, or a GPU of compute capability 8.0, 9.0 or 10.0"};
    }
  return {};
}

}  // namespace shard::cuda
