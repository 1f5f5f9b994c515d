// Live memory at the moments of a run.
#include "sim/record/moments.h"

#include <cstddef>
#include <limits>

#include "sim/ir/effects.h"

namespace shard::record {

Bytes live_in(const LiveMemory& live, Memory memory) {
  Bytes total{0};
  for (const Bytes bytes : live[static_cast<std::size_t>(memory)]) total += bytes;
  return total;
}

LiveMemory without_optimizer(LiveMemory live) {
  for (CategoryBytes& memory : live)
    for (const Category category : {Category::master_parameter, Category::optimizer_state})
      memory[static_cast<std::size_t>(category)] = Bytes{0};
  return live;
}

void MomentBook::begin(Phase phase) {
  moments_ = {};
  last_forward_ = last_backward_ = -1;
  forward_passed_ = backward_passed_ = false;
  const plan::PhaseOps* const ops = plan_.find(phase);
  if (ops == nullptr) return;
  for (const plan::Op& op : ops->ops) {
    if (op.part == plan::Part::forward) last_forward_ = op.id.value;
    if (op.part == plan::Part::backward) last_backward_ = op.id.value;
  }
}

/// Ids ascend within a phase (P1), so what a later op changes comes behind the moment.
void MomentBook::pass(std::int64_t op) {
  if (!forward_passed_ && op > last_forward_) {
    moments_.forward = live_;
    forward_passed_ = true;
  }
  if (!backward_passed_ && op > last_backward_) {
    moments_.backward = live_;
    backward_passed_ = true;
  }
}

void MomentBook::change(const plan::Op& op, BufferId buffer, bool acquired) {
  pass(op.id.value);
  const plan::Buffer& b = plan_.buffer(buffer);
  Bytes& live = live_[static_cast<std::size_t>(b.memory)][static_cast<std::size_t>(b.category)];
  if (acquired) {
    live += plan::arena_bytes(b);
  } else {
    live -= plan::arena_bytes(b);
  }
}

const PhaseMoments& MomentBook::end() {
  pass(std::numeric_limits<std::int64_t>::max());
  moments_.end = live_;
  return moments_;
}

PlannedMoments planned_moments(const plan::Plan& plan) {
  MomentBook book(plan);
  const auto run = [&](Phase phase) {
    book.begin(phase);
    if (const plan::PhaseOps* const ops = plan.find(phase)) {
      for (const plan::Op& op : ops->ops) {
        for (const BufferId buffer : op.acquire) book.change(op, buffer, true);
        for (const BufferId buffer : op.release) book.change(op, buffer, false);
      }
    }
    return book.end();
  };
  PlannedMoments moments;
  moments.creation = run(Phase::creation).end;
  moments.first_step = run(Phase::first_step);
  moments.steady_step = run(Phase::steady_step);
  return moments;
}

}  // namespace shard::record
