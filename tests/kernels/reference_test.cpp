// Are the reference gradients the derivatives of the reference forward? Central differences in double precision.
#include "tests/kernels/reference.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

double dot(const Vec& a, const Vec& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// gradient[i] = d f / d x[i] for every i.
void expect_derivative(const std::function<double(const Vec&)>& f, Vec x, const Vec& gradient, const char* what) {
  constexpr double kStep = 1e-5;
  ASSERT_EQ(x.size(), gradient.size()) << what;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + kStep;
    const double above = f(x);
    x[i] = at - kStep;
    const double below = f(x);
    x[i] = at;
    ASSERT_NEAR((above - below) / (2 * kStep), gradient[i], 1e-7 * (1 + std::abs(gradient[i]))) << what << " " << i;
  }
}

TEST(ReferenceGradient, Linear) {
  for (const bool in_out : {false, true}) {
    const ref::Linear l{3, 5, 4, in_out};
    const Vec x = random_values(15, 1), w = random_values(20, 2), b = random_values(4, 3), dy = random_values(12, 4);
    const auto g = ref::linear_backward(l, x, w, dy);
    expect_derivative([&](const Vec& v) { return dot(dy, ref::linear(l, v, w, b)); }, x, g.dx, "dx");
    expect_derivative([&](const Vec& v) { return dot(dy, ref::linear(l, x, v, b)); }, w, g.dw, "dw");
    expect_derivative([&](const Vec& v) { return dot(dy, ref::linear(l, x, w, v)); }, b, g.db, "db");
  }
}

TEST(ReferenceGradient, LayerNorm) {
  const Vec x = random_values(3 * 7, 1), w = random_values(7, 2), b = random_values(7, 3), dy = random_values(3 * 7, 4);
  const auto g = ref::layer_norm_backward(3, 7, 1e-5, x, w, dy);
  expect_derivative([&](const Vec& v) { return dot(dy, ref::layer_norm(3, 7, 1e-5, v, w, b).y); }, x, g.dx, "dx");
  expect_derivative([&](const Vec& v) { return dot(dy, ref::layer_norm(3, 7, 1e-5, x, v, b).y); }, w, g.dw, "dw");
  expect_derivative([&](const Vec& v) { return dot(dy, ref::layer_norm(3, 7, 1e-5, x, w, v).y); }, b, g.db, "db");
}

TEST(ReferenceGradient, RmsNorm) {
  const Vec x = random_values(3 * 7, 1), w = random_values(7, 2), dy = random_values(3 * 7, 4);
  const auto g = ref::rms_norm_backward(3, 7, 1e-5, x, w, dy);
  expect_derivative([&](const Vec& v) { return dot(dy, ref::rms_norm(3, 7, 1e-5, v, w).y); }, x, g.dx, "dx");
  expect_derivative([&](const Vec& v) { return dot(dy, ref::rms_norm(3, 7, 1e-5, x, v).y); }, w, g.dw, "dw");
}

TEST(ReferenceGradient, AttentionWithSharedKeyHeads) {
  ref::Attention a{2, 5, 4, 2, 3};
  const Vec q = random_values(2 * 5 * 12, 1), k = random_values(2 * 5 * 6, 2), v = random_values(2 * 5 * 6, 3);
  const Vec dy = random_values(2 * 5 * 12, 4);
  for (const bool drops : {false, true}) {
    if (drops)
      for (int i = 0; i < 2 * 4 * 5 * 5; ++i) a.kept.push_back(i % 3 == 0 ? 0 : 1.25);
    const auto g = ref::attention_backward(a, q, k, v, dy);
    expect_derivative([&](const Vec& u) { return dot(dy, ref::attention(a, u, k, v).y); }, q, g.dq, "dq");
    expect_derivative([&](const Vec& u) { return dot(dy, ref::attention(a, q, u, v).y); }, k, g.dk, "dk");
    expect_derivative([&](const Vec& u) { return dot(dy, ref::attention(a, q, k, u).y); }, v, g.dv, "dv");
  }
}

TEST(ReferenceGradient, Rotary) {
  const Vec x = random_values(2 * 3 * 2 * 6, 1), dy = random_values(2 * 3 * 2 * 6, 2);
  expect_derivative([&](const Vec& v) { return dot(dy, ref::rotary(2, 3, 2, 6, 10000, 1, v)); }, x,
                    ref::rotary(2, 3, 2, 6, 10000, -1, dy), "dx");
}

TEST(ReferenceGradient, Activations) {
  for (const double x : {-6.0, -2.5, -0.3, 0.0, 0.7, 1.9, 5.0}) {
    expect_derivative([](const Vec& v) { return ref::gelu(v[0]); }, {x}, {ref::gelu_slope(x)}, "gelu");
    expect_derivative([](const Vec& v) { return ref::swiglu(v[0], 1.7); }, {x}, {ref::swiglu_gate_slope(x, 1.7)},
                      "swiglu gate");
    expect_derivative([x](const Vec& v) { return ref::swiglu(x, v[0]); }, {0.4}, {ref::swiglu(x, 1.0)}, "swiglu up");
  }
}

TEST(ReferenceGradient, Losses) {
  const Vec logits = random_values(4 * 9, 1);
  const ref::Tokens targets = random_tokens_below(4, 9, 2);
  expect_derivative([&](const Vec& v) { return 3 * ref::cross_entropy(4, 9, v, targets).loss; }, logits,
                    ref::cross_entropy_backward(4, 9, logits, targets, 3), "cross entropy");
  const Vec a = random_values(11, 3), b = random_values(11, 4);
  expect_derivative([&](const Vec& v) { return 3 * ref::mse(v, b); }, a, ref::mse_backward(a, b, 3), "mse");
}

}  // namespace
}  // namespace shard::cpu::test
