// Dropout, forward and backward, with a mask that is drawn again instead of being kept.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/elements.h"
#include "executor/cpu/kernels/init.h"
#include "executor/cpu/kernels/threads.h"

namespace shard::cpu {

/// The key of one operator's mask on one micro-batch: never of a rank or of the order of calls. `micro_batch` is the
/// number of the micro-batch in the run (step x M + its index in the global batch), below 2^40; `index` is the
/// operator's in the graph, below 2^24.
[[nodiscard]] constexpr RandomKey dropout_key(std::uint64_t seed, std::int64_t micro_batch, std::int32_t index) {
  return {seed, RandomStream::dropout,
          static_cast<std::uint64_t>(index) << 40 | static_cast<std::uint64_t>(micro_batch)};
}

/// y = x / (1 - probability) where element first + i of the key's sequence is at least probability x 2^32, else 0, for
/// i in [0, n). The gradient is the same function: dx of dy. 0 <= probability < 1; first + n <= 2^34; y may be x.
void dropout(ThreadPool& pool, const RandomKey& key, float probability, std::int64_t first, std::int64_t n,
             ConstElements x, Elements y);

}  // namespace shard::cpu
