// Dropout: the four words of a counter to a thread, its elements by themselves.
#include <cassert>

#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/packs.h"
#include "executor/kernels/philox.h"

namespace shard::cuda {
namespace {

constexpr int kCounters = kPack / 4;  // of a pack

template <class T>
SHARD_KERNEL dropout_kernel(MaskSource source, const std::int64_t* step, std::uint32_t threshold, float factor,
                            std::int64_t n, bool aligned, const T* x, T* y) {
  const RandomKey key = dropout_key(source.seed, *step * source.micro_batches + source.micro_batch, source.mask);
  for (std::int64_t i = kPack * first_element(); i < n; i += kPack * element_stride()) {
    PhiloxWordsOf<kCounters> words;
    philox(key, static_cast<std::uint32_t>(i / 4), words);
    float values[kPack];
    load_pack(x + i, n - i, aligned, values);
    for (int k = 0; k < kPack; ++k) {
      const float kept = values[k] * factor;
      values[k] = words.w[k % 4][k / 4] >= threshold ? kept : 0.0F;
    }
    store_pack(values, n - i, aligned, y + i);
  }
}

}  // namespace

void dropout(Stream stream, const MaskSource& source, const std::int64_t* step, float probability, std::int64_t n,
             ConstElements x, Elements y) {
  assert(probability >= 0 && probability < 1 && n <= std::int64_t{1} << 34);
  if (n <= 0) return;
  const auto p = static_cast<double>(probability);
  const auto threshold = static_cast<std::uint32_t>(p * 0x1p32);
  const auto factor = static_cast<float>(1.0 / (1.0 - p));
  with_type(x.dtype(), [&]<class T>(T) {
    const T* const from = x.as<T>();
    T* const to = y.as<T>();
    launch(stream, {.blocks_x = blocks_for(packs_of(n)), .threads = kThreads}, dropout_kernel<T>, source, step,
           threshold, factor, n, aligned_packs(from, to), from, to);
  });
}

}  // namespace shard::cuda
