// Optimizers: one pass that reads and writes each buffer once.
#include "executor/cpu/kernels/optimizer.h"

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"

namespace shard::cpu {
namespace {

template <class G>
SHARD_CLONES void adam_range(std::int64_t n, AdamFactors f, const G* g, float* p, float* m, float* v) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    float mi = m[i];
    float vi = v[i];
    float pi = p[i];
    adam_element(f, to_f32(g[i]), pi, mi, vi);
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
    adamw_element(f, to_f32(g[i]), pi, mi, vi);
    m[i] = mi;
    v[i] = vi;
    p[i] = pi;
  }
}

template <class G>
SHARD_CLONES void sgd_range(std::int64_t n, SgdFactors f, const G* g, float* p) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) p[i] = sgd_element(f, to_f32(g[i]), p[i]);
}

template <class G>
SHARD_CLONES void momentum_range(std::int64_t n, SgdFactors f, const G* g, float* p, float* buffer) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) p[i] = momentum_element(f, to_f32(g[i]), p[i], buffer[i]);
}

}  // namespace

void adam(ThreadPool& pool, const OptimizerScalars& scalars, const std::int32_t* step, std::int64_t n,
          ConstElements gradient, float* parameter, float* first_moment, float* second_moment, float multiplier) {
  const AdamFactors f = adam_factors(scalars, *step, multiplier);
  with_type(gradient.dtype(), [&]<class G>(G) {
    run_ranges(pool, n, [=, g = gradient.as<G>()](std::int64_t i, std::int64_t count) {
      adam_range<G>(count, f, g + i, parameter + i, first_moment + i, second_moment + i);
    });
  });
}

void adamw(ThreadPool& pool, const OptimizerScalars& scalars, const std::int32_t* step, std::int64_t n,
           ConstElements gradient, float* parameter, float* first_moment, float* second_moment, float multiplier) {
  const AdamFactors f = adamw_factors(scalars, *step, multiplier);
  with_type(gradient.dtype(), [&]<class G>(G) {
    run_ranges(pool, n, [=, g = gradient.as<G>()](std::int64_t i, std::int64_t count) {
      adamw_range<G>(count, f, g + i, parameter + i, first_moment + i, second_moment + i);
    });
  });
}

void sgd(ThreadPool& pool, const OptimizerScalars& scalars, std::int64_t n, ConstElements gradient, float* parameter,
         float* momentum_buffer, float multiplier) {
  const SgdFactors f = sgd_factors(scalars, multiplier);
  with_type(gradient.dtype(), [&]<class G>(G) {
    run_ranges(pool, n, [=, g = gradient.as<G>()](std::int64_t i, std::int64_t count) {
      if (momentum_buffer == nullptr) {
        sgd_range<G>(count, f, g + i, parameter + i);
      } else {
        momentum_range<G>(count, f, g + i, parameter + i, momentum_buffer + i);
      }
    });
  });
}

}  // namespace shard::cpu
