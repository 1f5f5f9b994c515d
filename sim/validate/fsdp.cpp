// Fully sharded data parallelism: shards at rest, gathers before use, reduce-scatters behind backward.
#include "sim/validate/fsdp.h"

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace shard::validate {
namespace {

/// Elements of low-rank adapters of rank 8 on every product of a block: what litgpt and fsdp_qlora train.
std::int64_t adapter_elements(const RunDescription& run) {
  const Architecture& m = run.model;
  return run.model.layers * 8 * (6 * m.hidden + 3 * m.ffn + 2 * m.hidden + 2 * m.kv_width());
}

class FsdpRank final : public Rank, public Hooks {
 public:
  FsdpRank(MemoryStream& memory, const RunDescription& run)
      : memory_(memory),
        run_(run),
        flat_(run.framework == Framework::fsdp1),
        ranks_(std::max<std::int64_t>(run.shard_degree, 1)) {
    const Architecture& m = run.model;
    for (std::int64_t i = 0; i < m.layers; ++i) groups_.push_back(block_parameters(run));
    std::vector<std::int64_t> outside{m.embedding_parameters() / run.tensor, m.hidden};
    if (!m.tied) outside.push_back(m.embedding_parameters() / run.tensor);
    if (m.positions) outside.push_back(m.sequence * m.hidden);
    groups_.push_back(std::move(outside));
    whole_.resize(groups_.size());
    gradients_.resize(groups_.size(), 0);
  }

  void create() override {
    const std::int64_t e = weight_bytes();
    for (const auto& group : groups_)
      if (!run_.offload_parameters)
        for (const std::int64_t n : group) keep(shard(n) * e / (run_.quantised ? 4 : 1));
    if (!run_.trains_all) keep(adapter_elements(run_) * 4 / ranks_);
  }

  void step() override {
    for (std::int64_t i = 0; i < run_.accumulation && i < 2; ++i) run_micro_batch(memory_, run_, *this);
    finish_reduce();
    optimize();
    for (Held& g : gradients_) memory_.drop(std::exchange(g, 0));
  }

  void before_forward(std::int64_t group) override { gather(group); }
  void after_forward(std::int64_t group) override {
    const bool last = group + 1 == run_.model.layers;
    if (run_.reshard_after_forward && !(last && !flat_)) reshard(group);
  }
  void before_backward(std::int64_t group) override {
    gather(group);
    // The next group's gather starts before this one computes.
    if (group > 0) prefetch(group - 1);
  }
  void after_backward(std::int64_t group, std::vector<Held>& gradients) override {
    reshard(group);
    if (group == run_.model.layers) copied_out(0);
    reduce(group, gradients);
  }

 private:
  [[nodiscard]] std::int64_t weight_bytes() const { return run_.precision == Precision::all_16_bit ? 2 : 4; }
  [[nodiscard]] std::int64_t shard(std::int64_t elements) const { return (elements + ranks_ - 1) / ranks_; }
  [[nodiscard]] std::int64_t sum(std::int64_t group) const {
    const auto& g = groups_[static_cast<std::size_t>(group)];
    return std::accumulate(g.begin(), g.end(), std::int64_t{0});
  }
  void keep(std::int64_t bytes) { states_.push_back(memory_.take(bytes)); }

  /// The output of a gather, in the gather's stream: of all ranks' 16-bit shards.
  void prefetch(std::int64_t group) {
    const auto at = static_cast<std::size_t>(group);
    if (!whole_[at].empty() || (prefetched_ != 0 && prefetched_group_ == group) || ranks_ == 1) return;
    const std::int64_t bytes = sum(group) * 2;
    const Held cast = run_.precision == Precision::all_16_bit ? 0 : memory_.take(bytes / ranks_, Queue::gather);
    const Held out = memory_.take(bytes, Queue::gather);
    memory_.drop(cast);
    copied_out(0);
    prefetched_ = out;
    prefetched_group_ = group;
  }
  /// FSDP2 copies a gather's output into parameters; the output lives until the next copy out. FSDP1 uses it in place.
  void copied_out(Held next) { memory_.drop(std::exchange(previous_, next)); }

  void gather(std::int64_t group) {
    const auto at = static_cast<std::size_t>(group);
    if (!whole_[at].empty()) return;
    if (ranks_ == 1) return;
    prefetch(group);
    const Held out = std::exchange(prefetched_, 0);
    if (flat_) {
      whole_[at].push_back(out);
      return;
    }
    for (const std::int64_t n : groups_[at]) whole_[at].push_back(memory_.take(2 * n));
    copied_out(out);
  }
  void reshard(std::int64_t group) {
    auto& whole = whole_[static_cast<std::size_t>(group)];
    // FSDP1 frees on the gather's stream, which waits for the use: one gather more is alive than is used.
    if (flat_) {
      for (const Held h : late_) memory_.drop(h);
      late_ = std::exchange(whole, {});
      return;
    }
    for (const Held h : whole) memory_.drop(h);
    whole.clear();
  }

  void reduce(std::int64_t group, std::vector<Held>& gradients) {
    if (!run_.trains_all) {
      for (const Held h : gradients) memory_.drop(h);
      if (flat_ && !run_.adapters_apart) keep_flat_gradient(group);
      return;
    }
    const std::int64_t wide = run_.precision == Precision::all_16_bit ? 2 : 4;
    const std::int64_t elements = sum(group);
    finish_reduce();
    const Queue queue = run_.year == 2024 && run_.month < 7 ? Queue::reduce : Queue::main;
    if (ranks_ > 1) input_ = memory_.take(wide * elements, flat_ ? Queue::main : queue);
    for (const Held h : gradients) memory_.drop(h);
    const Held out = memory_.take(wide * ((elements + ranks_ - 1) / ranks_), Queue::reduce);
    Held& mine = gradients_[static_cast<std::size_t>(group)];
    if (run_.step_in_backward || run_.offload_optimizer || mine != 0)
      memory_.drop(out);
    else
      mine = out;
  }
  /// Autograd of the views of a flat parameter makes its whole gradient, zeros where weights are frozen
  /// (torch/distributed/fsdp/_flat_param.py, _use_unsharded_views). litgpt accumulates under no_sync (finetune/lora.py:
  /// batches of 128), so all of them stay whole until the step.
  void keep_flat_gradient(std::int64_t group) {
    Held& mine = gradients_[static_cast<std::size_t>(group)];
    if (mine == 0) mine = memory_.take(sum(group) * 2);
  }
  void finish_reduce() { memory_.drop(std::exchange(input_, 0)); }

  void optimize() {
    const std::int64_t e = weight_bytes();
    if (run_.offload_optimizer) return;
    std::vector<std::int64_t> shards;
    if (run_.trains_all)
      for (const auto& group : groups_)
        for (const std::int64_t n : group) shards.push_back(shard(n) * e);
    else
      shards.push_back(adapter_elements(run_) * 4 / ranks_);
    if (!has_moments_)
      for (const std::int64_t bytes : shards) {
        keep(run_.eight_bit_optimizer ? bytes / e : bytes);
        keep(run_.eight_bit_optimizer ? bytes / e : bytes);
      }
    has_moments_ = true;
    if (!run_.foreach_optimizer || run_.step_in_backward) return;
    std::vector<Held> temporaries;
    for (const std::int64_t bytes : shards) temporaries.push_back(memory_.take(bytes));
    while (!temporaries.empty()) {
      memory_.drop(temporaries.back());
      temporaries.pop_back();
    }
  }

  MemoryStream& memory_;
  const RunDescription& run_;
  bool flat_;
  std::int64_t ranks_;
  std::vector<std::vector<std::int64_t>> groups_;  ///< elements of parameters; the last is outside of blocks
  std::vector<std::vector<Held>> whole_;           ///< gathered, by group
  std::vector<Held> gradients_;                    ///< reduced, by group
  std::vector<Held> states_, late_;
  Held prefetched_ = 0, previous_ = 0, input_ = 0;
  std::int64_t prefetched_group_ = 0;
  bool has_moments_ = false;
};

}  // namespace

std::unique_ptr<Rank> make_fsdp_rank(MemoryStream& memory, const RunDescription& run) {
  return std::make_unique<FsdpRank>(memory, run);
}

}  // namespace shard::validate
