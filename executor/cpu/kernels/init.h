// Counter-based random numbers for parameters and random data: any cut of a range gives the same values.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/random_key.h"

namespace shard::cpu {

// All write elements first .. first+n-1 of the key's sequence to out[0..n-1]; first + n <= 2^34.

/// Normal with mean 0 (Box-Muller over words 2j, 2j+1 of the sequence).
void random_normal(ThreadPool& pool, const RandomKey& key, std::int64_t first, std::int64_t n, float deviation,
                   float* out);
/// Uniform in [-half_width, half_width), multiples of 2^-23 half_width.
void random_uniform(ThreadPool& pool, const RandomKey& key, std::int64_t first, std::int64_t n, float half_width,
                    float* out);
/// Uniform integers in 0..bound-1.
void random_integers(ThreadPool& pool, const RandomKey& key, std::int64_t first, std::int64_t n, std::int32_t bound,
                     std::int32_t* out);

}  // namespace shard::cpu
