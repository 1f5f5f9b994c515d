// DeepSpeed and Colossal-AI's LowLevelZero: 16-bit weights and gradients beside fp32 masters and moments.
#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/validate/replicated.h"

namespace shard::validate {
namespace {

// Defaults of DeepSpeed's configuration (docs/config-json, HEAD edaa72212), in elements.
constexpr std::int64_t kReduceBucket = 500'000'000;
constexpr std::int64_t kPrefetchBucket = 50'000'000;
constexpr std::int64_t kMaxLive = 1'000'000'000;
constexpr std::int64_t kSubGroup = 1'000'000'000;

class DeepSpeedRank final : public Rank, public Hooks {
 public:
  DeepSpeedRank(MemoryStream& memory, const RunDescription& run)
      : memory_(memory), run_(run), ranks_(std::max<std::int64_t>(run.shard_degree, 1)) {
    const Architecture& m = run.model;
    const std::vector<std::int64_t> block = block_parameters(run);
    block_ = std::accumulate(block.begin(), block.end(), std::int64_t{0});
    outside_ =
        (m.tied ? 1 : 2) * m.embedding_parameters() / run.tensor + (m.positions ? m.sequence * m.hidden : 0) + m.hidden;
    elements_ = m.layers * block_ + outside_;
  }

  void create() override {
    const std::int64_t part = elements_ / ranks_;
    const bool device_step = !run_.offload_optimizer;
    if (!run_.offload_parameters) keep(2 * (run_.stage == 3 ? part : elements_));
    if (device_step)
      for (int i = 0; i < 3; ++i) keep(4 * (run_.stage >= 1 ? part : elements_));
    // Gradients at rest: whole before stage 2; of stage 2 and 3 the rank's part.
    if (run_.stage >= 2 && device_step) keep(2 * part);
    bucket_ = std::min(kReduceBucket, elements_);
    if (run_.framework == Framework::colossal) bucket_ = std::min<std::int64_t>(6'000'000, elements_);
  }

  void step() override {
    Held bucket = run_.stage >= 1 ? memory_.take(2 * bucket_ * (run_.stage == 3 ? 2 : 1)) : 0;
    for (std::int64_t i = 0; i < run_.accumulation && i < 2; ++i) run_micro_batch(memory_, run_, *this);
    memory_.drop(bucket);
    for (Held& h : gathered_) memory_.drop(std::exchange(h, 0));
    // The step works on fp32 copies of gradients: of a sub-group in stage 3, of all that a rank owns before.
    if (!run_.offload_optimizer) {
      const std::int64_t part = run_.stage >= 1 ? elements_ / ranks_ : elements_;
      memory_.pass(4 * (run_.stage == 3 ? std::min(part, kSubGroup) : part));
    }
    for (Held& g : gradients_) memory_.drop(g);
    gradients_.clear();
  }

  void before_forward(std::int64_t group) override { fetch(group, 1); }
  void after_forward(std::int64_t group) override { release(group); }
  void before_backward(std::int64_t group) override { fetch(group, -1); }
  void after_backward(std::int64_t group, std::vector<Held>& gradients) override {
    if (run_.stage >= 2) {
      for (const Held h : gradients) memory_.drop(h);
    } else if (gradients_.size() < static_cast<std::size_t>(9 * run_.model.layers)) {
      gradients_.insert(gradients_.end(), gradients.begin(), gradients.end());
    } else {
      for (const Held h : gradients) memory_.drop(h);
    }
    release(group);
  }

 private:
  void keep(std::int64_t bytes) { states_.push_back(memory_.take(bytes)); }
  [[nodiscard]] std::int64_t size(std::int64_t group) const { return group == run_.model.layers ? outside_ : block_; }

  /// Stage 3: the group itself, and what comes next as far as the prefetch bucket reaches.
  void fetch(std::int64_t group, std::int64_t direction) {
    if (run_.stage != 3 || ranks_ == 1) return;
    gathered_.resize(static_cast<std::size_t>(run_.model.layers) + 1, 0);
    take(group);
    std::int64_t ahead = 0;
    for (std::int64_t g = group + direction; g >= 0 && g < run_.model.layers && ahead < kPrefetchBucket;
         g += direction) {
      if (live_ + size(g) > kMaxLive) break;
      ahead += size(g);
      take(g);
    }
  }
  void take(std::int64_t group) {
    Held& held = gathered_[static_cast<std::size_t>(group)];
    if (held != 0) return;
    held = memory_.take(2 * size(group));
    live_ += size(group);
  }
  void release(std::int64_t group) {
    if (run_.stage != 3 || ranks_ == 1 || gathered_.empty()) return;
    Held& held = gathered_[static_cast<std::size_t>(group)];
    if (held == 0) return;
    memory_.drop(std::exchange(held, 0));
    live_ -= size(group);
  }

  MemoryStream& memory_;
  const RunDescription& run_;
  std::int64_t ranks_, block_ = 0, outside_ = 0, elements_ = 0, bucket_ = 0, live_ = 0;
  std::vector<Held> states_, gathered_, gradients_;
};

/// One rank, or DDP: nothing is cut. Gradients stay as backward makes them.
class SingleRank final : public Rank, public Hooks {
 public:
  SingleRank(MemoryStream& memory, const RunDescription& run) : memory_(memory), run_(run) {}

  void create() override {
    sizes_.clear();
    for (std::int64_t i = 0; i < run_.model.layers; ++i)
      for (const std::int64_t n : block_parameters(run_)) sizes_.push_back(n);
    for (int i = 0; i < (run_.model.tied ? 1 : 2); ++i) sizes_.push_back(run_.model.embedding_parameters());
    for (const std::int64_t n : sizes_) keep(n * element_bytes(run_));
  }
  void step() override {
    for (std::int64_t i = 0; i < run_.accumulation && i < 2; ++i) run_micro_batch(memory_, run_, *this);
    const std::int64_t e = element_bytes(run_);
    if (!has_moments_)
      for (const std::int64_t n : sizes_)
        for (int i = 0; i < 2; ++i) keep(run_.eight_bit_optimizer ? n : n * e);
    has_moments_ = true;
    std::vector<Held> temporaries;
    if (run_.foreach_optimizer && !run_.step_in_backward)
      for (const std::int64_t n : sizes_) temporaries.push_back(memory_.take(n * e));
    for (const Held h : temporaries) memory_.drop(h);
    for (const Held h : gradients_) memory_.drop(h);
    gradients_.clear();
  }
  void after_backward(std::int64_t /*group*/, std::vector<Held>& gradients) override {
    if (run_.step_in_backward || gradients_.size() >= sizes_.size()) {
      for (const Held h : gradients) memory_.drop(h);
      return;
    }
    gradients_.insert(gradients_.end(), gradients.begin(), gradients.end());
  }

 private:
  void keep(std::int64_t bytes) { states_.push_back(memory_.take(bytes)); }

  MemoryStream& memory_;
  const RunDescription& run_;
  std::vector<std::int64_t> sizes_;
  std::vector<Held> states_, gradients_;
  bool has_moments_ = false;
};

}  // namespace

std::unique_ptr<Rank> make_deepspeed_rank(MemoryStream& memory, const RunDescription& run) {
  return std::make_unique<DeepSpeedRank>(memory, run);
}
std::unique_ptr<Rank> make_single_rank(MemoryStream& memory, const RunDescription& run) {
  return std::make_unique<SingleRank>(memory, run);
}

}  // namespace shard::validate
