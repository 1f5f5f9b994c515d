// 16-bit linear layers and attention: the rounded result of the fp32 kernel, near the reference.
#include "executor/cpu/kernels/attention.h"
#include "executor/cpu/kernels/gemm.h"
#include "executor/cpu/kernels/linear.h"
#include "tests/kernels/half_support.h"

namespace shard::cpu::test {
namespace {

using model::OperatorKind;
using plan::Direction;

template <class H>
class HalfProducts : public testing::Test {};
TYPED_TEST_SUITE(HalfProducts, Halves);

// Edges below 256: there the library computes alike whatever the strides.
TYPED_TEST(HalfProducts, Linear) {
  using H = TypeParam;
  for (unsigned seed = 0; seed < 12; ++seed) {
    Shapes random(seed);
    const bool small = seed % 3 == 0;
    const LinearShape s{random.upto(small ? 5 : 250), random.upto(small ? 5 : 250), random.upto(small ? 5 : 250),
                        random.coin()};
    const bool bias = random.coin(), add = random.coin();
    const Store store = add ? Store::add : Store::write;
    const model::Attributes a{
        .rows = s.rows, .columns = s.in, .out_columns = s.out, .weight_in_out = s.weight_in_out, .has_bias = bias};
    const Vec x = rounded<H>(random_values(s.rows * s.in, seed + 1)),
              w = rounded<H>(random_values(s.in * s.out, seed + 2)),
              b = bias ? rounded<H>(random_values(s.out, seed + 3)) : Vec{},
              dy = rounded<H>(random_values(s.rows * s.out, seed + 4)),
              old_b = rounded<H>(random_values(s.out, seed + 5));
    const ref::Linear reference{u(s.rows), u(s.in), u(s.out), s.weight_in_out};
    const ref::LinearGradient g = ref::linear_backward(reference, x, w, dy);
    const auto total = [&](const Vec& gradient, const Vec& old) { return add ? sum(gradient, old) : gradient; };
    check_half<H>(
        [&](auto& c) {
          linear_forward(c.pool, s, c.in(x), c.in(w), bias ? c.in(b) : nullptr, c.out(s.rows * s.out),
                         c.workspace(OperatorKind::linear, Direction::forward, a));
        },
        {ref::linear(reference, x, w, b)}, 4e-6, "forward " + std::to_string(seed));
    check_half<H>(
        [&](auto& c) {
          linear_backward_input(c.pool, s, c.in(dy), c.in(w), add ? c.in_out(x) : c.out(s.rows * s.in), store,
                                c.workspace(OperatorKind::linear, Direction::backward_input, a));
        },
        {total(g.dx, x)}, 4e-6, "input " + std::to_string(seed));
    check_half<H>(
        [&](auto& c) {
          auto* dw = add ? c.in_out(w) : c.out(s.in * s.out);
          auto* db = !bias ? nullptr : add ? c.in_out(old_b) : c.out(s.out);
          linear_backward_weight(c.pool, s, c.in(x), c.in(dy), dw, db, store,
                                 c.workspace(OperatorKind::linear, Direction::backward_weight, a));
        },
        bias ? std::vector<Vec>{total(g.dw, w), total(g.db, old_b)} : std::vector<Vec>{total(g.dw, w)}, 4e-6,
        "weight " + std::to_string(seed));
  }
}

// Any edges and an inner dimension of several blocks: the same tiles with fp32 operands; a bias, and a sum.
TYPED_TEST(HalfProducts, TilesAndInnerBlocks) {
  using H = TypeParam;
  struct Case {
    std::int64_t m, n, k;
    bool a_transposed, b_transposed, add;
  };
  for (const Case& c : {Case{20, 1000, 2048, false, true, false}, Case{256, 256, 769, false, false, true},
                        Case{300, 530, 800, true, false, true}, Case{17, 33, 1600, true, true, false}}) {
    const Vec a = rounded<H>(random_values(c.m * c.k, 1)), b = rounded<H>(random_values(c.k * c.n, 2)),
              bias = rounded<H>(random_values(c.n, 3)), old = rounded<H>(random_values(c.m * c.n, 4));
    Vec expected = c.add ? old : Vec(u(c.m * c.n), 0.0);
    for (std::size_t i = 0; i < u(c.m); ++i)
      for (std::size_t j = 0; j < u(c.n); ++j) {
        double dot = bias[j];
        for (std::size_t l = 0; l < u(c.k); ++l)
          dot +=
              a[c.a_transposed ? l * u(c.m) + i : i * u(c.k) + l] * b[c.b_transposed ? j * u(c.k) + l : l * u(c.n) + j];
        expected[i * u(c.n) + j] += dot;
      }
    check_half<H>(
        [&](auto& call) {
          gemm_widened(call.pool, c.m, c.n, c.k, {call.in(a), c.a_transposed ? c.m : c.k, c.a_transposed},
                       {call.in(b), c.b_transposed ? c.k : c.n, c.b_transposed},
                       c.add ? call.in_out(old) : call.out(c.m * c.n), c.n, c.add ? Store::add : Store::write,
                       call.in(bias),
                       call.workspace(plan::gemm_workspace(c.m, c.n, c.k, Dtype::bf16, call.pool.threads()).count()));
        },
        {expected}, 1e-5);
  }
}

// Each operand may have a type of its own: an fp32 batch before 16-bit weights, say.
TYPED_TEST(HalfProducts, OperandsOfDifferentTypes) {
  using H = TypeParam;
  constexpr std::int64_t kEdge = 50;
  const Vec x = rounded<H>(random_values(kEdge * kEdge, 1)), w = rounded<H>(random_values(kEdge * kEdge, 2));
  std::vector<std::vector<float>> results;
  for (const bool mixed : {false, true}) {
    HalfCall<H, H> call({2, 0});
    H* y = call.out(kEdge * kEdge);
    const ConstElements left = mixed ? ConstElements(call.f32(x)) : ConstElements(call.in(x));
    linear_forward(call.pool, {kEdge, kEdge, kEdge, false}, left, call.in(w), nullptr, y,
                   call.workspace(plan::gemm_workspace(kEdge, kEdge, kEdge, kDtypeOf<H>, 2).count()));
    results.push_back(call.results()[0]);
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
}

struct Heads {
  std::int64_t batch, sequence, heads, kv_heads, dim;
};

TYPED_TEST(HalfProducts, Attention) {
  using H = TypeParam;
  for (const Heads& s : {Heads{1, 1, 1, 1, 1}, Heads{2, 5, 4, 2, 6}, Heads{2, 65, 3, 1, 15}, Heads{1, 150, 4, 2, 33},
                         Heads{3, 64, 2, 2, 20}}) {
    const AttentionShape shape{s.batch, s.sequence, s.heads, s.kv_heads, s.dim};
    const ref::Attention reference{u(s.batch), u(s.sequence), u(s.heads), u(s.kv_heads), u(s.dim)};
    const std::int64_t tokens = s.batch * s.sequence, qw = s.heads * s.dim, kw = s.kv_heads * s.dim,
                       width = qw + 2 * kw;
    const model::Attributes a{.rows = tokens,
                              .batch = s.batch,
                              .sequence = s.sequence,
                              .heads = s.heads,
                              .kv_heads = s.kv_heads,
                              .head_dim = s.dim};
    const Vec q = rounded<H>(random_values(tokens * qw, 1)), k = rounded<H>(random_values(tokens * kw, 2)),
              v = rounded<H>(random_values(tokens * kw, 3)), dy = rounded<H>(random_values(tokens * qw, 4));
    const ref::AttentionResult f = ref::attention(reference, q, k, v);
    const ref::AttentionGradient g = ref::attention_backward(reference, q, k, v, dy);
    check_half<H>(
        [&](auto& c) {
          attention_forward(c.pool, shape, {c.in(q), qw}, {c.in(k), kw}, {c.in(v), kw}, {c.out(tokens * qw), qw},
                            c.f32_out(s.batch * s.heads * s.sequence),
                            c.workspace(OperatorKind::attention, Direction::forward, a));
        },
        {f.y, f.lse}, 4e-6);
    check_half<H>(
        [&](auto& c) {
          auto* dq = c.out(tokens * qw);
          auto* dk = c.out(tokens * kw);
          attention_backward(c.pool, shape, {c.in(q), qw}, {c.in(k), kw}, {c.in(v), kw}, c.f32(f.lse), {c.in(dy), qw},
                             {dq, qw}, {dk, kw}, {c.out(tokens * kw), kw},
                             c.workspace(OperatorKind::attention, Direction::backward, a));
        },
        {g.dq, g.dk, g.dv}, 1e-5);
    Vec packed;
    for (std::int64_t t = 0; t < tokens; ++t) {
      packed.insert(packed.end(), q.begin() + t * qw, q.begin() + (t + 1) * qw);
      packed.insert(packed.end(), k.begin() + t * kw, k.begin() + (t + 1) * kw);
      packed.insert(packed.end(), v.begin() + t * kw, v.begin() + (t + 1) * kw);
    }
    check_half<H>(
        [&](auto& c) {
          auto* qkv = c.in(packed);
          auto* d = c.out(tokens * width);
          attention_backward(c.pool, shape, {qkv, width}, {qkv + qw, width}, {qkv + qw + kw, width}, c.f32(f.lse),
                             {c.in(dy), qw}, {d, width}, {d + qw, width}, {d + qw + kw, width},
                             c.workspace(OperatorKind::attention, Direction::backward, a));
        },
        {}, 0, "packed");
  }
}

}  // namespace
}  // namespace shard::cpu::test
