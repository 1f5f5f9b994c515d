// The hooks in their order: ZeROHookV2 and GeminiZeROHook agree on it.
#include "sim/like/gemini_run.h"

#include <utility>

namespace shard::like {

GeminiRun::GeminiRun(GeminiStep step, ChunkLayout layout, const GeminiOptions& options,
                     const std::vector<ChunkOps::Kept>& kept)
    : options_(options),
      layout_(std::move(layout)),
      states_(layout_, step.hooked),
      chunks_(std::move(step), layout_, options.world_size, kept) {}

GeminiPlan GeminiRun::run() {
  chunks_.begin_phase(Phase::creation);
  create();
  for (const Phase phase : {Phase::first_step, Phase::steady_step}) {
    chunks_.begin_phase(phase);
    train();
  }
  GeminiPlan result{.plan = {}, .marks = {}, .layout = {}};
  describe(result);
  result.plan = chunks_.finish(result.marks);
  result.layout = std::move(layout_);
  return result;
}

void GeminiRun::train() {
  bool forward = true;
  for (const HookedOp& op : chunks_.step().hooked) {
    chunks_.run_until(op.first);
    if (forward && op.part != plan::Part::forward) {
      end_of_pass();
      chunks_.mark("after forward");
      forward = false;
    }
    pre_op(op);
    chunks_.run_until(op.last);
    post_op(op, forward);
  }
  chunks_.run_to_end();
  end_of_pass();
  chunks_.mark("after backward");
  for (std::size_t c = 0; c < chunks_.chunks(); ++c) step_optimizer(c);
  chunks_.mark("after step");
}

void GeminiRun::pre_op(const HookedOp& op) {
  for (std::size_t p : op.parameters) states_.set(p, TensorState::compute);
  make_room();
  for (std::size_t c : states_.chunks_of(op.parameters)) access(c);
}

void GeminiRun::post_op(const HookedOp& op, bool forward) {
  for (std::size_t p : op.parameters) states_.set(p, forward ? TensorState::hold : TensorState::hold_after_backward);
  used(states_.chunks_of(op.parameters));
  if (op.part != plan::Part::backward) return;
  for (std::size_t p : op.parameters) {
    if (!states_.gradient_complete(p)) continue;
    states_.set(p, TensorState::ready_for_reduce);
    if (const std::size_t c = states_.chunk_of(p); states_.all_ready(c)) reduce(c);
  }
}

}  // namespace shard::like
