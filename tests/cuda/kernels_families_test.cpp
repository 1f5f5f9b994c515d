// What the device has for some families beside gpt2 and llama, against the reference: activations, positions, norms,
// heads in groups.
#include <cmath>

#include "tests/cuda/support.h"

namespace shard::cuda::test {
namespace {

template <class T>
class CudaFamilies : public testing::Test {};
TYPED_TEST_SUITE(CudaFamilies, ElementTypes);

TYPED_TEST(CudaFamilies, ActivationsOfOneInput) {
  using T = TypeParam;
  for (const std::int64_t n : kLengths) {
    const Vec x = rounded<T>(random_values(n, 1, 3)), d = rounded<T>(random_values(n, 2));
    const auto forward = [&](const auto& kernel, double (*reference)(double), double tolerance) {
      check<T>(
          [&](auto& c) {
            auto* xs = c.in(x);
            auto* ys = c.out(n);
            c.run([&] { kernel(c.stream(), n, xs, ys); });
          },
          {each([&](double v, double, double) { return reference(v); }, x, x, x)}, tolerance);
    };
    const auto backward = [&](const auto& kernel, double (*slope)(double), double tolerance) {
      check<T>(
          [&](auto& c) {
            auto* xs = c.in(x);
            auto* ds = c.in_out(d);
            c.run([&] { kernel(c.stream(), n, xs, ds, ds); });
          },
          {each([&](double v, double g, double) { return g * slope(v); }, x, d, d)}, tolerance);
    };
    forward(relu_forward, &ref::relu, 0);
    backward(
        relu_backward, [](double v) { return v > 0 ? 1.0 : 0.0; }, 0);
    forward(gelu_erf_forward, &ref::gelu_erf, 2e-7);
    backward(gelu_erf_backward, &ref::gelu_erf_slope, 4e-7);
    check<T>(
        [&](auto& c) {
          auto* xs = c.in_out(x);
          c.run([&] { scale(c.stream(), n, 1.5F, xs, xs); });
        },
        {each([](double v, double, double) { return 1.5 * v; }, x, x, x)}, 1e-7);
  }
}

TYPED_TEST(CudaFamilies, Geglu) {
  using T = TypeParam;
  for (const std::int64_t n : kLengths) {
    const Vec gate = rounded<T>(random_values(n, 1, 3)), up = rounded<T>(random_values(n, 2)),
              d = rounded<T>(random_values(n, 3));
    check<T>(
        [&](auto& c) {
          auto* g = c.in(gate);
          auto* up_values = c.in(up);
          auto* ys = c.out(n);
          c.run([&] { geglu_forward(c.stream(), n, g, up_values, ys); });
        },
        {each([](double g, double v, double) { return ref::gelu(g) * v; }, gate, up, d)}, 3e-7);
    check<T>(
        [&](auto& c) {  // over dy and over up
          auto* g = c.in(gate);
          auto* v = c.in_out(d);
          auto* up_values = c.in_out(up);
          c.run([&] { geglu_backward(c.stream(), n, g, up_values, v, v, up_values); });
        },
        {each([](double g, double v, double dy) { return dy * v * ref::gelu_slope(g); }, gate, up, d),
         each([](double g, double, double dy) { return dy * ref::gelu(g); }, gate, up, d)},
        3e-7);
  }
}

TYPED_TEST(CudaFamilies, PackedSwiglu) {
  using T = TypeParam;
  for (const std::int64_t columns : {1, 8, 33, 2055})
    for (const std::int64_t rows : {1, 13}) {
      const std::int64_t n = rows * columns;
      const Vec x = rounded<T>(random_values(2 * n, 5, 3)), dy = rounded<T>(random_values(n, 6));
      Vec y(u(n)), dx(u(2 * n));
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) {
          const std::size_t gate = u(2 * r * columns + c), up = gate + u(columns), at = u(r * columns + c);
          y[at] = ref::swiglu(x[gate], x[up]);
          dx[gate] = dy[at] * ref::swiglu_gate_slope(x[gate], x[up]);
          dx[up] = dy[at] * ref::swiglu(x[gate], 1);
        }
      check<T>(
          [&](auto& c) {
            auto* xs = c.in(x);
            auto* ys = c.out(n);
            c.run([&] { swiglu_packed_forward(c.stream(), rows, columns, xs, ys); });
          },
          {y}, 3e-7);
      check<T>(
          [&](auto& c) {
            auto* xs = c.in(x);
            auto* ds = c.in(dy);
            auto* to = c.out(2 * n);
            c.run([&] { swiglu_packed_backward(c.stream(), rows, columns, xs, ds, to); });
          },
          {dx}, 3e-7);
    }
}

TYPED_TEST(CudaFamilies, RotaryOfSomeElementsOfSomeHeads) {
  using T = TypeParam;
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
    const Vec x = rounded<T>(random_values(n, 1));
    check<T>(
        [&](auto& c) {
          auto* from = c.in(x);
          auto* to = c.out(n);
          c.run([&] { rotary_forward(c.stream(), s, from, to); });
        },
        {ref::turn(turn, 1, x)}, 2e-6);
    check<T>(
        [&](auto& c) {
          auto* d = c.in_out(x);
          c.run([&] { rotary_backward(c.stream(), s, d, d); });
        },
        {ref::turn(turn, -1, x)}, 2e-6);
  }
}

