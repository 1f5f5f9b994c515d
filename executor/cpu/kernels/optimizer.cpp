// Optimizers: one pass that reads and writes each buffer once.
#include "executor/cpu/kernels/optimizer.h"

#include <atomic>

#include "executor/cpu/kernels/finite.h"
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

/// range(first, count) over the pool, and whether parameters are finite behind it.
template <class Range>
bool step_ranges(ThreadPool& pool, std::int64_t n, const float* parameter, const Range& range) {
  std::atomic<bool> finite{true};
  run_ranges(pool, n, [&](std::int64_t first, std::int64_t count) {
    range(first, count);
    if (!finite_range(count, parameter + first)) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load();
}

}  // namespace

bool adam(ThreadPool& pool, const OptimizerScalars& scalars, const std::int32_t* step, std::int64_t n,
          ConstElements gradient, float* parameter, float* first_moment, float* second_moment, float multiplier) {
  const AdamFactors f = adam_factors(scalars, *step, multiplier);
  bool finite = true;
  with_type(gradient.dtype(), [&]<class G>(G) {
    finite = step_ranges(pool, n, parameter, [=, g = gradient.as<G>()](std::int64_t i, std::int64_t count) {
      adam_range<G>(count, f, g + i, parameter + i, first_moment + i, second_moment + i);
    });
  });
  return finite;
}

bool adamw(ThreadPool& pool, const OptimizerScalars& scalars, const std::int32_t* step, std::int64_t n,
           ConstElements gradient, float* parameter, float* first_moment, float* second_moment, float multiplier) {
  const AdamFactors f = adamw_factors(scalars, *step, multiplier);
  bool finite = true;
  with_type(gradient.dtype(), [&]<class G>(G) {
    finite = step_ranges(pool, n, parameter, [=, g = gradient.as<G>()](std::int64_t i, std::int64_t count) {
      adamw_range<G>(count, f, g + i, parameter + i, first_moment + i, second_moment + i);
    });
  });
  return finite;
}

bool sgd(ThreadPool& pool, const OptimizerScalars& scalars, std::int64_t n, ConstElements gradient, float* parameter,
         float* momentum_buffer, float multiplier) {
  const SgdFactors f = sgd_factors(scalars, multiplier);
  bool finite = true;
  with_type(gradient.dtype(), [&]<class G>(G) {
    finite = step_ranges(pool, n, parameter, [=, g = gradient.as<G>()](std::int64_t i, std::int64_t count) {
      if (momentum_buffer == nullptr) {
        sgd_range<G>(count, f, g + i, parameter + i);
      } else {
        momentum_range<G>(count, f, g + i, parameter + i, momentum_buffer + i);
      }
    });
  });
  return finite;
}

}  // namespace shard::cpu
