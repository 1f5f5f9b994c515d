// What an optimizer does to one element, for every device: the same operations in the same order, so the same bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "executor/numeric/vectorise.h"
#include "sim/ir/control_block.h"

namespace shard {

/// Hyperparameters of a step, in a planned buffer (plan::kOptimizerScalarsBytes). Doubles, as PyTorch computes with
/// Python floats and rounds to fp32 only where a tensor is touched.
struct OptimizerScalars {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum = 0;  ///< sgd only
};
static_assert(sizeof(OptimizerScalars) == plan::kOptimizerScalarsBytes.count());

/// What a step's scalars come down to, rounded to fp32 where PyTorch rounds.
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

/// beta^step by squaring: plain multiplications, which are the same on every device; a library's pow is not.
SHARD_INLINE double power_of(double beta, std::int32_t step) {
  double result = 1.0;
  for (double square = beta; step > 0; step /= 2) {
    if (step % 2 != 0) result *= square;
    square *= square;
  }
  return result;
}

SHARD_INLINE AdamFactors adam_factors(const OptimizerScalars& scalars, std::int32_t step, float multiplier) {
  return {static_cast<float>(1.0 - scalars.beta1),
          static_cast<float>(scalars.beta2),
          static_cast<float>(1.0 - scalars.beta2),
          static_cast<float>(std::sqrt(1.0 - power_of(scalars.beta2, step))),
          static_cast<float>(scalars.epsilon),
          static_cast<float>(scalars.learning_rate / (1.0 - power_of(scalars.beta1, step))),
          multiplier,
          static_cast<float>(scalars.weight_decay)};
}

SHARD_INLINE AdamFactors adamw_factors(const OptimizerScalars& scalars, std::int32_t step, float multiplier) {
  AdamFactors f = adam_factors(scalars, step, multiplier);
  f.decay = static_cast<float>(1.0 - scalars.learning_rate * scalars.weight_decay);
  return f;
}

SHARD_INLINE void adam_moments(const AdamFactors& f, float g, float& p, float& m, float& v) {
  m = m + (g - m) * f.one_minus_beta1;
  v = v * f.beta2 + f.one_minus_beta2 * g * g;
  const float denominator = std::sqrt(v) / f.correction2_root + f.epsilon;
  p = p - f.step_size * m / denominator;
}

/// `g` is the gradient, widened; weight decay is added to it.
SHARD_INLINE void adam_element(const AdamFactors& f, float g, float& p, float& m, float& v) {
  adam_moments(f, g * f.multiplier + f.decay * p, p, m, v);
}

/// The parameter decays first.
SHARD_INLINE void adamw_element(const AdamFactors& f, float g, float& p, float& m, float& v) {
  p = p * f.decay;
  adam_moments(f, g * f.multiplier, p, m, v);
}

struct SgdFactors {
  float rate;
  float decay;
  float momentum;
  float multiplier;
};

SHARD_INLINE SgdFactors sgd_factors(const OptimizerScalars& scalars, float multiplier) {
  return {static_cast<float>(scalars.learning_rate), static_cast<float>(scalars.weight_decay),
          static_cast<float>(scalars.momentum), multiplier};
}

SHARD_INLINE float sgd_element(const SgdFactors& f, float g, float p) {
  return p - f.rate * (g * f.multiplier + f.decay * p);
}

SHARD_INLINE float momentum_element(const SgdFactors& f, float g, float p, float& buffer) {
  buffer = f.momentum * buffer + (g * f.multiplier + f.decay * p);
  return p - f.rate * buffer;
}

}  // namespace shard
