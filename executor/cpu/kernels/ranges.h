// Cuts [0, n) into tasks of a fixed size.
#pragma once

#include <algorithm>
#include <cstdint>

#include "executor/cpu/kernels/simd.h"
#include "executor/cpu/kernels/threads.h"

namespace shard::cpu {

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Calls fn(first, count) for consecutive ranges of `size` elements (the last may be shorter).
template <class F>
void run_ranges(ThreadPool& pool, std::int64_t n, const F& fn, std::int64_t size = kElementwiseTask) {
  pool.run(ceil_div(n, size), [&](std::int64_t task) {
    const std::int64_t first = task * size;
    fn(first, std::min(size, n - first));
  });
}

}  // namespace shard::cpu
