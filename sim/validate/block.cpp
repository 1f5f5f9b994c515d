// Blocks by the operators of eager PyTorch, of compiled blocks and of Megatron's fused kernels.
#include "sim/validate/block.h"

#include <utility>

namespace shard::validate {
namespace {

/// Builds a list; every add() gives the number of the value that it makes.
class ListBuilder {
 public:
  explicit ListBuilder(const RunDescription& run)
      : run_(run),
        e_(element_bytes(run)),
        tokens_(run.micro_batch * run.model.sequence),
        compiled_(run.compiled || run.framework == Framework::graph_fsdp),
        megatron_(run.framework == Framework::megatron) {}

  int add(Operator op) {
    list_.push_back(std::move(op));
    return static_cast<int>(list_.size());
  }
  [[nodiscard]] std::vector<Operator> take() { return std::move(list_); }
  [[nodiscard]] std::int64_t bytes(std::int64_t width) const { return tokens_ * width * e_; }
  [[nodiscard]] std::int64_t residual() const { return residual_bytes(run_); }
  [[nodiscard]] const RunDescription& run() const { return run_; }

  /// Fused norms keep their input and one or two fp32 figures a token. A norm written out in PyTorch (torchtitan until
  /// March 2025; nn.RMSNorm before 2.9) keeps the input in fp32 and the normalised values in 16 bits beside it. What
  /// autocast runs in fp32 does both.
  int norm(int x) {
    const std::int64_t size = residual();
    const bool written_out = !compiled_ && !megatron_ && is_written_out();
    const std::int64_t stats = size / e_ / run_.model.hidden * (run_.model.layer_norm ? 8 : 4);
    if (written_out)
      return add({.inputs = {x},
                  .output = size,
                  .saved = {},
                  .statistics = 4 * (size / e_) + size + stats,
                  .forward_workspace = 4 * (size / e_),
                  .backward_workspace = 8 * (size / e_),
                  .input_gradients = {size},
                  .weight_gradient = run_.model.hidden * e_});
    return add({.inputs = {x},
                .output = size,
                .saved = {x},
                .statistics = stats,
                .input_gradients = {size},
                .weight_gradient = weight(run_.model.hidden)});
  }

  /// Before products cut by columns: the whole sequence. Megatron keeps its part and gathers again in backward.
  int gather(int x) {
    if (!run_.sequence_parallel) return x;
    return add({.inputs = {x}, .output = bytes(run_.model.hidden), .input_gradients = {residual()}});
  }
  /// After products cut by rows.
  int scatter(int x) {
    if (!run_.sequence_parallel) return x;
    return add({.inputs = {x}, .output = residual(), .input_gradients = {bytes(run_.model.hidden)}, .kept = true});
  }

  /// A product; `keeps` is the value that its weight's gradient needs. Compiled code makes pointwise inputs again.
  int product(int x, int keeps, std::int64_t in, std::int64_t out, std::int64_t out_bytes, std::int64_t in_bytes,
              std::int64_t again = 0) {
    ++products_;
    Operator op{.inputs = {x},
                .output = out_bytes,
                .saved = {},
                .backward_workspace = again,
                .input_gradients = {in_bytes},
                .weight_gradient = weight(in * out),
                .kept = products_ % 2 == 1};
    if (keeps >= 0) op.saved.push_back(keeps);
    if (run_.float8 != Float8::none) {
      // Inputs and weights in one byte beside what comes in: kept for backward where eager code casts, freed with the
      // product where it is compiled.
      op.forward_workspace = in_bytes / e_ + in * out;
      if (!compiled_) op.statistics = in_bytes / e_ + in * out;
    }
    return add(std::move(op));
  }

  int pointwise(int x, std::int64_t size, bool saves_input) {
    Operator op{.inputs = {x}, .output = size, .input_gradients = {size}};
    if (saves_input) op.saved = {x};
    return add(std::move(op));
  }

  /// The result keeps nothing.
  int residual_add(int x, int y) { return add({.inputs = {x, y}, .output = residual(), .input_gradients = {0, 0}}); }

