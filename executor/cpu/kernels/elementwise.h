// Sums, scaling, filling and copying of n values.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"

namespace shard::cpu {

// An output may be the same buffer as an input; buffers do not overlap in part.

/// y = a + b.
void add(ThreadPool& pool, std::int64_t n, const float* a, const float* b, float* y);
/// dst += src.
void add_into(ThreadPool& pool, std::int64_t n, const float* src, float* dst);
/// y = x * factor.
void scale(ThreadPool& pool, std::int64_t n, float factor, const float* x, float* y);
void zero(ThreadPool& pool, std::int64_t n, float* y);
void fill(ThreadPool& pool, std::int64_t n, float value, float* y);
/// The buffers do not overlap.
void copy(ThreadPool& pool, std::int64_t n, const float* src, float* dst);

}  // namespace shard::cpu