TYPED_TEST(CudaFamilies, HeadsInGroups) {
  using T = TypeParam;
  for (const GroupShape& s : {GroupShape{1, 1, 1, 1}, GroupShape{7, 4, 4, 6}, GroupShape{33, 6, 2, 5}}) {
    const std::vector<std::size_t> places = ref::group_places(u(s.heads), u(s.kv_heads));
    const std::int64_t n = s.rows * s.all() * s.head_dim;
    const Vec x = rounded<T>(random_values(n, 1));
    Vec y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t head = i / u(s.head_dim) % places.size();
      y[i + places[head] * u(s.head_dim) - head * u(s.head_dim)] = x[i];
    }
    check<T>(
        [&](auto& c) {
          auto* from = c.in(x);
          auto* to = c.out(n);
          c.run([&] { split_groups(c.stream(), s, from, to); });
        },
        {y}, 0);
    check<T>(
        [&](auto& c) {
          auto* from = c.in(y);
          auto* to = c.out(n);
          c.run([&] { join_groups(c.stream(), s, from, to); });
        },
        {x}, 0);
  }
}

TYPED_TEST(CudaFamilies, NormWithAnOffset) {
  using T = TypeParam;
  const NormShape shape{.rows = 37, .columns = 67, .weight_offset = 1};
  constexpr std::int64_t n = 37 * 67;
  const Vec x = rounded<T>(random_values(n, 1)), w = rounded<T>(random_values(67, 2)),
            dy = rounded<T>(random_values(n, 3));
  Vec whole = w;
  for (double& v : whole) v += 1;
  const ref::Norm forward = ref::rms_norm(37, 67, 1e-5, x, whole);
  const ref::NormGradient g = ref::rms_norm_backward(37, 67, 1e-5, x, whole, dy);
  check<T>(
      [&](auto& c) {
        const auto *xs = c.in(x), *ws = c.in(w);
        auto* y = c.out(n);
        float* rstd = c.f32_out(37);
        c.run([&] { rms_norm_forward(c.stream(), shape, 1e-5F, xs, ws, y, rstd); });
      },
      {forward.y, forward.rstd}, 1e-6);
  check<T>(
      [&](auto& c) {
        const auto *xs = c.in(x), *ws = c.in(w), *ds = c.in(dy);
        const float* rstd = c.f32(forward.rstd);
        auto* dx = c.out(n);
        auto* dw = c.out(67);
        c.run([&] { rms_norm_backward(c.stream(), shape, xs, ws, rstd, ds, dx, Store::write, dw, Store::write); });
      },
      {g.dx, g.dw}, 2e-6);
}

TYPED_TEST(CudaFamilies, PositionsFromALaterRow) {
  using T = TypeParam;
  const std::vector<PositionShape> shapes = {{.batch = 3, .sequence = 5, .positions = 9, .columns = 19, .first = 2},
                                             {.batch = 2, .sequence = 6, .positions = 8, .columns = 16, .first = 2}};
  for (const PositionShape& shape : shapes) {
    const std::int64_t n = shape.batch * shape.sequence * shape.columns, size = shape.positions * shape.columns;
    const Vec x = rounded<T>(random_values(n, 1)), table = rounded<T>(random_values(size, 2));
    Vec y = x, d(table.size(), 0.0);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t at = u(shape.first * shape.columns) + i % u(shape.sequence * shape.columns);
      y[i] += table[at];
      d[at] += x[i];
    }
    check<T>(
        [&](auto& c) {
          auto* to = c.in_out(x);
          auto* positions = c.in(table);
          c.run([&] { add_position_forward(c.stream(), shape, to, positions, to); });
        },
        {y}, 1e-7);
    check<T>(
        [&](auto& c) {
          auto* dy = c.in(x);
          auto* to = c.out(size);
          c.run([&] { add_position_backward(c.stream(), shape, dy, to, Store::write); });
        },
        {d}, 1e-6);
    check<T>(
        [&](auto& c) {
          auto* dy = c.in(x);
          auto* to = c.in_out(table);
          c.run([&] { add_position_backward(c.stream(), shape, dy, to, Store::add); });
        },
        {sum(d, table)}, 1e-6);
  }
}

// Nothing to do is no launch: sizes of zero are refused by every device.
TEST(CudaFamiliesNothing, IsNoLaunch) {
  Call<float, float> c({});
  float* x = c.in_out({1});
  c.run([&] {
    scale(c.stream(), 0, 2, x, x);
    relu_forward(c.stream(), 0, x, x);
    relu_backward(c.stream(), 0, x, x, x);
    gelu_erf_forward(c.stream(), 0, x, x);
    gelu_erf_backward(c.stream(), 0, x, x, x);
    geglu_forward(c.stream(), 0, x, x, x);
    geglu_backward(c.stream(), 0, x, x, x, x, x);
    swiglu_packed_forward(c.stream(), 0, 1, x, x);
    swiglu_packed_backward(c.stream(), 0, 1, x, x, x);
    split_groups(c.stream(), {0, 1, 1, 1}, x, x);
    join_groups(c.stream(), {0, 1, 1, 1}, x, x);
  });
  EXPECT_EQ(c.results()[0][0], 1.0F);
}

}  // namespace
}  // namespace shard::cuda::test