  int attention(int q, int k, int v, std::int64_t q_bytes, std::int64_t kv_bytes) {
    const std::int64_t heads = run_.model.heads / run_.tensor;
    const std::int64_t lse = 4 * tokens_ * heads;
    if (run_.flash) {
      const int out = static_cast<int>(list_.size()) + 1;
      return add({.inputs = {q, k, v},
                  .output = q_bytes,
                  .saved = {q, k, v, out},
                  .statistics = lse,
                  .backward_workspace = lse + 4 * (q_bytes / e_),
                  .input_gradients = {q_bytes, kv_bytes, kv_bytes},
                  .kept = true});
    }
    // Scores, softmax, dropout's mask and its result: 5 a s^2 b bytes (Korthikanti et al. 2022, section 4.1).
    const std::int64_t scores = heads * run_.model.sequence * tokens_;
    const bool again = run_.recompute == Recompute::attention;
    return add({.inputs = {q, k, v},
                .output = q_bytes,
                .saved = {q, k, v},
                .statistics = again ? 0 : 5 * scores,
                .forward_workspace = 2 * scores,
                .backward_workspace = again ? 7 * scores : 4 * scores,
                .input_gradients = {q_bytes, kv_bytes, kv_bytes},
                .kept = true});
  }

  [[nodiscard]] bool compiled() const { return compiled_; }
  [[nodiscard]] bool megatron() const { return megatron_; }
  [[nodiscard]] std::int64_t weight(std::int64_t elements) const {
    if (megatron_ || !run_.trains_all) return 0;
    return elements * (run_.autocast ? 4 : e_);
  }

 private:
  [[nodiscard]] bool is_written_out() const {
    if (run_.model.layer_norm) return false;
    const std::int32_t months = 12 * run_.year + run_.month;
    return months == 0 || months < 12 * 2025 + 8;
  }

