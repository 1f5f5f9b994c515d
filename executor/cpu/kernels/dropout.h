// Dropout, forward and backward, with a mask that is drawn again instead of being kept.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/init.h"
#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/random_key.h"

namespace shard::cpu {

/// y = x / (1 - probability) where element first + i of the key's sequence is at least probability x 2^32, else 0, for
/// i in [0, n). The gradient is the same function: dx of dy. 0 <= probability < 1; first + n <= 2^34; y may be x.
void dropout(ThreadPool& pool, const RandomKey& key, float probability, std::int64_t first, std::int64_t n,
             ConstElements x, Elements y);

}  // namespace shard::cpu
