// What random numbers belong to: a key, under which every element has a number, whoever draws it.
#pragma once

#include <cstdint>

#include "executor/numeric/vectorise.h"

namespace shard {

/// What the numbers are for: different streams are independent under one seed. Values enter the key: append only.
enum class RandomStream : std::uint32_t {
  parameter = 0,  ///< index: position of the parameter in the model
  tokens = 1,     ///< index: number of the micro-batch in the run
  samples = 2,    ///< index: number of the micro-batch in the run (mlp inputs)
  targets = 3,    ///< index: number of the micro-batch in the run (mlp targets)
  dropout = 4,    ///< index: dropout_key()
  order = 5,      ///< index: epoch; row: round (executor/data/permutation.h)
};

/// Element e of a sequence is word e % 4 of Philox4x32-10 (Salmon et al., SC 2011) with key `seed` and counter
/// (e / 4, index low, index high, stream + 2^8 row).
struct RandomKey {
  std::uint64_t seed = 0;
  RandomStream stream = RandomStream::parameter;
  std::uint64_t index = 0;
  std::uint32_t row = 0;  ///< below 2^24: rows of numbers under one index
};

/// The key of one operator's mask on one micro-batch: never of a rank or of the order of calls. `micro_batch` is the
/// number of the micro-batch in the run (step x M + its index in the global batch), below 2^40; `index` is the
/// operator's in the graph, below 2^24.
[[nodiscard]] SHARD_BOTH constexpr RandomKey dropout_key(std::uint64_t seed, std::int64_t micro_batch,
                                                         std::int32_t index) {
  return {seed, RandomStream::dropout,
          static_cast<std::uint64_t>(index) << 40 | static_cast<std::uint64_t>(micro_batch)};
}

}  // namespace shard
