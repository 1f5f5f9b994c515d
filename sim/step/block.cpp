// A block's kernels in the order in which they run; each backward beside its forward.
#include "sim/step/block.h"

#include <algorithm>
#include <initializer_list>

#include "sim/cost/laws/attention.h"
#include "sim/cost/laws/card_figures.h"
#include "sim/cost/laws/moved.h"
#include "sim/cost/laws/product.h"
#include "sim/step/code_style.h"

namespace shard::step {
namespace {

/// What tensor cores reach in fewer bits, beside 16: published products of Transformer Engine and torchao.
double speed_of(Float8 kind) {
  switch (kind) {
    case Float8::none: return 1;
    case Float8::per_tensor: return 1.75;
    case Float8::per_row: return 1.55;
    case Float8::per_block: return 1.7;
    case Float8::four_bits: return 2.6;
  }
  return 1;
}

/// In fp32 or TF32.
Seconds wide_product(const TrainingStep& step, cost::ProductShape shape, const cluster::Cluster& card) {
  shape.operand_bytes = shape.result_bytes = step.value_bytes();
  if (step.values == Values::fp32 || !card.peak_tf32) return cost::vector_product_time(1, shape, card);
  shape.speed = cost::peak_of_tf32(card) / cost::peak_of_16_bits(card);
  return cost::product_time(shape, card.kernel_laws->sustained(), card);
}

/// Sizes that a rank of a tensor-parallel group computes with.
struct Sizes {
  explicit Sizes(const TrainingStep& s)
      : tokens(s.tokens()),
        whole_rows(s.spread.sequence_parallel ? tokens / s.spread.tensor : tokens),
        hidden(s.model.hidden),
        heads(std::max<std::int64_t>(1, s.model.heads / s.spread.tensor)),
        query(heads * s.model.head_size),
        key(std::max<std::int64_t>(1, s.model.kv_heads / s.spread.tensor) * s.model.head_size),
        ffn(s.model.ffn / s.spread.tensor) {}
  std::int64_t tokens;
  std::int64_t whole_rows;  ///< of norms and residuals
  std::int64_t hidden, heads, query, key, ffn;
};

class Block {
 public:
  Block(const TrainingStep& step, const cluster::Cluster& card)
      : step_(step), card_(card), style_(style_of(step)), z_(step) {}

  BlockTime time() {
    norm();
    inputs_of_attention();
    attention();
    linear(z_.tokens, z_.hidden, z_.query);
    residual(style_.gradient_sums);
    norm();
    feed_forward();
    return std::move(time_);
  }

 private:
  using Passes = std::initializer_list<double>;  ///< bytes of an element that each kernel moves, in 16 bits

  /// One kernel for each of `passes` over so many elements.
  void moved(KernelSum& sum, double elements, Passes passes, bool reduces = false) {
    const double wide = step_.value_bytes() / 2;
    for (const double bytes : passes)
      sum.add(KernelKind::moved, cost::moved_time(elements * bytes * wide, card_, reduces));
  }
  void forward(double elements, Passes passes, bool reduces = false) {
    moved(time_.forward, elements, passes, reduces);
  }
  void backward(double elements, Passes passes, bool reduces = false) {
    moved(time_.backward, elements, passes, reduces);
  }

  [[nodiscard]] Seconds product(std::int64_t m, std::int64_t n, std::int64_t k, double result_bytes = 2) const {
    if (step_.values != Values::bits_16) return wide_product(step_, {.m = m, .n = n, .k = k}, card_);
    const double operand = step_.float8 == Float8::none ? 2 : step_.float8 == Float8::four_bits ? 0.56 : 1;
    return cost::product_time({.m = m,
                               .n = n,
                               .k = k,
                               .operand_bytes = operand,
                               .result_bytes = result_bytes,
                               .speed = speed_of(step_.float8)},
                              card_.kernel_laws->sustained(), card_);
  }

  /// rows x k times a weight of n x k, and both gradients.
  void linear(std::int64_t rows, std::int64_t n, std::int64_t k) {
    constexpr double kWeightGradientsInFp32 = 1 / 0.955;
    const bool in_fp32 = style_.accumulates_in_products && step_.float8 == Float8::none;
    time_.forward.add(KernelKind::product, product(rows, n, k));
    time_.backward.add(KernelKind::product, product(rows, k, n));
    const Seconds weight = product(n, k, rows, in_fp32 ? 4 : 2);
    time_.backward.add(KernelKind::product, Seconds{weight.count() * (in_fp32 ? kWeightGradientsInFp32 : 1)});
    if (step_.float8 != Float8::none) casts(rows, n, k);
  }

