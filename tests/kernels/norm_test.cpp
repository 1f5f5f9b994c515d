// Layer norm and RMS norm against the reference.
#include "executor/cpu/kernels/norm.h"

#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

struct NormCase {
  std::int64_t rows, columns;
};

class NormTest : public testing::TestWithParam<NormCase> {
 protected:
  const NormCase c = GetParam();
  const NormShape shape{c.rows, c.columns};
  const std::size_t rows = static_cast<std::size_t>(c.rows);
  const std::size_t columns = static_cast<std::size_t>(c.columns);
  const Vec x = sum(random_values(c.rows * c.columns, 1), Vec(rows* columns, 0.5));
  const Vec w = random_values(c.columns, 2);
  const Vec b = random_values(c.columns, 3);
  const Vec dy = random_values(c.rows * c.columns, 4);
  const Vec before = random_values(c.rows * c.columns, 5);
  static constexpr float kEpsilon = 1e-5F;
  static constexpr double kTolerance = 2e-6;
};

TEST_P(NormTest, LayerNormForward) {
  const ref::Norm expected = ref::layer_norm(rows, columns, 1e-5, x, w, b);
  check(
      [&](Call& call) {
        float* y = call.out(c.rows * c.columns);
        float* mean = call.out(c.rows);
        float* rstd = call.out(c.rows);
        layer_norm_forward(call.pool, shape, kEpsilon, call.in(x), call.in(w), call.in(b), y, mean, rstd);
      },
      {expected.y, expected.mean, expected.rstd}, kTolerance);
}

TEST_P(NormTest, LayerNormBackward) {
  const ref::Norm forward = ref::layer_norm(rows, columns, 1e-5, x, w, b);
  const ref::NormGradient expected = ref::layer_norm_backward(rows, columns, 1e-5, x, w, dy);
  check(
      [&](Call& call) {
        float* dx = call.out(c.rows * c.columns);
        float* dw = call.out(c.columns);
        float* db = call.out(c.columns);
        layer_norm_backward(call.pool, shape, call.in(x), call.in(w), call.in(forward.mean), call.in(forward.rstd),
                            call.in(dy), dx, Store::write, dw, db);
      },
      {expected.dx, expected.dw, expected.db}, kTolerance);
  check(
      [&](Call& call) {
        float* dx = call.in_out(before);
        float* dw = call.in_out(w);
        float* db = call.in_out(b);
        layer_norm_backward(call.pool, shape, call.in(x), call.in(w), call.in(forward.mean), call.in(forward.rstd),
                            call.in(dy), dx, Store::add, dw, db, Store::add);
      },
      {sum(expected.dx, before), sum(expected.dw, w), sum(expected.db, b)}, kTolerance);
}

TEST_P(NormTest, LayerNormBackwardOverItsInput) {
  const ref::Norm forward = ref::layer_norm(rows, columns, 1e-5, x, w, b);
  const ref::NormGradient expected = ref::layer_norm_backward(rows, columns, 1e-5, x, w, dy);
  check(
      [&](Call& call) {
        float* d = call.in_out(dy);
        float* dw = call.out(c.columns);
        float* db = call.out(c.columns);
        layer_norm_backward(call.pool, shape, call.in(x), call.in(w), call.in(forward.mean), call.in(forward.rstd), d,
                            d, Store::write, dw, db);
      },
      {expected.dx, expected.dw, expected.db}, kTolerance);
}

/// What is frozen, or not needed, is null; the rest is what it is beside it.
TEST_P(NormTest, BackwardOfAPart) {
  const ref::Norm layer = ref::layer_norm(rows, columns, 1e-5, x, w, b);
  const ref::NormGradient expected = ref::layer_norm_backward(rows, columns, 1e-5, x, w, dy);
  const ref::Norm rms = ref::rms_norm(rows, columns, 1e-5, x, w);
  const ref::NormGradient expected_rms = ref::rms_norm_backward(rows, columns, 1e-5, x, w, dy);
  for (int wanted = 1; wanted < 8; ++wanted) {
    const auto out = [&](Call& call, int bit, std::int64_t n) { return (wanted & bit) != 0 ? call.out(n) : nullptr; };
    const auto those = [&](const Vec& dx, const Vec& dw, const Vec& db) {
      std::vector<Vec> result;
      if ((wanted & 1) != 0) result.push_back(dx);
      if ((wanted & 2) != 0) result.push_back(dw);
      if ((wanted & 4) != 0) result.push_back(db);
      return result;
    };
    check(
        [&](Call& call) {
          float* dx = out(call, 1, c.rows * c.columns);
          float* dw = out(call, 2, c.columns);
          float* db = out(call, 4, c.columns);
          layer_norm_backward(call.pool, shape, call.in(x), call.in(w), call.in(layer.mean), call.in(layer.rstd),
                              call.in(dy), dx, Store::write, dw, db);
        },
        those(expected.dx, expected.dw, expected.db), kTolerance);
    if (wanted >= 4) continue;
    check(
        [&](Call& call) {
          float* dx = out(call, 1, c.rows * c.columns);
          float* dw = out(call, 2, c.columns);
          rms_norm_backward(call.pool, shape, call.in(x), call.in(w), call.in(rms.rstd), call.in(dy), dx, Store::write,
                            dw);
        },
        those(expected_rms.dx, expected_rms.dw, {}), kTolerance);
  }
}

TEST_P(NormTest, RmsNormForward) {
  const ref::Norm expected = ref::rms_norm(rows, columns, 1e-5, x, w);
  check(
      [&](Call& call) {
        float* y = call.out(c.rows * c.columns);
        float* rstd = call.out(c.rows);
        rms_norm_forward(call.pool, shape, kEpsilon, call.in(x), call.in(w), y, rstd);
      },
      {expected.y, expected.rstd}, kTolerance);
}

TEST_P(NormTest, RmsNormBackward) {
  const ref::Norm forward = ref::rms_norm(rows, columns, 1e-5, x, w);
  const ref::NormGradient expected = ref::rms_norm_backward(rows, columns, 1e-5, x, w, dy);
  check(
      [&](Call& call) {
        float* dx = call.out(c.rows * c.columns);
        float* dw = call.out(c.columns);
        rms_norm_backward(call.pool, shape, call.in(x), call.in(w), call.in(forward.rstd), call.in(dy), dx,
                          Store::write, dw);
      },
      {expected.dx, expected.dw}, kTolerance);
  check(
      [&](Call& call) {
        float* dx = call.in_out(before);
        float* dw = call.in_out(w);
        rms_norm_backward(call.pool, shape, call.in(x), call.in(w), call.in(forward.rstd), call.in(dy), dx, Store::add,
                          dw, Store::add);
      },
      {sum(expected.dx, before), sum(expected.dw, w)}, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Shapes, NormTest,
                         testing::Values(NormCase{1, 3}, NormCase{5, 16}, NormCase{9, 37}, NormCase{70, 129},
                                         NormCase{100, 300}));

}  // namespace
}  // namespace shard::cpu::test
