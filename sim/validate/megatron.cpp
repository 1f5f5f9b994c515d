// Megatron: 16-bit weights, fp32 gradients in one buffer, masters and moments whole or cut over data-parallel ranks.
#include <algorithm>
#include <numeric>

#include "sim/validate/replicated.h"

namespace shard::validate {
namespace {

class MegatronRank final : public Rank, public Hooks {
 public:
  MegatronRank(MemoryStream& memory, const RunDescription& run) : memory_(memory), run_(run) {}

  void create() override {
    const Architecture& m = run_.model;
    const std::vector<std::int64_t> block = block_parameters(run_);
    const std::int64_t one = std::accumulate(block.begin(), block.end(), std::int64_t{0});
    const std::int64_t ends = (m.tied ? 1 : 2) * m.embedding_parameters() / run_.tensor;
    elements_ = m.layers * one + ends + (m.positions ? m.sequence * m.hidden : 0) + m.hidden;
    const std::int64_t cut = run_.stage >= 1 ? std::max<std::int64_t>(run_.shard_degree, 1) : 1;
    const std::int64_t gradient = run_.precision == Precision::fp32_gradients ? 4 : 2;
    for (std::int64_t i = 0; i < m.layers; ++i) keep(2 * one);
    keep(2 * (elements_ - m.layers * one));
    keep(gradient * elements_);
    for (int i = 0; i < 3; ++i) keep(4 * elements_ / cut);
    // Without fp32 gradients the step casts its part of them.
    if (gradient == 2) cast_ = 4 * elements_ / cut;
    // cuBLAS on both threads, and cuBLASLt's for Transformer Engine.
    for (int i = 0; i < 3; ++i) keep(run_.card && run_.card->compute_capability >= 90 ? 33554432 : 8519680);
    // What autograd is handed in place of gradients that were added to the buffer: one tensor a shape, kept for ever
    // (transformer_engine/pytorch/module/base.py, get_dummy_wgrad).
    if (gradient == 4)
      for (const std::int64_t n : fused_shapes()) keep(2 * n);
  }

  void step() override {
    for (std::int64_t i = 0; i < run_.accumulation && i < 2; ++i) run_micro_batch(memory_, run_, *this);
    memory_.pass(cast_);
  }
  void after_backward(std::int64_t /*group*/, std::vector<Held>& gradients) override {
    for (const Held h : gradients) memory_.drop(h);
  }

 private:
  void keep(std::int64_t bytes) { states_.push_back(memory_.take(bytes)); }
  [[nodiscard]] std::vector<std::int64_t> fused_shapes() const {
    const Architecture& m = run_.model;
    const std::int64_t t = run_.tensor, h = m.hidden;
    return {h * (m.query_width() + 2 * m.kv_width()) / t, h * m.query_width() / t, (m.gated ? 2 : 1) * h * m.ffn / t,
            h * m.ffn / t};
  }

  MemoryStream& memory_;
  const RunDescription& run_;
  std::int64_t elements_ = 0, cast_ = 0;
  std::vector<Held> states_;
};

}  // namespace

std::unique_ptr<Rank> make_megatron_rank(MemoryStream& memory, const RunDescription& run) {
  return std::make_unique<MegatronRank>(memory, run);
}

}  // namespace shard::validate