  /// An input, the weight and the gradient of the result; written out, scales take passes over fp32 copies.
  void casts(std::int64_t rows, std::int64_t n, std::int64_t k) {
    const bool one_kernel = step_.compiled || step_.code == Code::megatron;
    const double bytes = (one_kernel ? 4 : 31) * (step_.float8 == Float8::four_bits ? 3.0 : 1.0);
    const auto cast = [&](std::int64_t a, std::int64_t b) {
      return cost::moved_time(static_cast<double>(a) * static_cast<double>(b) * bytes, card_);
    };
    time_.forward.add(KernelKind::cast, cast(rows, k));
    time_.forward.add(KernelKind::cast, cast(n, k));
    time_.backward.add(KernelKind::cast, cast(rows, n));
    time_.backward.add(KernelKind::cast, cast(rows, k));
    time_.backward.add(KernelKind::cast, cast(n, k));
  }

  void norm() {
    const auto n = static_cast<double>(z_.whole_rows) * static_cast<double>(z_.hidden);
    switch (style_.norm) {
      case Norm::one_kernel:
        forward(n, {step_.compiled ? 6.0 : 4.0});
        return step_.compiled ? backward(n, {6, 6}) : backward(n, {8});
      case Norm::layer_norm:
      case Norm::rms_norm: return forward(n, {4}, style_.norm == Norm::layer_norm), backward(n, {10}, true);
      case Norm::in_fp32: return forward(n, {6, 6}), backward(n, {10, 6, 6});
      case Norm::written_out: return forward(n, {6, 8, 4, 8, 6, 6}), backward(n, {6, 6, 6, 8, 12, 4, 12, 12, 6});
    }
  }

  void inputs_of_attention() {
    if (style_.one_product_for_qkv) {
      linear(z_.tokens, z_.query + 2 * z_.key, z_.hidden);
    } else {
      linear(z_.tokens, z_.query, z_.hidden);
      linear(z_.tokens, z_.key, z_.hidden);
      linear(z_.tokens, z_.key, z_.hidden);
    }
    const auto tokens = static_cast<double>(z_.tokens);
    const double turned = tokens * static_cast<double>(z_.query + z_.key);
    if (step_.model.gated) {
      if (style_.rotary_in_one_kernel)
        forward(turned, {4}), backward(turned, {4});
      else
        forward(turned, {6, 12, 6}), backward(turned, {6, 12, 6});
      if (step_.model.query_key_norms) {
        const bool one = step_.compiled || step_.fused_norms;
        forward(turned, {one ? 4.0 : 36.0}), backward(turned, {one ? 8.0 : 70.0});
      }
    }
    const double rows = tokens * static_cast<double>(z_.query);
    if (style_.repeats_keys) forward(rows, {4, 4}), backward(rows, {4, 4});
    if (style_.takes_padding_out) {
      forward(rows, {4, 4, 4, 2, 4}, true);
      backward(rows, {4, 4, 4, 4}, true), backward(rows, {2, 2, 2});
    }
    if (style_.one_product_for_qkv && step_.code != Code::nanotron)
      backward(tokens * static_cast<double>(z_.query + 2 * z_.key), {4});
  }

  void attention() {
    const std::int64_t s = step_.sequence;
    if (step_.flash && step_.values != Values::bits_16) return memory_efficient_attention();
    if (step_.flash) {
      cost::AttentionShape shape{
          .batch = step_.micro_batch, .heads = z_.heads, .queries = s, .keys = s, .head_size = step_.model.head_size};
      time_.forward.add(KernelKind::attention, cost::attention_time(shape, step_.attention, card_));
      shape.backward = true;
      time_.backward.add(KernelKind::attention, cost::attention_time(shape, step_.attention, card_), 3);
      return;
    }
    const std::int64_t b = step_.micro_batch * z_.heads;
    const auto scores = static_cast<double>(b) * static_cast<double>(s) * static_cast<double>(s);
    // Products of small matrices, one for each head, reach half of the peak.
    const double peak = step_.values == Values::bits_16 ? cost::peak_of_16_bits(card_)
                        : step_.values == Values::tf32  ? cost::peak_of_tf32(card_)
                                                        : card_.peak_fp32.count();
    const Seconds both{4 * scores * static_cast<double>(step_.model.head_size) /
                       (0.5 * peak * card_.kernel_laws->clock_share)};
    time_.forward.add(KernelKind::attention, both, 2);
    time_.backward.add(KernelKind::attention, Seconds{2 * both.count()}, 4);
    forward(scores, {4, 4, 8, 4, 4});
    backward(scores, {4, 10, 6, 4});
  }

