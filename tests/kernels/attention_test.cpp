// Attention and rotary embedding against the reference: separate and packed heads, shared key heads, partial tiles.
#include "executor/cpu/kernels/attention.h"

#include "executor/cpu/kernels/rotary.h"
#include "sim/target/workspace.h"
#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

struct AttentionCase {
  std::int64_t batch, sequence, heads, kv_heads, dim;
};

class AttentionTest : public testing::TestWithParam<AttentionCase> {
 protected:
  const AttentionCase c = GetParam();
  const AttentionShape shape{c.batch, c.sequence, c.heads, c.kv_heads, c.dim};
  const ref::Attention reference{static_cast<std::size_t>(c.batch), static_cast<std::size_t>(c.sequence),
                                 static_cast<std::size_t>(c.heads), static_cast<std::size_t>(c.kv_heads),
                                 static_cast<std::size_t>(c.dim)};
  const std::int64_t tokens = c.batch * c.sequence;
  const std::int64_t q_width = c.heads * c.dim;
  const std::int64_t k_width = c.kv_heads * c.dim;
  const Vec q = random_values(tokens * q_width, 1, 1.5);
  const Vec k = random_values(tokens * k_width, 2, 1.5);
  const Vec v = random_values(tokens * k_width, 3);
  const Vec dy = random_values(tokens * q_width, 4);
  const ref::AttentionResult forward = ref::attention(reference, q, k, v);
  const ref::AttentionGradient gradient = ref::attention_backward(reference, q, k, v, dy);
  static constexpr double kTolerance = 5e-6;

  // [T, (H + 2K) D]: rows of q, then k, then v.
  Vec packed(const Vec& a, const Vec& b, const Vec& d) const {
    Vec all;
    const auto append = [&all](const Vec& part, std::int64_t t, std::int64_t width) {
      all.insert(all.end(), part.begin() + t * width, part.begin() + (t + 1) * width);
    };
    for (std::int64_t t = 0; t < tokens; ++t) {
      append(a, t, q_width);
      append(b, t, k_width);
      append(d, t, k_width);
    }
    return all;
  }
};

TEST_P(AttentionTest, Forward) {
  check(
      [&](Call& call) {
        float* y = call.out(tokens * q_width);
        float* lse = call.out(c.batch * c.heads * c.sequence);
        attention_forward(call.pool, shape, {call.in(q), q_width}, {call.in(k), k_width}, {call.in(v), k_width},
                          {y, q_width}, lse,
                          call.workspace(plan::attention_forward_workspace(c.sequence, call.pool.threads()).count()));
      },
      {forward.y, forward.lse}, kTolerance);
}

TEST_P(AttentionTest, Backward) {
  check(
      [&](Call& call) {
        float* dq = call.out(tokens * q_width);
        float* dk = call.out(tokens * k_width);
        float* dv = call.out(tokens * k_width);
        attention_backward(call.pool, shape, {call.in(q), q_width}, {call.in(k), k_width}, {call.in(v), k_width},
                           call.in(forward.lse), {call.in(dy), q_width}, {dq, q_width}, {dk, k_width}, {dv, k_width},
                           call.workspace(plan::attention_backward_workspace(c.sequence, call.pool.threads()).count()));
      },
      {gradient.dq, gradient.dk, gradient.dv}, kTolerance);
}

TEST_P(AttentionTest, PackedHeads) {
  const std::int64_t width = q_width + 2 * k_width;
  check(
      [&](Call& call) {
        const float* qkv = call.in(packed(q, k, v));
        float* y = call.out(tokens * q_width);
        float* lse = call.out(c.batch * c.heads * c.sequence);
        float* d = call.out(tokens * width);
        const HeadsView qh{qkv, width};
        const HeadsView kh{qkv + q_width, width};
        const HeadsView vh{qkv + q_width + k_width, width};
        const auto workspace =
            call.workspace(plan::attention_backward_workspace(c.sequence, call.pool.threads()).count());
        attention_forward(call.pool, shape, qh, kh, vh, {y, q_width}, lse, workspace);
        attention_backward(call.pool, shape, qh, kh, vh, lse, {call.in(dy), q_width}, {d, width}, {d + q_width, width},
                           {d + q_width + k_width, width}, workspace);
      },
      {forward.y, forward.lse, packed(gradient.dq, gradient.dk, gradient.dv)}, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest,
                         testing::Values(AttentionCase{1, 1, 1, 1, 1}, AttentionCase{2, 5, 4, 2, 6},
                                         AttentionCase{1, 64, 2, 2, 20}, AttentionCase{2, 65, 3, 1, 16},
                                         AttentionCase{1, 150, 4, 2, 33}));

TEST(Rotary, ForwardAndBackwardInPlace) {
  const RotaryShape shape{2, 37, 3, 20, 10000.0F};
  const Vec x = random_values(2 * 37 * 3 * 20, 1);
  // The angle, as Hugging Face's, is a rounded product: at position 36 it is off by up to 36 x 2^-24 radians.
  check([&](Call& call) { rotary_forward(call.pool, shape, call.in(x), call.out(2 * 37 * 60)); },
        {ref::rotary(2, 37, 3, 20, 10000, 1, x)}, 4e-6);
  check(
      [&](Call& call) {
        float* d = call.in_out(x);
        rotary_backward(call.pool, shape, d, d);
      },
      {ref::rotary(2, 37, 3, 20, 10000, -1, x)}, 4e-6);
}

TEST(Rotary, MorePairsThanOneBlock) {
  const RotaryShape shape{1, 5, 2, 260, 500000.0F};
  const Vec x = random_values(5 * 2 * 260, 1);
  check([&](Call& call) { rotary_forward(call.pool, shape, call.in(x), call.out(5 * 520)); },
        {ref::rotary(1, 5, 2, 260, 500000, 1, x)}, 2e-6);
}

}  // namespace
}  // namespace shard::cpu::test
