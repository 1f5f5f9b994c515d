// Gemini of v0.1.9: a chunk rests whole on one rank.
#include <algorithm>
#include <set>
#include <utility>

#include "sim/like/gemini_run.h"

namespace shard::like {
namespace {

/// The rank that each chunk rests on; without distributed storage this one.
std::vector<std::int32_t> owners_of(const ChunkLayout& layout, const GeminiOptions& o, bool distributed) {
  std::vector<std::int32_t> owners;
  std::vector<std::int64_t> load(o.chunk ? 0 : static_cast<std::size_t>(o.world_size), 0);
  for (std::size_t c = 0; c < layout.chunks.size(); ++c) {
    if (!distributed) {
      owners.push_back(o.rank);
    } else if (o.chunk) {
      owners.push_back(static_cast<std::int32_t>(c % static_cast<std::size_t>(o.world_size)));
    } else {
      const auto least = std::min_element(load.begin(), load.end());
      *least += layout.chunks[c].elems.count();
      owners.push_back(static_cast<std::int32_t>(least - load.begin()));
    }
  }
  return owners;
}

std::vector<ChunkOps::Kept> kept_of(const ChunkLayout& layout, const std::vector<std::int32_t>& owners,
                                    std::int32_t rank) {
  std::vector<ChunkOps::Kept> kept;
  for (std::size_t c = 0; c < layout.chunks.size(); ++c)
    kept.push_back({.elems = layout.chunks[c].elems, .real = layout.chunks[c].used, .owned = owners[c] == rank});
  return kept;
}

class Whole final : public GeminiRun {
 public:
  Whole(GeminiStep step, const ChunkLayout& layout, const GeminiOptions& options, bool distributed,
        std::vector<std::int32_t> owners)
      : GeminiRun(std::move(step), layout, options, kept_of(layout, owners, options.rank)),
        distributed_(distributed),
        on_host_(options.offload_param_frac == 1.0),
        owners_(std::move(owners)),
        accessed_(owners_.size(), !distributed) {}

 private:
  void create() override {
    for (std::size_t c = 0; c < chunks_.chunks(); ++c) chunks_.build(c, on_host_ ? Home::host : Home::device);
  }

  void describe(GeminiPlan& plan) const override {
    plan.offloaded_chunks = on_host_ ? static_cast<std::int64_t>(chunks_.chunks()) : 0;
  }

  void make_room() override {
    release_last();
    if (!on_host_) return;
    const std::set<std::size_t> standing = std::exchange(on_device_, {});
    for (std::size_t c : standing) {
      if (chunks_.rest(c) != Home::device) continue;
      if (states_.busy(c))
        on_device_.insert(c);
      else
        chunks_.move(c, Home::host);
    }
  }

  void access(std::size_t c) override {
    on_device_.insert(c);
    if (chunks_.rest(c) == Home::host) chunks_.move(c, Home::device);
    if (accessed_[c]) return;
    chunks_.broadcast(c, owners_[c]);
    accessed_[c] = true;
  }

  void used(const std::vector<std::size_t>& chunks) override { last_ = chunks; }
  void end_of_pass() override { release_last(); }

  void release(std::size_t c) {
    if (!distributed_ || !accessed_[c] || !states_.all_hold(c)) return;
    if (!chunks_.owned(c)) chunks_.drop(c);
    accessed_[c] = false;
  }
  void release_last() {
    for (std::size_t c : last_) release(c);
    last_.clear();
  }

  void reduce(std::size_t c) override {
    if (distributed_)
      chunks_.reduce(c, owners_[c]);
    else
      chunks_.all_reduce(c);
    states_.hold_all(layout_.chunks[c]);
    release(c);
    if (on_host_ && chunks_.rest(c) == Home::device) chunks_.move(c, Home::host);
  }

  void step_optimizer(std::size_t c) override {
    if (!chunks_.owned(c)) return;
    chunks_.step_optimizer(c);
    chunks_.refresh(c);
  }

  bool distributed_;
  bool on_host_;
  std::vector<std::int32_t> owners_;
  std::vector<bool> accessed_;
  std::set<std::size_t> on_device_;  ///< policy cpu: chunks that were accessed and may still be there
  std::vector<std::size_t> last_;    ///< chunks of the last op's tensors, released before the next
};

}  // namespace

GeminiPlan whole_chunks(GeminiStep step, const ChunkLayout& layout, const GeminiOptions& options) {
  const bool distributed = options.shard_param_frac == 1.0;
  std::vector<std::int32_t> owners = owners_of(layout, options, distributed);
  return Whole(std::move(step), layout, options, distributed, std::move(owners)).run();
}

}  // namespace shard::like
