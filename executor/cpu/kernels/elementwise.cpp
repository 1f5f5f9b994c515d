// Elementwise kernels: fixed cuts of the range, one loop each.
#include "executor/cpu/kernels/elementwise.h"

#include <algorithm>
#include <cstring>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"

namespace shard::cpu {
namespace {

SHARD_CLONES void add_range(std::int64_t n, const float* a, const float* b, float* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

SHARD_CLONES void scale_range(std::int64_t n, float factor, const float* x, float* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * factor;
}

}  // namespace

void add(ThreadPool& pool, std::int64_t n, const float* a, const float* b, float* y) {
  run_ranges(pool, n, [=](std::int64_t i, std::int64_t count) { add_range(count, a + i, b + i, y + i); });
}

void add_into(ThreadPool& pool, std::int64_t n, const float* src, float* dst) {
  add(pool, n, dst, src, dst);
}

void scale(ThreadPool& pool, std::int64_t n, float factor, const float* x, float* y) {
  run_ranges(pool, n, [=](std::int64_t i, std::int64_t count) { scale_range(count, factor, x + i, y + i); });
}

void zero(ThreadPool& pool, std::int64_t n, float* y) {
  fill(pool, n, 0.0F, y);
}

void fill(ThreadPool& pool, std::int64_t n, float value, float* y) {
  run_ranges(pool, n, [=](std::int64_t i, std::int64_t count) { std::fill_n(y + i, count, value); });
}

void copy(ThreadPool& pool, std::int64_t n, const float* src, float* dst) {
  run_ranges(pool, n, [=](std::int64_t i, std::int64_t count) {
    std::memcpy(dst + i, src + i, static_cast<std::size_t>(count) * sizeof(float));
  });
}

}  // namespace shard::cpu
