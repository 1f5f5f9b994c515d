// What some families have beside gpt2 and llama, against the reference: activations, positions, norms, heads in groups.
#include <cmath>

#include "executor/cpu/kernels/activation.h"
#include "executor/cpu/kernels/embedding.h"
#include "executor/cpu/kernels/norm.h"
#include "executor/cpu/kernels/rotary.h"
#include "executor/kernels/vector_math.h"
#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

class FamilyActivation : public testing::TestWithParam<std::int64_t> {
 protected:
  const std::int64_t n = GetParam();
  const Vec a = random_values(n, 1, 3);
  const Vec b = random_values(n, 2, 3);
  const Vec d = random_values(n, 3);

  template <class F>
  Vec each(F f) const {
    Vec y(a.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = f(a[i], b[i], d[i]);
    return y;
  }
};

TEST_P(FamilyActivation, GeluByErf) {
  check([&](Call& call) { gelu_erf_forward(call.pool, n, call.in(a), call.out(n)); },
        {each([](double x, double, double) { return ref::gelu_erf(x); })}, 2e-7);
  const Vec dx = each([](double x, double, double g) { return g * ref::gelu_erf_slope(x); });
  check([&](Call& call) { gelu_erf_backward(call.pool, n, call.in(a), call.in(d), call.out(n)); }, {dx}, 4e-7);
  check(
      [&](Call& call) {
        float* g = call.in_out(d);
        gelu_erf_backward(call.pool, n, call.in(a), g, g);
      },
      {dx}, 4e-7);
}

TEST_P(FamilyActivation, Relu) {
  check([&](Call& call) { relu_forward(call.pool, n, call.in(a), call.out(n)); },
        {each([](double x, double, double) { return ref::relu(x); })}, 0);
  check(
      [&](Call& call) {
        float* g = call.in_out(d);
        relu_backward(call.pool, n, call.in(a), g, g);
      },
      {each([](double x, double, double g) { return x > 0 ? g : 0; })}, 0);
}

TEST_P(FamilyActivation, Geglu) {
  check([&](Call& call) { geglu_forward(call.pool, n, call.in(a), call.in(b), call.out(n)); },
        {each([](double x, double up, double) { return ref::gelu(x) * up; })}, 3e-7);
  check(
      [&](Call& call) {
        float* gate = call.in_out(d);  // over dy
        float* up = call.in_out(b);    // over up
        geglu_backward(call.pool, n, call.in(a), up, gate, gate, up);
      },
      {each([](double x, double up, double g) { return g * up * ref::gelu_slope(x); }),
       each([](double x, double, double g) { return g * ref::gelu(x); })},
      3e-7);
}

// Rows of gates and ups are those of both apart.
TEST_P(FamilyActivation, PackedSwiglu) {
  for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{13}}) {
    const Vec x = random_values(2 * rows * n, 5, 3), dy = random_values(rows * n, 6);
    Vec y(u(rows * n)), dx(u(2 * rows * n));
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < n; ++c) {
        const double gate = x[u(2 * r * n + c)], up = x[u((2 * r + 1) * n + c)], g = dy[u(r * n + c)];
        y[u(r * n + c)] = ref::swiglu(gate, up);
        dx[u(2 * r * n + c)] = g * ref::swiglu_gate_slope(gate, up);
        dx[u((2 * r + 1) * n + c)] = g * ref::swiglu(gate, 1);
      }
    check([&](Call& call) { swiglu_packed_forward(call.pool, rows, n, call.in(x), call.out(rows * n)); }, {y}, 3e-7);
    check(
        [&](Call& call) {
          swiglu_packed_backward(call.pool, rows, n, call.in(x), call.in(dy), call.out(2 * rows * n));
        },
        {dx}, 3e-7);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, FamilyActivation, testing::Values(1, 15, 16, 33, 1000, 20001));

// Over all floats that matter, some 10,000 of each power of two.
TEST(Normal, FunctionAndDensity) {
  double worst = 0;
  for (std::uint32_t bits = 0x2f000000U; bits < 0x43000000U; bits += 839) {
    const float size = std::bit_cast<float>(bits);
    for (const float x : {size, -size}) {
      const Normal normal = normal_f32(x);
      const double p = 0.5 * std::erfc(-static_cast<double>(x) / std::sqrt(2.0));
      const double density = std::exp(-0.5 * static_cast<double>(x) * static_cast<double>(x)) / std::sqrt(2 * M_PI);
      worst = std::max({worst, std::abs(static_cast<double>(normal.probability) - p),
                        std::abs(static_cast<double>(normal.density) - density)});
    }
  }
  EXPECT_LT(worst, 3e-7);
  EXPECT_EQ(normal_f32(200.0F).probability, 1.0F);
  EXPECT_EQ(normal_f32(-200.0F).probability, 0.0F);
  EXPECT_TRUE(std::isnan(normal_f32(NAN).probability));
}

TEST(FamilyActivation, NanStaysNan) {
  ThreadPool pool(1);
  const float x[] = {NAN};
  float y[1] = {};
  relu_forward(pool, 1, x, y);
  EXPECT_TRUE(std::isnan(y[0]));
  gelu_erf_forward(pool, 1, x, y);
  EXPECT_TRUE(std::isnan(y[0]));
}

