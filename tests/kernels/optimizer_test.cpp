// Optimizers against a double-precision recurrence, and the same bits for any cut of the range.
#include "executor/cpu/kernels/optimizer.h"

#include <functional>

#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

constexpr std::int64_t kParameters = 40021;
constexpr int kOptimizerSteps = 5;

struct OptimizerState {
  Vec p, m, v;
};

Vec gradient_of(int step) {
  return random_values(kParameters, static_cast<unsigned>(100 + step), 0.1);
}

OptimizerState starting_state() {
  return {random_values(kParameters, 1), Vec(static_cast<std::size_t>(kParameters), 0.0),
          Vec(static_cast<std::size_t>(kParameters), 0.0)};
}

// kOptimizerSteps of `rule(t, g, p, m, v)` on every element.
OptimizerState reference_steps(const std::function<void(double, double, double&, double&, double&)>& rule) {
  OptimizerState s = starting_state();
  for (int t = 1; t <= kOptimizerSteps; ++t) {
    const Vec g = gradient_of(t);
    for (std::size_t i = 0; i < g.size(); ++i) rule(t, g[i], s.p[i], s.m[i], s.v[i]);
  }
  return s;
}

using OptimizerStep = std::function<void(ThreadPool&, const std::int32_t* step, std::int64_t n, const float* g,
                                         float* p, float* m, float* v)>;

// kOptimizerSteps over pieces of `piece` elements: whole, and cut at odd places, with every run's threads and offsets.
void check_steps(const OptimizerStep& step, const OptimizerState& expected, double tolerance) {
  for (const std::int64_t piece : {kParameters, std::int64_t{20000}, std::int64_t{5003}}) {
    check(
        [&](Call& call) {
          const OptimizerState s = starting_state();
          float* p = call.in_out(s.p);
          float* m = call.in_out(s.m);
          float* v = call.in_out(s.v);
          for (std::int32_t t = 1; t <= kOptimizerSteps; ++t) {
            const float* g = call.in(gradient_of(t));
            for (std::int64_t i = 0; i < kParameters; i += piece) {
              step(call.pool, &t, std::min(piece, kParameters - i), g + i, p + i, m + i, v + i);
            }
          }
        },
        {expected.p, expected.m, expected.v}, tolerance);
  }
}

std::vector<float> parameters_after(const OptimizerStep& step, std::int64_t piece) {
  Call call({2, 0});
  const OptimizerState s = starting_state();
  float* p = call.in_out(s.p);
  float* m = call.in(s.m);
  float* v = call.in(s.v);
  const std::int32_t t = 3;
  const float* g = call.in(gradient_of(1));
  for (std::int64_t i = 0; i < kParameters; i += piece) {
    step(call.pool, &t, std::min(piece, kParameters - i), g + i, p + i, m + i, v + i);
  }
  return call.results()[0];
}

const OptimizerScalars kScalars{
    .learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1, .momentum = 0.8};

void adam_rule(double t, double g, double& p, double& m, double& v) {
  m = kScalars.beta1 * m + (1 - kScalars.beta1) * g;
  v = kScalars.beta2 * v + (1 - kScalars.beta2) * g * g;
  const double m_hat = m / (1 - std::pow(kScalars.beta1, t));
  const double v_hat = v / (1 - std::pow(kScalars.beta2, t));
  p -= kScalars.learning_rate * m_hat / (std::sqrt(v_hat) + kScalars.epsilon);
}

const OptimizerStep kAdam = [](ThreadPool& pool, const std::int32_t* t, std::int64_t n, const float* g, float* p,
                               float* m, float* v) { adam(pool, kScalars, t, n, g, p, m, v); };
const OptimizerStep kAdamW = [](ThreadPool& pool, const std::int32_t* t, std::int64_t n, const float* g, float* p,
                                float* m, float* v) { adamw(pool, kScalars, t, n, g, p, m, v); };

