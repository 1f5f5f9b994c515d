// Gemini of today: chunks cut into equal shards, placement policy static.
#include <algorithm>
#include <cassert>
#include <set>

#include "sim/like/gemini_chunks.h"
#include "sim/like/gemini_passes.h"
#include "sim/like/gemini_states.h"

namespace shard::like {
namespace {

constexpr double kHalfBytes = 2;

/// All sums are exact below 2^53; the products round as the peer's doubles do.
struct StaticPolicy {
  double keep_gathered = 0;
  double keep_on_device = 0;
  std::vector<bool> offload{};  ///< by chunk: gradients, masters and optimizer state
  bool order_matters = false;

  StaticPolicy(const ChunkLayout& layout, const GeminiOptions& o) : offload(layout.chunks.size(), false) {
    double total = 0;
    for (const Chunk& c : layout.chunks) total += bytes(c) * static_cast<double>(c.parameters.size());
    const bool all_leaves = o.shard_param_frac == 1.0 && o.offload_optim_frac == 1.0;
    const double offload_params = all_leaves ? o.offload_param_frac : 0.0;
    keep_gathered = total * (1 - o.shard_param_frac);
    keep_on_device = total * (1 - offload_params);
    const double to_offload = total * o.offload_optim_frac;
    double offloaded = 0;
    bool same = true;
    for (std::size_t c = 0; c < layout.chunks.size() && offloaded < to_offload && !o.keep_gathered; ++c) {
      offload[c] = true;
      offloaded += bytes(layout.chunks[c]);
    }
    for (const Chunk& c : layout.chunks) same = same && c.elems == layout.chunks[0].elems;
    order_matters = !same && offload.front() && !offload.back();
  }
  static double bytes(const Chunk& c) { return kHalfBytes * static_cast<double>(c.elems.count()); }
};

class Split {
 public:
  Split(GeminiStep step, ChunkLayout layout, const GeminiOptions& options)
      : options_(options),
        layout_(std::move(layout)),
        policy_(layout_, options),
        states_(layout_, step.hooked),
        chunks_(std::move(step), layout_, options.world_size, kept()),
        stale_(layout_.chunks.size(), false) {}

  GeminiPlan run() {
    create();
    for (const Phase phase : {Phase::first_step, Phase::steady_step}) {
      chunks_.begin_phase(phase);
      train();
    }
    GeminiPlan result{.plan = {},
                      .marks = {},
                      .layout = {},
                      .offloaded_chunks = std::count(policy_.offload.begin(), policy_.offload.end(), true),
                      .keep_gathered_bytes = policy_.keep_gathered,
                      .order_matters = policy_.order_matters};
    result.plan = chunks_.finish(result.marks);
    result.layout = std::move(layout_);
    return result;
  }

 private:
  [[nodiscard]] std::vector<ChunkOps::Kept> kept() const {
    std::vector<ChunkOps::Kept> kept;
    for (const Chunk& c : layout_.chunks) {
      if (options_.keep_gathered) {
        kept.push_back({.elems = c.elems, .real = c.used});
        continue;
      }
      const ElemRange shard = shard_range(c.elems, options_.rank, options_.world_size);
      const std::int64_t real = std::min(shard.end, c.used).count() - shard.begin.count();
      kept.push_back({.elems = shard.end - shard.begin, .real = Elems{std::max<std::int64_t>(real, 0)}});
    }
    return kept;
  }

  /// The argument decides where chunks are closed, even where the policy then ignores it.
  void create() {
    chunks_.begin_phase(Phase::creation);
    const bool on_host = options_.offload_param_frac > 0 && !options_.keep_gathered;
    for (std::size_t c = 0; c < chunks_.chunks(); ++c)
      chunks_.build_through_device(c, on_host ? Place::host : Place::device);
    for (std::size_t c = 0; c < chunks_.chunks(); ++c)
      chunks_.move_master(c, policy_.offload[c] ? Place::host : Place::device);
  }