TEST(FamilyRotary, TurnsSomeElementsOfSomeHeads) {
  const std::vector<float> own{1.0F, 0.25F, 0.03F, 0.002F};
  const std::vector<RotaryShape> shapes = {
      {.batch = 2, .sequence = 9, .heads = 3, .head_dim = 8, .turned = 2},
      {.batch = 1, .sequence = 7, .heads = 4, .head_dim = 6, .passed = 2},
      {.batch = 2,
       .sequence = 5,
       .heads = 2,
       .head_dim = 12,
       .turned = 8,
       .passed = 1,
       .factor = 1.25F,
       .frequencies = own.data()},
      {.batch = 1, .sequence = 4, .heads = 2, .head_dim = 200, .base = 500, .turned = 180, .passed = 1}};
  for (const RotaryShape& s : shapes) {
    ref::Turn turn{u(s.batch),    u(s.sequence),    u(s.heads), u(s.passed),
                   u(s.head_dim), u(2 * s.pairs()), {},         static_cast<double>(s.factor)};
    for (std::int64_t i = 0; i < s.pairs(); ++i)
      turn.frequencies.push_back(
          s.frequencies != nullptr
              ? static_cast<double>(s.frequencies[i])
              : std::pow(static_cast<double>(s.base), -static_cast<double>(i) / static_cast<double>(s.pairs())));
    const std::int64_t n = s.batch * s.sequence * s.row();
    const Vec x = random_values(n, 1);
    check([&](Call& call) { rotary_forward(call.pool, s, call.in(x), call.out(n)); }, {ref::turn(turn, 1, x)}, 2e-6);
    check(
        [&](Call& call) {
          float* d = call.in_out(x);
          rotary_backward(call.pool, s, d, d);
        },
        {ref::turn(turn, -1, x)}, 2e-6);
  }
}

TEST(FamilyHeads, GroupsAreSplitAndJoined) {
  for (const GroupShape& s : {GroupShape{1, 1, 1, 1}, GroupShape{7, 4, 4, 6}, GroupShape{33, 6, 2, 5}}) {
    const std::vector<std::size_t> places = ref::group_places(u(s.heads), u(s.kv_heads));
    const std::int64_t n = s.rows * s.all() * s.head_dim;
    const Vec x = random_values(n, 1);
    Vec y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t head = i / u(s.head_dim) % places.size();
      y[i + places[head] * u(s.head_dim) - head * u(s.head_dim)] = x[i];
    }
    check([&](Call& call) { split_groups(call.pool, s, call.in(x), call.out(n)); }, {y}, 0);
    check([&](Call& call) { join_groups(call.pool, s, call.in(y), call.out(n)); }, {x}, 0);
  }
}

TEST(FamilyNorm, WeightHasAnOffset) {
  const NormShape shape{.rows = 37, .columns = 67, .weight_offset = 1};
  const Vec x = random_values(37 * 67, 1), w = random_values(67, 2), dy = random_values(37 * 67, 3);
  Vec whole = w;
  for (double& v : whole) v += 1;
  const ref::Norm forward = ref::rms_norm(37, 67, 1e-5, x, whole);
  const ref::NormGradient g = ref::rms_norm_backward(37, 67, 1e-5, x, whole, dy);
  check(
      [&](Call& call) {
        float* y = call.out(37 * 67);
        rms_norm_forward(call.pool, shape, 1e-5F, call.in(x), call.in(w), y, call.out(37));
      },
      {forward.y, forward.rstd}, 1e-6);
  check(
      [&](Call& call) {
        float* dx = call.out(37 * 67);
        rms_norm_backward(call.pool, shape, call.in(x), call.in(w), call.in(forward.rstd), call.in(dy), dx,
                          Store::write, call.out(67));
      },
      {g.dx, g.dw}, 1e-6);
}

TEST(FamilyPosition, BeginsAtALaterRow) {
  const PositionShape shape{.batch = 3, .sequence = 5, .positions = 9, .columns = 19, .first = 2};
  const Vec x = random_values(3 * 5 * 19, 1), table = random_values(9 * 19, 2);
  Vec y = x, d(9 * 19, 0.0);
  for (std::size_t t = 0; t < 15; ++t)
    for (std::size_t i = 0; i < 19; ++i) {
      const std::size_t at = (2 + t % 5) * 19 + i;
      y[t * 19 + i] += table[at];
      d[at] += x[t * 19 + i];
    }
  check([&](Call& call) { add_position_forward(call.pool, shape, call.in(x), call.in(table), call.out(3 * 5 * 19)); },
        {y}, 1e-7);
  check([&](Call& call) { add_position_backward(call.pool, shape, call.in(x), call.out(9 * 19)); }, {d}, 2e-7);
  check([&](Call& call) { add_position_backward(call.pool, shape, call.in(x), call.in_out(table), Store::add); },
        {sum(d, table)}, 2e-7);
}

}  // namespace
}  // namespace shard::cpu::test
