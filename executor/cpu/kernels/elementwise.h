// Sums, scaling, filling and copying of n values.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"

namespace shard::cpu {

// An output may be the same buffer as an input; buffers do not overlap in part.

/// y = a + b.
void add(ThreadPool& pool, std::int64_t n, ConstElements a, ConstElements b, Elements y);
/// dst += src, a node of the gradient tree.
void add_into(ThreadPool& pool, std::int64_t n, ConstElements src, Elements dst);
/// y = x * factor.
void scale(ThreadPool& pool, std::int64_t n, float factor, ConstElements x, Elements y);
void zero(ThreadPool& pool, std::int64_t n, Elements y);
void fill(ThreadPool& pool, std::int64_t n, float value, Elements y);
/// dst = src; the types may differ (16-bit to the other 16-bit type goes through fp32). The buffers do not overlap.
void convert_copy(ThreadPool& pool, std::int64_t n, ConstElements src, Elements dst);

}  // namespace shard::cpu
