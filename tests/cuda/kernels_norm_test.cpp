// The device's layer norm and RMS norm against the reference: rows of one warp and of several, both stores, in place.
#include "tests/cuda/support.h"

namespace shard::cuda::test {
namespace {

struct NormSize {
  std::int64_t rows, columns;
};
// Of one warp and of several, with tails; more columns than a block's threads take at once; strips with tails, of few
// rows and of more than the slots take at once.
const std::vector<NormSize> kNormSizes = {{1, 3},    {5, 16},   {9, 37},   {70, 129},
                                          {300, 70}, {33, 768}, {3, 2501}, {700, 20}};

template <class T>
struct NormInputs {
  explicit NormInputs(NormSize size)
      : shape{size.rows, size.columns},
        rows(static_cast<std::size_t>(size.rows)),
        columns(static_cast<std::size_t>(size.columns)) {}
  NormShape shape;
  std::size_t rows, columns;
  std::int64_t n = shape.rows * shape.columns;
  Vec x = rounded<T>(sum(random_values(n, 1), Vec(rows* columns, 0.5)));
  Vec w = rounded<T>(random_values(shape.columns, 2));
  Vec b = rounded<T>(random_values(shape.columns, 3));
  Vec dy = rounded<T>(random_values(n, 4));
  Vec before = rounded<T>(random_values(n, 5));
  std::string what = std::to_string(shape.rows) + " x " + std::to_string(shape.columns);
};

constexpr float kNormEpsilon = 1e-5F;
constexpr double kNormTolerance = 2e-6;

template <class T>
class CudaNorm : public testing::Test {};
TYPED_TEST_SUITE(CudaNorm, ElementTypes);

TYPED_TEST(CudaNorm, LayerNormForward) {
  using T = TypeParam;
  for (const NormSize& size : kNormSizes) {
    const NormInputs<T> in(size);
    const ref::Norm expected = ref::layer_norm(in.rows, in.columns, 1e-5, in.x, in.w, in.b);
    for (const bool in_place : {false, true})
      check<T>(
          [&](auto& c) {
            auto* y = in_place ? c.in_out(in.x) : c.out(in.n);
            const auto* x = in_place ? y : c.in(in.x);
            auto* w = c.in(in.w);
            auto* b = c.in(in.b);
            float* mean = c.f32_out(in.shape.rows);
            float* rstd = c.f32_out(in.shape.rows);
            c.run([&] { layer_norm_forward(c.stream(), in.shape, kNormEpsilon, x, w, b, y, mean, rstd); });
          },
          {expected.y, expected.mean, expected.rstd}, kNormTolerance, in.what);
  }
}

/// Multiples of 1/32 below 2: the sum of two has no more bits than any type keeps.
Vec coarse(std::int64_t n, unsigned seed) {
  Vec values = random_values(n, seed);
  for (double& v : values) v = std::clamp(std::round(v * 32), -63.0, 63.0) / 32;
  return values;
}

TYPED_TEST(CudaNorm, OfASum) {
  using T = TypeParam;
  for (const NormSize& size : kNormSizes) {
    const NormInputs<T> in(size);
    const Vec a = coarse(in.n, 6), b = coarse(in.n, 7), x = sum(a, b);
    const ref::Norm layer = ref::layer_norm(in.rows, in.columns, 1e-5, x, in.w, in.b);
    const ref::Norm rms = ref::rms_norm(in.rows, in.columns, 1e-5, x, in.w);
    check<T>(
        [&](auto& c) {
          const auto *at = c.in(a), *bt = c.in(b), *w = c.in(in.w), *bias = c.in(in.b);
          auto* s = c.out(in.n);
          auto* y = c.out(in.n);
          float *mean = c.f32_out(in.shape.rows), *rstd = c.f32_out(in.shape.rows);
          c.run([&] { add_layer_norm_forward(c.stream(), in.shape, kNormEpsilon, at, bt, w, bias, s, y, mean, rstd); });
        },
        {x, layer.y, layer.mean, layer.rstd}, kNormTolerance, in.what);
    check<T>(
        [&](auto& c) {
          const auto *at = c.in(a), *bt = c.in(b), *w = c.in(in.w);
          auto* s = c.out(in.n);
          auto* y = c.out(in.n);
          float* rstd = c.f32_out(in.shape.rows);
          c.run([&] { add_rms_norm_forward(c.stream(), in.shape, kNormEpsilon, at, bt, w, s, y, rstd); });
        },
        {x, rms.y, rms.rstd}, kNormTolerance, in.what);
  }
}

// Whatever the values: the sum is rounded as it is stored before its norm is taken.
TYPED_TEST(CudaNorm, OfASumHasTheBitsOfTheTwoApart) {
  using T = TypeParam;
  for (const NormSize& size : kNormSizes)
    for (const Manner& manner : kManners)
      for (const bool layer : {true, false}) {
        const NormInputs<T> in(size);
        const Vec other = random_values(in.n, 6);
        const auto results = [&](bool fused) {
          Call<T, T> c(manner);
          const auto *a = c.in(in.dy), *b = c.in(other), *w = c.in(in.w), *bias = c.in(in.b);
          auto* s = c.out(in.n);
          auto* y = c.out(in.n);
          float* mean = layer ? c.f32_out(in.shape.rows) : nullptr;
          float* rstd = c.f32_out(in.shape.rows);
          c.run([&] {
            if (!fused) add(c.stream(), in.n, a, b, s);
            if (layer && fused)
              add_layer_norm_forward(c.stream(), in.shape, kNormEpsilon, a, b, w, bias, s, y, mean, rstd);
            else if (layer)
              layer_norm_forward(c.stream(), in.shape, kNormEpsilon, s, w, bias, y, mean, rstd);
            else if (fused)
              add_rms_norm_forward(c.stream(), in.shape, kNormEpsilon, a, b, w, s, y, rstd);
            else
              rms_norm_forward(c.stream(), in.shape, kNormEpsilon, s, w, y, rstd);
          });
          return c.results();
        };
        const auto apart = results(false), one = results(true);
        ASSERT_EQ(apart.size(), one.size());
        for (std::size_t i = 0; i < apart.size(); ++i)
          ASSERT_TRUE(same_bits(one[i], apart[i]))
              << in.what << " output " << i << ", seed " << manner.seed << (layer ? ", layer norm" : ", RMS norm");
      }
}

TYPED_TEST(CudaNorm, LayerNormBackward) {
  using T = TypeParam;
  for (const NormSize& size : kNormSizes) {
    const NormInputs<T> in(size);
    const ref::Norm forward = ref::layer_norm(in.rows, in.columns, 1e-5, in.x, in.w, in.b);
    const ref::NormGradient g = ref::layer_norm_backward(in.rows, in.columns, 1e-5, in.x, in.w, in.dy);
    const auto call = [&](auto& c, const auto* dy, auto* dx, Store dx_store, auto* dw, auto* db, Store store) {
      auto* x = c.in(in.x);
      auto* w = c.in(in.w);
      float* mean = c.f32(forward.mean);
      float* rstd = c.f32(forward.rstd);
      c.run([&] { layer_norm_backward(c.stream(), in.shape, x, w, mean, rstd, dy, dx, dx_store, dw, db, store); });
    };
    check<T>(
        [&](auto& c) {
          auto* dx = c.out(in.n);
          auto* dw = c.out(in.shape.columns);
          auto* db = c.out(in.shape.columns);
          call(c, c.in(in.dy), dx, Store::write, dw, db, Store::write);
        },
        {g.dx, g.dw, g.db}, kNormTolerance, in.what);
    check<T>(
        [&](auto& c) {
          auto* dx = c.in_out(in.before);
          auto* dw = c.in_out(in.w);
          auto* db = c.in_out(in.b);
          call(c, c.in(in.dy), dx, Store::add, dw, db, Store::add);
        },
        {sum(g.dx, in.before), sum(g.dw, in.w), sum(g.db, in.b)}, kNormTolerance, in.what);
    check<T>(
        [&](auto& c) {  // over dy
          auto* dx = c.in_out(in.dy);
          auto* dw = c.out(in.shape.columns);
          auto* db = c.out(in.shape.columns);
          call(c, dx, dx, Store::write, dw, db, Store::write);
        },
        {g.dx, g.dw, g.db}, kNormTolerance, in.what);
  }
}

TYPED_TEST(CudaNorm, RmsNorm) {
  using T = TypeParam;
  for (const NormSize& size : kNormSizes) {
    const NormInputs<T> in(size);
    const ref::Norm forward = ref::rms_norm(in.rows, in.columns, 1e-5, in.x, in.w);
    const ref::NormGradient g = ref::rms_norm_backward(in.rows, in.columns, 1e-5, in.x, in.w, in.dy);
    for (const bool in_place : {false, true})
      check<T>(
          [&](auto& c) {
            auto* y = in_place ? c.in_out(in.x) : c.out(in.n);
            const auto* x = in_place ? y : c.in(in.x);
            auto* w = c.in(in.w);
            float* rstd = c.f32_out(in.shape.rows);
            c.run([&] { rms_norm_forward(c.stream(), in.shape, kNormEpsilon, x, w, y, rstd); });
          },
          {forward.y, forward.rstd}, kNormTolerance, in.what);
    const auto call = [&](auto& c, const auto* dy, auto* dx, Store dx_store, auto* dw, Store store) {
      auto* x = c.in(in.x);
      auto* w = c.in(in.w);
      float* rstd = c.f32(forward.rstd);
      c.run([&] { rms_norm_backward(c.stream(), in.shape, x, w, rstd, dy, dx, dx_store, dw, store); });
    };
    check<T>(
        [&](auto& c) {
          auto* dx = c.in_out(in.dy);
          call(c, dx, dx, Store::write, c.out(in.shape.columns), Store::write);
        },
        {g.dx, g.dw}, kNormTolerance, in.what);
    check<T>(
        [&](auto& c) {
          auto* dx = c.in_out(in.before);
          call(c, c.in(in.dy), dx, Store::add, c.in_out(in.w), Store::add);
        },
        {sum(g.dx, in.before), sum(g.dw, in.w)}, kNormTolerance, in.what);
  }
}

/// What is frozen, or not needed, is null; the rest is what it is beside it.
TYPED_TEST(CudaNorm, BackwardOfAPart) {
  using T = TypeParam;
  const NormInputs<T> in({37, 41});
  const ref::Norm layer = ref::layer_norm(in.rows, in.columns, 1e-5, in.x, in.w, in.b);
  const ref::NormGradient g = ref::layer_norm_backward(in.rows, in.columns, 1e-5, in.x, in.w, in.dy);
  const ref::Norm rms = ref::rms_norm(in.rows, in.columns, 1e-5, in.x, in.w);
  const ref::NormGradient rms_g = ref::rms_norm_backward(in.rows, in.columns, 1e-5, in.x, in.w, in.dy);
  const std::vector<Vec> layer_all = {g.dx, g.dw, g.db}, rms_all = {rms_g.dx, rms_g.dw};
  const std::vector<std::int64_t> sizes = {in.n, in.shape.columns, in.shape.columns};
  for (unsigned wanted = 0; wanted < 8; ++wanted) {
    std::vector<Vec> layer_expected, rms_expected;
    for (std::size_t i = 0; i < 3; ++i) {
      if ((wanted >> i & 1U) == 0) continue;
      layer_expected.push_back(layer_all[i]);
      if (i < rms_all.size()) rms_expected.push_back(rms_all[i]);
    }
    const auto out = [&](auto& c, std::size_t i) { return (wanted >> i & 1U) != 0 ? c.out(sizes[i]) : nullptr; };
    check<T>(
        [&](auto& c) {
          auto* dx = out(c, 0);
          auto* dw = out(c, 1);
          auto* db = out(c, 2);
          auto* x = c.in(in.x);
          auto* w = c.in(in.w);
          auto* dy = c.in(in.dy);
          float* mean = c.f32(layer.mean);
          float* rstd = c.f32(layer.rstd);
          c.run([&] {
            layer_norm_backward(c.stream(), in.shape, x, w, mean, rstd, dy, dx, Store::write, dw, db, Store::write);
          });
        },
        layer_expected, kNormTolerance);
    if (wanted >= 4) continue;
    check<T>(
        [&](auto& c) {
          auto* dx = out(c, 0);
          auto* dw = out(c, 1);
          auto* x = c.in(in.x);
          auto* w = c.in(in.w);
          auto* dy = c.in(in.dy);
          float* rstd = c.f32(rms.rstd);
          c.run([&] { rms_norm_backward(c.stream(), in.shape, x, w, rstd, dy, dx, Store::write, dw, Store::write); });
        },
        rms_expected, kNormTolerance);
  }
}

// A column of its own mean is its bias, whatever else.
TYPED_TEST(CudaNorm, OneColumn) {
  using T = TypeParam;
  const NormInputs<T> in({45, 1});
  const ref::Norm forward = ref::layer_norm(in.rows, 1, 1e-5, in.x, in.w, in.b);
  check<T>(
      [&](auto& c) {
        auto* x = c.in(in.x);
        auto* w = c.in(in.w);
        auto* b = c.in(in.b);
        auto* y = c.out(in.n);
        float* mean = c.f32_out(in.shape.rows);
        float* rstd = c.f32_out(in.shape.rows);
        c.run([&] { layer_norm_forward(c.stream(), in.shape, kNormEpsilon, x, w, b, y, mean, rstd); });
      },
      {Vec(in.rows, in.b[0]), in.x, forward.rstd}, kNormTolerance);
  const ref::Norm rms = ref::rms_norm(in.rows, 1, 1e-5, in.x, in.w);
  check<T>(
      [&](auto& c) {
        auto* x = c.in(in.x);
        auto* w = c.in(in.w);
        auto* y = c.out(in.n);
        float* rstd = c.f32_out(in.shape.rows);
        c.run([&] { rms_norm_forward(c.stream(), in.shape, kNormEpsilon, x, w, y, rstd); });
      },
      {rms.y, rms.rstd}, kNormTolerance);
}

}  // namespace
}  // namespace shard::cuda::test