  /// What PyTorch takes for fp32, for which there is no flash attention: products of its own without tensor cores, half
  /// of which the causal mask leaves out. That they reach half of the peak is a guess.
  void memory_efficient_attention() {
    constexpr double kReached = 0.5, kBackward = 2.5;
    const auto s = static_cast<double>(step_.sequence);
    const double flops = 2 * s * s * static_cast<double>(step_.micro_batch * z_.heads * step_.model.head_size);
    const Seconds forward{flops / (kReached * card_.peak_fp32.count())};
    time_.forward.add(KernelKind::attention, forward);
    time_.backward.add(KernelKind::attention, Seconds{kBackward * forward.count()}, 3);
  }

  /// `sums`: passes that add gradients up where the block's input has several uses.
  void residual(double sums) {
    const auto n = static_cast<double>(z_.whole_rows) * static_cast<double>(z_.hidden);
    if (!style_.residuals_in_norms) forward(n, {6});
    for (double i = 0; i < sums; ++i) backward(n, {6});
  }

  void feed_forward() {
    const auto inner = static_cast<double>(z_.tokens) * static_cast<double>(z_.ffn);
    if (!step_.model.gated) {
      linear(z_.tokens, z_.ffn, z_.hidden);
      forward(inner, {4}), backward(inner, {6});
      linear(z_.tokens, z_.hidden, z_.ffn);
      return residual(1);
    }
    if (style_.one_product_for_gates) {
      linear(z_.tokens, 2 * z_.ffn, z_.hidden);
    } else {
      linear(z_.tokens, z_.ffn, z_.hidden);
      linear(z_.tokens, z_.ffn, z_.hidden);
    }
    if (style_.activation_in_one_kernel)
      forward(inner, {6}), backward(inner, {10});
    else
      forward(inner, {4, 6}), backward(inner, {6, 6, 6});
    linear(z_.tokens, z_.hidden, z_.ffn);
    residual(step_.compiled ? 1 : 2);
  }

  const TrainingStep& step_;
  const cluster::Cluster& card_;
  const CodeStyle style_;
  const Sizes z_;
  BlockTime time_{};
};

}  // namespace

BlockTime block_time(const TrainingStep& step, const cluster::Cluster& card) {
  return Block(step, card).time();
}

BlockTime loss_time(const TrainingStep& step, const cluster::Cluster& card) {
  const std::int64_t rows = step.tokens(), part = step.model.vocabulary / step.spread.tensor, h = step.model.hidden;
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    if (step.values != Values::bits_16) return wide_product(step, {.m = m, .n = n, .k = k}, card);
    return cost::product_time({.m = m, .n = n, .k = k}, card.kernel_laws->sustained(), card);
  };
  BlockTime time;
  time.forward.add(KernelKind::product, product(rows, part, h));
  time.backward.add(KernelKind::product, product(rows, h, part));
  time.backward.add(KernelKind::product, product(part, h, rows));
  const double scores = static_cast<double>(rows) * static_cast<double>(part);
  const auto passes = [&](KernelSum& sum, std::initializer_list<double> bytes) {
    for (const double each : bytes) sum.add(KernelKind::loss, cost::moved_time(scores * each, card));
  };
  switch (step.loss) {
    case Loss::one_pass:
      passes(time.forward, {2}), passes(time.backward, {4});
      if (style_of(step).metrics) passes(time.forward, {6, 8, 6, 8});
      break;
    case Loss::fused: passes(time.forward, {6, 4}), passes(time.backward, {6}); break;
    case Loss::eager:
      // fp32 logits need no copy in fp32.
      if (step.values != Values::bits_16)
        passes(time.forward, {8}), passes(time.backward, {4, 12});
      else
        passes(time.forward, {6, 8}), passes(time.backward, {4, 12, 6});
      break;
  }
  return time;
}

}  // namespace shard::step
