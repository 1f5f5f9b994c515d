// 16-bit operators that work by element or by row: the rounded result of the fp32 kernel, near the reference.
#include "executor/cpu/kernels/activation.h"
#include "executor/cpu/kernels/elementwise.h"
#include "executor/cpu/kernels/embedding.h"
#include "executor/cpu/kernels/loss.h"
#include "executor/cpu/kernels/norm.h"
#include "executor/cpu/kernels/rotary.h"
#include "tests/kernels/half_support.h"

namespace shard::cpu::test {
namespace {

using model::OperatorKind;
using plan::Direction;

constexpr unsigned kHalfCases = 6;

template <class H>
class HalfRows : public testing::Test {};
TYPED_TEST_SUITE(HalfRows, Halves);

template <class F>
Vec each(const Vec& a, const Vec& b, const F& fn) {
  Vec y(a.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = fn(a[i], b[i]);
  return y;
}

TYPED_TEST(HalfRows, Elementwise) {
  using H = TypeParam;
  for (const std::int64_t n : {1, 17, 1000, 40001}) {
    const Vec a = rounded<H>(random_values(n, 1)), b = rounded<H>(random_values(n, 2));
    check_half<H>([&](auto& c) { add(c.pool, n, c.in(a), c.in(b), c.out(n)); }, {sum(a, b)}, 1e-7);
    check_half<H>([&](auto& c) { add_into(c.pool, n, c.in(a), c.in_out(b)); }, {sum(a, b)}, 1e-7);
    check_half<H>([&](auto& c) { scale(c.pool, n, 0.3F, c.in(a), c.out(n)); }, {}, 0);
    check_half<H>([&](auto& c) { fill(c.pool, n, 0.3F, c.out(n)); }, {Vec(u(n), 0.3)}, 1e-7);
  }
}

TYPED_TEST(HalfRows, Activations) {
  using H = TypeParam;
  for (const std::int64_t n : {1, 31, 1000, 40001}) {
    const Vec x = rounded<H>(random_values(n, 1, 2)), z = rounded<H>(random_values(n, 2)),
              dy = rounded<H>(random_values(n, 3));
    check_half<H>([&](auto& c) { gelu_forward(c.pool, n, c.in(x), c.out(n)); },
                  {each(x, x, [](double v, double) { return ref::gelu(v); })}, 5e-7);
    check_half<H>(
        [&](auto& c) {
          auto* d = c.in_out(dy);
          gelu_backward(c.pool, n, c.in(x), d, d);
        },
        {each(x, dy, [](double v, double d) { return d * ref::gelu_slope(v); })}, 5e-7);
    check_half<H>([&](auto& c) { swiglu_forward(c.pool, n, c.in(x), c.in(z), c.out(n)); },
                  {each(x, z, [](double g, double up) { return ref::swiglu(g, up); })}, 5e-7);
    const Vec gate_slope = each(x, z, [](double g, double up) { return ref::swiglu_gate_slope(g, up); });
    check_half<H>(
        [&](auto& c) {
          auto* gate = c.out(n);
          swiglu_backward(c.pool, n, c.in(x), c.in(z), c.in(dy), gate, c.out(n));
        },
        {each(gate_slope, dy, [](double s, double d) { return s * d; }),
         each(x, dy, [](double g, double d) { return d * ref::swiglu(g, 1); })},
        5e-7);
  }
}

TYPED_TEST(HalfRows, Norms) {
  using H = TypeParam;
  for (unsigned seed = 0; seed < kHalfCases; ++seed) {
    Shapes random(seed);
    const std::int64_t rows = random.upto(90), n = random.upto(300) + 1;
    const NormShape shape{rows, n};
    const bool add_dx = random.coin(), add_parameters = random.coin();
    const Store into_x = add_dx ? Store::add : Store::write, into_w = add_parameters ? Store::add : Store::write;
    const Vec x = rounded<H>(random_values(rows * n, seed + 1)), w = rounded<H>(random_values(n, seed + 2)),
              b = rounded<H>(random_values(n, seed + 3)), dy = rounded<H>(random_values(rows * n, seed + 4)),
              old = rounded<H>(random_values(rows * n, seed + 5)), old_w = rounded<H>(random_values(n, seed + 6));
    const ref::Norm f = ref::layer_norm(u(rows), u(n), 1e-5, x, w, b);
    const ref::NormGradient g = ref::layer_norm_backward(u(rows), u(n), 1e-5, x, w, dy);
    check_half<H>(
        [&](auto& c) {
          float* mean = c.f32_out(rows);
          layer_norm_forward(c.pool, shape, 1e-5F, c.in(x), c.in(w), c.in(b), c.out(rows * n), mean, c.f32_out(rows));
        },
        {f.y, f.mean, f.rstd}, 1e-5);
    const auto before = [](bool add, const Vec& gradient, const Vec& with) {
      return add ? sum(gradient, with) : gradient;
    };
    check_half<H>(
        [&](auto& c) {
          auto* dx = c.in_out(add_dx ? old : dy);  // written: over dy
          auto* dw = add_parameters ? c.in_out(old_w) : c.out(n);
          auto* db = add_parameters ? c.in_out(old_w) : c.out(n);
          layer_norm_backward(c.pool, shape, c.in(x), c.in(w), c.f32(f.mean), c.f32(f.rstd), add_dx ? c.in(dy) : dx, dx,
                              into_x, dw, db, into_w);
        },
        {before(add_dx, g.dx, old), before(add_parameters, g.dw, old_w), before(add_parameters, g.db, old_w)}, 1e-5);
    const ref::Norm rf = ref::rms_norm(u(rows), u(n), 1e-5, x, w);
    const ref::NormGradient rg = ref::rms_norm_backward(u(rows), u(n), 1e-5, x, w, dy);
    check_half<H>(
        [&](auto& c) {
          auto* y = c.in_out(x);
          rms_norm_forward(c.pool, shape, 1e-5F, y, c.in(w), y, c.f32_out(rows));
        },
        {rf.y, rf.rstd}, 1e-5);
    check_half<H>(
        [&](auto& c) {
          auto* dx = add_dx ? c.in_out(old) : c.out(rows * n);
          auto* dw = add_parameters ? c.in_out(old_w) : c.out(n);
          rms_norm_backward(c.pool, shape, c.in(x), c.in(w), c.f32(rf.rstd), c.in(dy), dx, into_x, dw, into_w);
        },
        {before(add_dx, rg.dx, old), before(add_parameters, rg.dw, old_w)}, 1e-5);
  }
}

// Many tokens of one id: their sum is rounded once, not once per token.
TYPED_TEST(HalfRows, Embedding) {
  using H = TypeParam;
  for (unsigned seed = 0; seed < kHalfCases; ++seed) {
    Shapes random(seed);
    const std::int64_t tokens = random.upto(300), columns = random.upto(300);
    const std::int64_t vocabulary = random.upto(seed % 2 == 0 ? 3 : 500);
    const EmbeddingShape shape{tokens, vocabulary, columns};
    const std::vector<std::int32_t> ids = random_tokens_below(tokens, static_cast<std::int32_t>(vocabulary), seed);
    const Vec table = rounded<H>(random_values(vocabulary * columns, seed + 1)),
              dy = rounded<H>(random_values(tokens * columns, seed + 2));
    Vec y, d(table.size(), 0.0);
    for (std::size_t t = 0; t < ids.size(); ++t)
      for (std::size_t i = 0; i < u(columns); ++i) {
        y.push_back(table[u(ids[t] * columns) + i]);
        d[u(ids[t] * columns) + i] += dy[t * u(columns) + i];
      }
    const model::Attributes a{.rows = tokens, .out_columns = columns};
    check_half<H>([&](auto& c) { embedding_forward(c.pool, shape, ids.data(), c.in(table), c.out(tokens * columns)); },
                  {y}, 0);
    check_half<H>(
        [&](auto& c) {
          embedding_backward(c.pool, shape, c.in(dy), ids.data(), c.out(vocabulary * columns), Store::write,
                             c.workspace(OperatorKind::embedding, Direction::backward, a));
        },
        {d}, 2e-6);
    check_half<H>(
        [&](auto& c) {
          embedding_backward(c.pool, shape, c.in(dy), ids.data(), c.in_out(table), Store::add,
                             c.workspace(OperatorKind::embedding, Direction::backward, a));
        },
        {sum(d, table)}, 2e-6);
  }
}

TYPED_TEST(HalfRows, Position) {
  using H = TypeParam;
  for (unsigned seed = 0; seed < kHalfCases; ++seed) {
    Shapes random(seed);
    const std::int64_t batch = random.upto(9), sequence = random.upto(20), columns = random.upto(300);
    const std::int64_t positions = sequence + random.upto(5) - 1;
    const PositionShape shape{batch, sequence, positions, columns};
    const std::int64_t n = batch * sequence * columns;
    const Vec x = rounded<H>(random_values(n, seed + 1)),
              table = rounded<H>(random_values(positions * columns, seed + 2));
    Vec y = x, d(table.size(), 0.0);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t at = i / u(columns) % u(sequence) * u(columns) + i % u(columns);
      y[i] += table[at];
      d[at] += x[i];
    }
    check_half<H>([&](auto& c) { add_position_forward(c.pool, shape, c.in(x), c.in(table), c.out(n)); }, {y}, 1e-7);
    check_half<H>([&](auto& c) { add_position_backward(c.pool, shape, c.in(x), c.out(positions * columns)); }, {d},
                  1e-6);
    check_half<H>([&](auto& c) { add_position_backward(c.pool, shape, c.in(x), c.in_out(table), Store::add); },
                  {sum(d, table)}, 1e-6);
  }
}

TYPED_TEST(HalfRows, Rotary) {
  using H = TypeParam;
  const RotaryShape shape{2, 37, 3, 20, 10000.0F};
  const std::int64_t n = 2 * 37 * 60;
  const Vec x = rounded<H>(random_values(n, 1));
  check_half<H>([&](auto& c) { rotary_forward(c.pool, shape, c.in(x), c.out(n)); },
                {ref::rotary(2, 37, 3, 20, 10000, 1, x)}, 4e-6);
  check_half<H>(
      [&](auto& c) {
        auto* d = c.in_out(x);
        rotary_backward(c.pool, shape, d, d);
      },
      {ref::rotary(2, 37, 3, 20, 10000, -1, x)}, 4e-6);
}

TYPED_TEST(HalfRows, CrossEntropy) {
  using H = TypeParam;
  for (unsigned seed = 0; seed < kHalfCases; ++seed) {
    Shapes random(seed);
    const std::int64_t rows = random.upto(40), v = random.upto(seed == 0 ? 3000 : 300);
    const CrossEntropyShape shape{rows, v};
    const Vec logits = rounded<H>(random_values(rows * v, seed + 1, 4));
    const ref::Tokens targets = random_tokens_below(rows, static_cast<std::int32_t>(v), seed + 2);
    const ref::Loss f = ref::cross_entropy(u(rows), u(v), logits, targets);
    check_half<H>(
        [&](auto& c) {
          float* loss = c.f32_out(1);
          cross_entropy_forward(c.pool, shape, c.in(logits), targets.data(), loss, c.f32_out(rows));
        },
        {{f.loss}, f.lse}, 1e-6);
    // A loss scale as fp16 training has it, so that small gradients are not all lost.
    check_half<H>(
        [&](auto& c) {
          auto* d = c.in_out(logits);
          cross_entropy_backward(c.pool, shape, d, targets.data(), c.f32(f.lse), 1024.0F, d);
        },
        {ref::cross_entropy_backward(u(rows), u(v), logits, targets, 1024)}, 2e-6);
  }
}

TYPED_TEST(HalfRows, Mse) {
  using H = TypeParam;
  for (const std::int64_t n : {1, 19, 70001}) {
    const Vec a = rounded<H>(random_values(n, 1)), b = rounded<H>(random_values(n, 2));
    check_half<H>([&](auto& c) { mse_forward(c.pool, n, c.in(a), c.in(b), c.f32_out(1)); }, {{ref::mse(a, b)}}, 2e-7);
    check_half<H>([&](auto& c) { mse_backward(c.pool, n, c.in(a), c.in(b), 512.0F, c.out(n)); },
                  {ref::mse_backward(a, b, 512)}, 3e-7);
  }
}

// Every 16-bit value to fp32 and back, and between the two types through fp32.
TYPED_TEST(HalfRows, ConvertCopy) {
  using H = TypeParam;
  using Other = std::conditional_t<std::is_same_v<H, Bf16>, F16, Bf16>;
  constexpr std::int64_t kAll = 1 << 16;
  std::vector<H> all(kAll), back(kAll), same(kAll);
  std::vector<float> wide(kAll);
  std::vector<Other> other(kAll), expected(kAll);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    convert_copy(pool, kAll, all.data(), wide.data());
    convert_copy(pool, kAll, wide.data(), back.data());
    convert_copy(pool, kAll, all.data(), same.data());
    convert_copy(pool, kAll, all.data(), other.data());
    convert_copy(pool, kAll, wide.data(), expected.data());
    EXPECT_EQ(same, all);
    EXPECT_EQ(other, expected);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (std::isnan(wide[i]))
        ASSERT_TRUE(std::isnan(to_f32(back[i]))) << i;
      else
        ASSERT_EQ(back[i], all[i]) << i;
    }
  }
}

}  // namespace
}  // namespace shard::cpu::test