TEST(Optimizer, AdamAddsDecayToTheGradient) {
  check_steps(kAdam, reference_steps([](double t, double g, double& p, double& m, double& v) {
                adam_rule(t, g + kScalars.weight_decay * p, p, m, v);
              }),
              1e-6);
}

TEST(Optimizer, AdamWDecaysTheParameter) {
  check_steps(kAdamW, reference_steps([](double t, double g, double& p, double& m, double& v) {
                p *= 1 - kScalars.learning_rate * kScalars.weight_decay;
                adam_rule(t, g, p, m, v);
              }),
              1e-6);
}

TEST(Optimizer, SgdWithMomentum) {
  check_steps([](ThreadPool& pool, const std::int32_t*, std::int64_t n, const float* g, float* p, float* m,
                 float*) { sgd(pool, kScalars, n, g, p, m); },
              reference_steps([](double, double g, double& p, double& m, double&) {
                m = kScalars.momentum * m + g + kScalars.weight_decay * p;
                p -= kScalars.learning_rate * m;
              }),
              1e-6);
}

TEST(Optimizer, SgdWithoutMomentum) {
  check_steps([](ThreadPool& pool, const std::int32_t*, std::int64_t n, const float* g, float* p, float*,
                 float*) { sgd(pool, kScalars, n, g, p, nullptr); },
              reference_steps([](double, double g, double& p, double&, double&) {
                p -= kScalars.learning_rate * (g + kScalars.weight_decay * p);
              }),
              1e-6);
}

TEST(Optimizer, SameBitsForAnyCut) {
  for (const OptimizerStep& step : {kAdam, kAdamW}) {
    const auto whole = parameters_after(step, kParameters);
    for (const std::int64_t piece : {1, 17, 4096, 30001}) {
      EXPECT_TRUE(same_bits(whole, parameters_after(step, piece))) << piece;
    }
  }
}

// A 16-bit gradient is that gradient widened; the multiplier scales it before anything else; 1 changes no bit.
TEST(Optimizer, TypedGradientAndMultiplier) {
  constexpr std::int64_t n = 20011;
  const auto run = [](auto gradient_of_type, int kind, float before, float multiplier) {
    using G = decltype(gradient_of_type);
    Call call({2, 0});
    float* p = call.in_out(random_values(n, 1));
    float* m = call.in_out(random_values(n, 2, 0.1));
    float* v = call.in_out(Vec(static_cast<std::size_t>(n), 0.25));
    std::vector<G> g;
    for (const double value : random_values(n, 3))
      g.push_back(from_f32<G>(to_f32(to_bf16(static_cast<float>(value))) * before));
    const std::int32_t step = 2;
    if (kind == 0) adam(call.pool, kScalars, &step, n, g.data(), p, m, v, multiplier);
    if (kind == 1) adamw(call.pool, kScalars, &step, n, g.data(), p, m, v, multiplier);
    if (kind == 2) sgd(call.pool, kScalars, n, g.data(), p, m, multiplier);
    if (kind == 3) sgd(call.pool, kScalars, n, g.data(), p, nullptr, multiplier);
    return call.results();
  };
  for (int kind = 0; kind < 4; ++kind) {
    const auto plain = run(float{}, kind, 1.0F, 1.0F);
    const auto same = [&](const std::vector<std::vector<float>>& other) {
      for (std::size_t i = 0; i < plain.size(); ++i)
        if (!same_bits(plain[i], other[i])) return false;
      return true;
    };
    EXPECT_TRUE(same(run(Bf16{}, kind, 1.0F, 1.0F))) << kind;
    EXPECT_TRUE(same(run(float{}, kind, 8.0F, 0.125F))) << kind;
    EXPECT_TRUE(same(run(Bf16{}, kind, 8.0F, 0.125F))) << kind;
    EXPECT_TRUE(same(run(F16{}, kind, 1.0F, 1.0F))) << kind;  // 8 bits of fraction and a middling exponent fit
    EXPECT_FALSE(same(run(float{}, kind, 8.0F, 1.0F))) << kind;
  }
}

}  // namespace
}  // namespace shard::cpu::test
