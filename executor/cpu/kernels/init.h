// Counter-based random numbers for parameters and random data: any cut of a range gives the same values.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"

namespace shard::cpu {

/// What the numbers are for: different streams are independent under one seed. Values enter the key: append only.
enum class RandomStream : std::uint32_t {
  parameter = 0,  ///< index: position of the parameter in the model
  tokens = 1,     ///< index: number of the micro-batch in the run
  samples = 2,    ///< index: number of the micro-batch in the run (mlp inputs)
  targets = 3,    ///< index: number of the micro-batch in the run (mlp targets)
  dropout = 4,    ///< index: dropout_key()
};

/// Element e of a sequence is word e % 4 of Philox4x32-10 (Salmon et al., SC 2011) with key `seed` and counter
/// (e / 4, index low, index high, stream + 2^8 row).
struct RandomKey {
  std::uint64_t seed = 0;
  RandomStream stream = RandomStream::parameter;
  std::uint64_t index = 0;
  std::uint32_t row = 0;  ///< below 2^24: rows of numbers under one index
};

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
