// Dropout over blocks of the key's sequence.
#include "executor/cpu/kernels/dropout.h"

#include <algorithm>
#include <cassert>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "executor/kernels/philox.h"

namespace shard::cpu {
namespace {

constexpr std::int64_t kBlocksPerTask = 64;

// Elements [from, to) of block `block`, `x` and `y` being those of element `from`.
template <class T>
SHARD_CLONES void drop_block(const RandomKey& key, std::uint32_t counter, std::int64_t from, std::int64_t to,
                             std::uint32_t threshold, float factor, const T* x, T* y) {
  PhiloxWords words;
  philox(key, counter, words);
  alignas(64) std::uint32_t drawn[kPhiloxBlock];
  for (int w = 0; w < 4; ++w) {
    SHARD_INDEPENDENT
    for (int i = 0; i < kPhiloxCounters; ++i) drawn[4 * i + w] = words.w[w][i];
  }
  SHARD_INDEPENDENT
  for (std::int64_t i = from; i < to; ++i) {
    const float kept = to_f32(x[i - from]) * factor;
    y[i - from] = from_f32<T>(drawn[i] >= threshold ? kept : 0.0F);
  }
}

}  // namespace

void dropout(ThreadPool& pool, const RandomKey& key, float probability, std::int64_t first, std::int64_t n,
             ConstElements x, Elements y) {
  assert(probability >= 0 && probability < 1 && first >= 0 && first + n <= std::int64_t{1} << 34);
  if (n <= 0) return;
  const auto threshold = static_cast<std::uint32_t>(static_cast<double>(probability) * 0x1p32);
  const auto factor = static_cast<float>(1.0 / (1.0 - static_cast<double>(probability)));
  const std::int64_t begin = first / kPhiloxBlock;
  const std::int64_t end = ceil_div(first + n, kPhiloxBlock);
  with_type(x.dtype(), [&]<class T>(T) {
    const T* xt = x.as<T>();
    T* yt = y.as<T>();
    run_ranges(
        pool, end - begin,
        [&](std::int64_t block, std::int64_t count) {
          for (std::int64_t b = begin + block; b < begin + block + count; ++b) {
            const std::int64_t start = b * kPhiloxBlock;
            const std::int64_t from = std::max(first, start);
            const std::int64_t to = std::min(first + n, start + kPhiloxBlock);
            drop_block<T>(key, static_cast<std::uint32_t>(b * kPhiloxCounters), from - start, to - start, threshold,
                          factor, xt + (from - first), yt + (from - first));
          }
        },
        kBlocksPerTask);
  });
}

}  // namespace shard::cpu