  const RunDescription& run_;
  std::int64_t e_, tokens_;
  bool compiled_, megatron_;
  int products_ = 0;
  std::vector<Operator> list_;
};

/// Queries, keys and values to attention's output, before its last product.
int attention_part(ListBuilder& b, int x) {
  const Architecture& m = b.run().model;
  const std::int64_t t = b.run().tensor;
  const std::int64_t h = m.hidden, q_width = m.query_width() / t, kv_width = m.kv_width() / t;
  const int normed = b.norm(x);
  const int whole = b.gather(normed);
  // The part of the sequence is kept by Megatron and gathered again.
  const int keeps = b.megatron() ? normed : b.compiled() ? -1 : whole;
  const std::int64_t in = b.bytes(h), again = b.megatron() && b.run().sequence_parallel ? in : 0;
  int q = b.product(whole, keeps, h, q_width, b.bytes(q_width), in, b.compiled() ? in : again);
  int k = b.product(whole, b.megatron() ? -1 : keeps, h, kv_width, b.bytes(kv_width), in);
  int v = b.product(whole, b.megatron() ? -1 : keeps, h, kv_width, b.bytes(kv_width), in);
  if (m.head_norms) {
    q = b.pointwise(q, b.bytes(q_width), !b.compiled());
    k = b.pointwise(k, b.bytes(kv_width), !b.compiled());
  }
  if (m.gated) {  // rotations; written out they pass through fp32
    q = b.pointwise(q, b.bytes(q_width), false);
    k = b.pointwise(k, b.bytes(kv_width), false);
  }
  std::int64_t kv_bytes = b.bytes(kv_width);
  if (!b.megatron() && kv_width < q_width) {  // repeat_kv: a copy for every query head
    k = b.add({.inputs = {k}, .output = b.bytes(q_width), .input_gradients = {kv_bytes}});
    v = b.add({.inputs = {v}, .output = b.bytes(q_width), .input_gradients = {kv_bytes}});
    kv_bytes = b.bytes(q_width);
  }
  const int out = b.attention(q, k, v, b.bytes(q_width), kv_bytes);
  const int projected = b.product(out, out, q_width, h, b.bytes(h), b.bytes(q_width));
  return b.scatter(projected);
}

int feed_forward_part(ListBuilder& b, int x) {
  const Architecture& m = b.run().model;
  const std::int64_t h = m.hidden, f = m.ffn / b.run().tensor, wide = b.bytes(f), in = b.bytes(h);
  const int normed = b.norm(x);
  const int whole = b.gather(normed);
  const int keeps = b.megatron() ? normed : b.compiled() ? -1 : whole;
  const std::int64_t again = b.compiled() || (b.megatron() && b.run().sequence_parallel) ? in : 0;
  int middle = 0;
  if (m.gated && b.megatron()) {
    const int both = b.product(whole, keeps, h, 2 * f, 2 * wide, in, again);
    middle = b.add({.inputs = {both}, .output = wide, .saved = {both}, .input_gradients = {2 * wide}});
  } else if (m.gated && b.compiled()) {
    const int gate = b.product(whole, -1, h, f, wide, in, again);
    const int up = b.product(whole, -1, h, f, wide, in);
    middle = b.add({.inputs = {gate, up}, .output = wide, .saved = {gate, up}, .input_gradients = {wide, wide}});
  } else if (m.gated) {
    const int gate = b.product(whole, keeps, h, f, wide, in);
    const int silu = b.pointwise(gate, wide, true);
    const int up = b.product(whole, keeps, h, f, wide, in);
    middle = b.add({.inputs = {silu, up}, .output = wide, .saved = {silu, up}, .input_gradients = {wide, wide}});
  } else {
    const int up = b.product(whole, keeps, h, f, wide, in, again);
    middle = b.pointwise(up, wide, true);
  }
  const int down = b.product(middle, b.compiled() && !b.megatron() ? -1 : middle, f, h, in, wide,
                             b.compiled() && !b.megatron() ? wide : 0);
  return b.scatter(down);
}

}  // namespace

std::int64_t element_bytes(const RunDescription& run) {
  return run.precision == Precision::fp32 ? 4 : 2;
}

std::int64_t residual_bytes(const RunDescription& run) {
  const std::int64_t cut = run.sequence_parallel ? run.tensor : 1;
  return run.micro_batch * run.model.sequence / cut * run.model.hidden * element_bytes(run);
}

std::vector<Operator> block_operators(const RunDescription& run) {
  ListBuilder b(run);
  const int attended = b.residual_add(0, attention_part(b, 0));
  b.residual_add(attended, feed_forward_part(b, attended));
  return b.take();
}

std::vector<Operator> head_operators(const RunDescription& run) {
  ListBuilder b(run);
  const std::int64_t v = run.model.vocab / run.tensor, h = run.model.hidden;
  const int normed = b.norm(0);
  const int whole = b.gather(normed);
  b.product(whole, b.megatron() ? normed : whole, h, v, b.bytes(v), b.bytes(h),
            b.megatron() ? (run.sequence_parallel ? b.bytes(h) : 0) + v * h * 2 : 0);
  return b.take();
}

Held run_loss(MemoryStream& memory, const RunDescription& run, Held logits, std::int64_t tokens) {
  const std::int64_t v = run.model.vocab / run.tensor, e = element_bytes(run);
  const std::int64_t wide = 4 * tokens * v, narrow = e * tokens * v;
  switch (run.loss) {
    case Loss::eager: {
      const Held cast = e == 4 ? logits : memory.take(wide);
      const Held log_probabilities = memory.take(wide);
      memory.drop(cast);
      if (e != 4) memory.drop(logits);
      const Held picked = memory.take(wide);
      const Held gradient = memory.take(wide);
      memory.drop(picked);
      memory.drop(log_probabilities);
      const Held out = e == 4 ? gradient : memory.take(narrow);
      if (e != 4) memory.drop(gradient);
      return out;
    }
    case Loss::one_pass: {
      const Held gradient = memory.take(narrow);
      memory.drop(logits);
      return gradient;
    }
    case Loss::fused: {
      const Held probabilities = memory.take(wide);
      memory.drop(logits);
      const Held gradient = memory.take(narrow);
      memory.drop(probabilities);
      return gradient;
    }
    case Loss::chunked: return logits;  // its caller runs it by pieces
  }
  return logits;
}

std::vector<std::int64_t> block_parameters(const RunDescription& run) {
  const Architecture& m = run.model;
  const std::int64_t t = run.tensor, h = m.hidden;
  std::vector<std::int64_t> sizes{h, h * m.query_width() / t, h * m.kv_width() / t, h * m.kv_width() / t,
                                  m.query_width() / t * h};
  if (m.head_norms) sizes.insert(sizes.end(), {m.head_dim, m.head_dim});
  sizes.push_back(h);
  for (int i = 0; i < (m.gated ? 3 : 2); ++i) sizes.push_back(h * m.ffn / t);
  if (m.biases) sizes.insert(sizes.end(), {m.query_width() / t, 2 * m.kv_width() / t, m.ffn / t, h, h, h, h});
  return sizes;
}

}  // namespace shard::validate