  void train() {
    bool forward = true;
    for (const HookedOp& op : hooked()) {
      chunks_.run_until(op.first);
      if (forward && op.part != plan::Part::forward) {
        chunks_.mark("after forward");
        forward = false;
      }
      pre_op(op);
      chunks_.run_until(op.last);
      post_op(op, forward);
    }
    chunks_.run_to_end();
    chunks_.mark("after backward");
    for (std::size_t c = 0; c < chunks_.chunks(); ++c) {
      chunks_.step_optimizer(c);
      stale_[c] = policy_.offload[c];
      if (!stale_[c]) chunks_.refresh(c);
    }
    chunks_.mark("after step");
  }

  void pre_op(const HookedOp& op) {
    for (std::size_t p : op.parameters) states_.set(p, TensorState::compute);
    evict();
    for (std::size_t c : states_.chunks_of(op.parameters)) access(c);
  }

  void post_op(const HookedOp& op, bool forward) {
    for (std::size_t p : op.parameters) states_.set(p, forward ? TensorState::hold : TensorState::hold_after_backward);
    if (op.part != plan::Part::backward) return;
    for (std::size_t p : op.parameters) {
      if (!states_.gradient_complete(p)) continue;
      states_.set(p, TensorState::ready_for_reduce);
      if (const std::size_t c = states_.chunk_of(p); states_.all_ready(c)) reduce(c);
    }
  }

  void evict() {
    std::vector<std::size_t> evictable;
    double left = 0;
    for (std::size_t c : gathered_) {
      if (states_.busy(c)) continue;
      evictable.push_back(c);
      left += StaticPolicy::bytes(layout_.chunks[c]);
    }
    double on_device = left;
    for (std::size_t c : evictable) {
      if (left <= policy_.keep_gathered) break;
      chunks_.scatter(c);
      gathered_.erase(c);
      left -= StaticPolicy::bytes(layout_.chunks[c]);
    }
    for (std::size_t c : evictable) {
      if (on_device <= policy_.keep_on_device) break;
      if (!chunks_.gathered(c) && chunks_.rest(c) == Place::device) chunks_.move(c, Place::host);
      on_device -= StaticPolicy::bytes(layout_.chunks[c]);
    }
  }

  void access(std::size_t c) {
    if (options_.keep_gathered || chunks_.gathered(c)) return;
    if (chunks_.rest(c) == Place::host) {
      if (stale_[c])
        chunks_.refresh_through_device(c);
      else
        chunks_.move(c, Place::device);
      stale_[c] = false;
    }
    chunks_.all_gather(c);
    gathered_.insert(c);
  }

  void reduce(std::size_t c) {
    states_.hold_all(layout_.chunks[c]);
    if (options_.world_size == 1 && !options_.keep_gathered) {
      chunks_.scatter(c);
    } else if (options_.keep_gathered) {
      if (options_.world_size > 1) chunks_.all_reduce(c);
      return;
    } else {
      chunks_.reduce_scatter(c);
    }
    gathered_.erase(c);
    if (policy_.offload[c]) chunks_.move(c, Place::host);
  }

  [[nodiscard]] const std::vector<HookedOp>& hooked() const { return chunks_.step().hooked; }

  GeminiOptions options_;
  ChunkLayout layout_;
  StaticPolicy policy_;
  TensorStates states_;
  ChunkOps chunks_;
  std::set<std::size_t> gathered_;  ///< in order of creation
  std::vector<bool> stale_;         ///< the masters have been stepped since the 16-bit shard was written
};

}  // namespace

ChunkLayout gemini_layout(GeminiRules rules, const ParameterList& parameters, const GeminiOptions& o) {
  if (!o.chunk) {
    std::vector<std::size_t> starts(parameters.size());
    for (std::size_t i = 0; i < starts.size(); ++i) starts[i] = i;
    return layout_variable(parameters, starts, 1);
  }
  return layout_uniform(parameters, *o.chunk, o.world_size,
                        rules == GeminiRules::whole ? Oversize::exact : Oversize::round_up);
}

GeminiPlan split_chunks(GeminiStep step, ChunkLayout layout, const GeminiOptions& options) {
  return Split(std::move(step), std::move(layout), options).run();
}

}  // namespace shard::like
