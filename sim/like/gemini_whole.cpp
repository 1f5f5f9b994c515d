// Gemini of v0.1.9: a chunk rests whole on one rank.
#include <algorithm>
#include <set>
#include <utility>

#include "sim/like/gemini_chunks.h"
#include "sim/like/gemini_passes.h"
#include "sim/like/gemini_states.h"

namespace shard::like {
namespace {

class Whole {
 public:
  Whole(GeminiStep step, ChunkLayout layout, const GeminiOptions& options)
      : options_(options),
        distributed_(options.shard_param_frac == 1.0),
        on_host_(options.offload_param_frac == 1.0),
        layout_(std::move(layout)),
        owners_(owners()),
        states_(layout_, step.hooked),
        chunks_(std::move(step), layout_, options.world_size, kept()),
        accessed_(layout_.chunks.size(), !distributed_) {}

  GeminiPlan run() {
    chunks_.begin_phase(Phase::creation);
    for (std::size_t c = 0; c < chunks_.chunks(); ++c) chunks_.build(c, on_host_ ? Place::host : Place::device);
    for (const Phase phase : {Phase::first_step, Phase::steady_step}) {
      chunks_.begin_phase(phase);
      train();
    }
    GeminiPlan result{.plan = {},
                      .marks = {},
                      .layout = {},
                      .offloaded_chunks = on_host_ ? static_cast<std::int64_t>(chunks_.chunks()) : 0};
    result.plan = chunks_.finish(result.marks);
    result.layout = std::move(layout_);
    return result;
  }

 private:
  [[nodiscard]] std::vector<std::int32_t> owners() const {
    std::vector<std::int32_t> owners;
    std::vector<std::int64_t> load(options_.chunk ? 0 : static_cast<std::size_t>(options_.world_size), 0);
    for (std::size_t c = 0; c < layout_.chunks.size(); ++c) {
      if (!distributed_) {
        owners.push_back(options_.rank);
      } else if (options_.chunk) {
        owners.push_back(static_cast<std::int32_t>(c % static_cast<std::size_t>(options_.world_size)));
      } else {
        const auto least = std::min_element(load.begin(), load.end());
        *least += layout_.chunks[c].elems.count();
        owners.push_back(static_cast<std::int32_t>(least - load.begin()));
      }
    }
    return owners;
  }

  [[nodiscard]] std::vector<ChunkOps::Kept> kept() const {
    std::vector<ChunkOps::Kept> kept;
    for (std::size_t c = 0; c < layout_.chunks.size(); ++c)
      kept.push_back(
          {.elems = layout_.chunks[c].elems, .real = layout_.chunks[c].used, .owned = owners_[c] == options_.rank});
    return kept;
  }

  void train() {
    bool forward = true;
    for (const HookedOp& op : chunks_.step().hooked) {
      chunks_.run_until(op.first);
      if (forward && op.part != plan::Part::forward) {
        release_last();
        chunks_.mark("after forward");
        forward = false;
      }
      pre_op(op);
      chunks_.run_until(op.last);
      post_op(op, forward);
    }
    chunks_.run_to_end();
    release_last();
    chunks_.mark("after backward");
    for (std::size_t c = 0; c < chunks_.chunks(); ++c) {
      if (!chunks_.owned(c)) continue;
      chunks_.step_optimizer(c);
      chunks_.refresh(c);
    }
    chunks_.mark("after step");
  }

  void pre_op(const HookedOp& op) {
    for (std::size_t p : op.parameters) states_.set(p, TensorState::compute);
    release_last();
    if (on_host_) evict();
    for (std::size_t c : states_.chunks_of(op.parameters)) access(c);
  }

  void evict() {
    const std::set<std::size_t> standing = std::exchange(on_device_, {});
    for (std::size_t c : standing) {
      if (chunks_.rest(c) != Place::device) continue;
      if (states_.busy(c))
        on_device_.insert(c);
      else
        chunks_.move(c, Place::host);
    }
  }

  void post_op(const HookedOp& op, bool forward) {
    for (std::size_t p : op.parameters) states_.set(p, forward ? TensorState::hold : TensorState::hold_after_backward);
    last_ = states_.chunks_of(op.parameters);
    if (op.part != plan::Part::backward) return;
    for (std::size_t p : op.parameters) {
      if (!states_.gradient_complete(p)) continue;
      states_.set(p, TensorState::ready_for_reduce);
      if (const std::size_t c = states_.chunk_of(p); states_.all_ready(c)) reduce(c);
    }
  }

  void access(std::size_t c) {
    on_device_.insert(c);
    if (chunks_.rest(c) == Place::host) chunks_.move(c, Place::device);
    if (accessed_[c]) return;
    chunks_.broadcast(c, owners_[c]);
    accessed_[c] = true;
  }

  void release(std::size_t c) {
    if (!distributed_ || !accessed_[c] || !states_.all_hold(c)) return;
    if (!chunks_.owned(c)) chunks_.drop(c);
    accessed_[c] = false;
  }
  void release_last() {
    for (std::size_t c : last_) release(c);
    last_.clear();
  }

  void reduce(std::size_t c) {
    if (distributed_)
      chunks_.reduce(c, owners_[c]);
    else
      chunks_.all_reduce(c);
    states_.hold_all(layout_.chunks[c]);
    release(c);
    if (on_host_ && chunks_.rest(c) == Place::device) chunks_.move(c, Place::host);
  }

  GeminiOptions options_;
  bool distributed_;
  bool on_host_;
  ChunkLayout layout_;
  std::vector<std::int32_t> owners_;
  TensorStates states_;
  ChunkOps chunks_;
  std::vector<bool> accessed_;
  std::set<std::size_t> on_device_;  ///< policy cpu: chunks that were accessed and may still be there
  std::vector<std::size_t> last_;    ///< chunks of the last op's tensors, released before the next
};

}  // namespace

GeminiPlan whole_chunks(GeminiStep step, ChunkLayout layout, const GeminiOptions& options) {
  return Whole(std::move(step), std::move(layout), options).run();
}

}  // namespace shard::like
