// Gemini of today: chunks cut into equal shards, placement policy static.
#include <algorithm>
#include <cassert>
#include <set>
#include <utility>

#include "sim/like/gemini_run.h"

namespace shard::like {
namespace {

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
  static double bytes(const Chunk& c) { return static_cast<double>(kHalfBytes * c.elems.count()); }
};

std::vector<ChunkOps::Kept> kept_of(const ChunkLayout& layout, const GeminiOptions& o) {
  std::vector<ChunkOps::Kept> kept;
  for (const Chunk& c : layout.chunks) {
    if (o.keep_gathered) {
      kept.push_back({.elems = c.elems, .real = c.used});
      continue;
    }
    const ElemRange shard = shard_range(c.elems, o.rank, o.world_size);
    const std::int64_t real = std::min(shard.end, c.used).count() - shard.begin.count();
    kept.push_back({.elems = shard.end - shard.begin, .real = Elems{std::max<std::int64_t>(real, 0)}});
  }
  return kept;
}

class Split final : public GeminiRun {
 public:
  Split(GeminiStep step, const ChunkLayout& layout, const GeminiOptions& options)
      : GeminiRun(std::move(step), layout, options, kept_of(layout, options)),
        policy_(layout, options),
        stale_(layout.chunks.size(), false) {}

 private:
  /// The argument decides where chunks are closed, even where the policy then ignores it.
  void create() override {
    const bool on_host = options_.offload_param_frac > 0 && !options_.keep_gathered;
    for (std::size_t c = 0; c < chunks_.chunks(); ++c)
      chunks_.build_through_device(c, on_host ? Home::host : Home::device);
    for (std::size_t c = 0; c < chunks_.chunks(); ++c)
      chunks_.move_master(c, policy_.offload[c] ? Home::host : Home::device);
  }

  void describe(GeminiPlan& plan) const override {
    plan.offloaded_chunks = std::count(policy_.offload.begin(), policy_.offload.end(), true);
    plan.keep_gathered_bytes = policy_.keep_gathered;
    plan.order_matters = policy_.order_matters;
  }

  void step_optimizer(std::size_t c) override {
    chunks_.step_optimizer(c);
    stale_[c] = policy_.offload[c];
    if (!stale_[c]) chunks_.refresh(c);
  }

  void make_room() override {
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
      if (!chunks_.gathered(c) && chunks_.rest(c) == Home::device) chunks_.move(c, Home::host);
      on_device -= StaticPolicy::bytes(layout_.chunks[c]);
    }
  }

  void access(std::size_t c) override {
    if (options_.keep_gathered || chunks_.gathered(c)) return;
    if (chunks_.rest(c) == Home::host) {
      if (stale_[c])
        chunks_.refresh_through_device(c);
      else
        chunks_.move(c, Home::device);
      stale_[c] = false;
    }
    chunks_.all_gather(c);
    gathered_.insert(c);
  }

  void reduce(std::size_t c) override {
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
    if (policy_.offload[c]) chunks_.move(c, Home::host);
  }

  StaticPolicy policy_;
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

GeminiPlan split_chunks(GeminiStep step, const ChunkLayout& layout, const GeminiOptions& options) {
  return Split(std::move(step), layout, options).run();
}

}  // namespace shard::like
