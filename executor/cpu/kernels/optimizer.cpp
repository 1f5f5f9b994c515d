// Optimizers: one pass that reads and writes each buffer once.
#include "executor/cpu/kernels/optimizer.h"

#include <cmath>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "sim/ir/control_block.h"

namespace shard::cpu {
namespace {

static_assert(sizeof(OptimizerScalars) == plan::kOptimizerScalarsBytes.count());

// What a step's scalars come down to, rounded to fp32 where PyTorch rounds.
struct AdamFactors {
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float correction2_root;  // sqrt(1 - beta2^t)
  float epsilon;
  float step_size;   // lr / (1 - beta1^t)
  float multiplier;  // of the gradient
  float decay;       // adam: weight_decay, into the gradient; adamw: 1 - lr weight_decay, times the parameter
};

AdamFactors factors_of(const OptimizerScalars& scalars, std::int32_t step, float multiplier, double decay) {
  const double t = step;
  return {static_cast<float>(1.0 - scalars.beta1),
          static_cast<float>(scalars.beta2),
          static_cast<float>(1.0 - scalars.beta2),
          static_cast<float>(std::sqrt(1.0 - std::pow(scalars.beta2, t))),
          static_cast<float>(scalars.epsilon),
          static_cast<float>(scalars.learning_rate / (1.0 - std::pow(scalars.beta1, t))),
          multiplier,
          static_cast<float>(decay)};
}

SHARD_INLINE void adam_element(const AdamFactors& f, float g, float p, float& p_out, float& m, float& v) {
  m = m + (g - m) * f.one_minus_beta1;
  v = v * f.beta2 + f.one_minus_beta2 * g * g;
  const float denominator = std::sqrt(v) / f.correction2_root + f.epsilon;
  p_out = p - f.step_size * m / denominator;
}

template <class G>
SHARD_CLONES void adam_range(std::int64_t n, AdamFactors f, const G* g, float* p, float* m, float* v) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    float mi = m[i];
    float vi = v[i];
    float pi = p[i];
    adam_element(f, to_f32(g[i]) * f.multiplier + f.decay * pi, pi, pi, mi, vi);
    m[i] = mi;
    v[i] = vi;
    p[i] = pi;
  }
}

template <class G>
SHARD_CLONES void adamw_range(std::int64_t n, AdamFactors f, const G* g, float* p, float* m, float* v) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    float mi = m[i];
    float vi = v[i];
    float pi = p[i];
    adam_element(f, to_f32(g[i]) * f.multiplier, pi * f.decay, pi, mi, vi);
    m[i] = mi;
    v[i] = vi;
    p[i] = pi;
  }
}

template <class G>
SHARD_CLONES void sgd_range(std::int64_t n, float rate, float decay, float multiplier, const G* g, float* p) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) p[i] = p[i] - rate * (to_f32(g[i]) * multiplier + decay * p[i]);
}

template <class G>
SHARD_CLONES void momentum_range(std::int64_t n, float rate, float decay, float momentum, float multiplier, const G* g,
                                 float* p, float* buffer) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float b = momentum * buffer[i] + (to_f32(g[i]) * multiplier + decay * p[i]);
    buffer[i] = b;
    p[i] = p[i] - rate * b;
  }
}

}  // namespace

void adam(ThreadPool& pool, const OptimizerScalars& scalars, const std::int32_t* step, std::int64_t n,
          ConstElements gradient, float* parameter, float* first_moment, float* second_moment, float multiplier) {
  const AdamFactors f = factors_of(scalars, *step, multiplier, scalars.weight_decay);
  with_type(gradient.dtype(), [&]<class G>(G) {
    run_ranges(pool, n, [=, g = gradient.as<G>()](std::int64_t i, std::int64_t count) {
      adam_range<G>(count, f, g + i, parameter + i, first_moment + i, second_moment + i);
    });
  });
}

void adamw(ThreadPool& pool, const OptimizerScalars& scalars, const std::int32_t* step, std::int64_t n,
           ConstElements gradient, float* parameter, float* first_moment, float* second_moment, float multiplier) {
  const AdamFactors f = factors_of(scalars, *step, multiplier, 1.0 - scalars.learning_rate * scalars.weight_decay);
  with_type(gradient.dtype(), [&]<class G>(G) {
    run_ranges(pool, n, [=, g = gradient.as<G>()](std::int64_t i, std::int64_t count) {
      adamw_range<G>(count, f, g + i, parameter + i, first_moment + i, second_moment + i);
    });
  });
}

void sgd(ThreadPool& pool, const OptimizerScalars& scalars, std::int64_t n, ConstElements gradient, float* parameter,
         float* momentum_buffer, float multiplier) {
  const float rate = static_cast<float>(scalars.learning_rate);
  const float decay = static_cast<float>(scalars.weight_decay);
  const float momentum = static_cast<float>(scalars.momentum);
  with_type(gradient.dtype(), [&]<class G>(G) {
    run_ranges(pool, n, [=, g = gradient.as<G>()](std::int64_t i, std::int64_t count) {
      if (momentum_buffer == nullptr) {
        sgd_range<G>(count, rate, decay, multiplier, g + i, parameter + i);
      } else {
        momentum_range<G>(count, rate, decay, momentum, multiplier, g + i, parameter + i, momentum_buffer + i);
      }
    });
  });
}

}  // namespace shard::cpu
