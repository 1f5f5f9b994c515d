// Embeddings: rows copied by tokens; backward, a block to each token's first place sums over all its places in order.
#include <bit>

#include "executor/cuda/kernels/block_sum.h"
#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/packs.h"

namespace shard::cuda {
namespace {

/// The row of a token in a table that begins at token `first`; -1: it has none.
SHARD_DEVICE std::int64_t row_of(const EmbeddingShape& shape, std::int64_t token) {
  const std::int64_t row = token - shape.first;
  return row >= 0 && row < shape.vocabulary ? row : -1;
}

template <class T>
SHARD_KERNEL take_rows_kernel(EmbeddingShape shape, bool aligned, const std::int32_t* tokens, const T* table, T* y) {
  const std::int64_t n = shape.columns;
  const std::int64_t stride = static_cast<std::int64_t>(blockDim.x) * kPack;
  for (std::int64_t t = blockIdx.x; t < shape.tokens; t += gridDim.x) {
    const std::int64_t row = row_of(shape, tokens[t]);
    for (std::int64_t c = static_cast<std::int64_t>(threadIdx.x) * kPack; c < n; c += stride) {
      if (row < 0)
        zero_pack(n - c, aligned, y + t * n + c);
      else
        copy_pack(table + row * n + c, n - c, aligned, y + t * n + c);
    }
  }
}

template <class T>
SHARD_KERNEL zero_kernel(std::int64_t n, bool aligned, T* y) {
  for (std::int64_t i = kPack * first_element(); i < n; i += kPack * element_stride()) zero_pack(n - i, aligned, y + i);
}

constexpr std::int64_t kWordBits = 32;

/// Which of up to 32 tokens, `left` of them there, are `token`: bit i is of places[i].
SHARD_DEVICE std::uint32_t places_of(std::int32_t token, const std::int32_t* places, std::int64_t left, bool aligned) {
  std::uint32_t found = 0;
  if (aligned && left >= kWordBits) {
    for (int p = 0; p < kWordBits / kPack; ++p) {
      const Pack<std::int32_t> pack = reinterpret_cast<const Pack<std::int32_t>*>(places)[p];
      for (int k = 0; k < kPack; ++k) found |= static_cast<std::uint32_t>(pack.e[k] == token) << (p * kPack + k);
    }
  } else {
    for (int i = 0; i < kWordBits; ++i)
      if (i < left && places[i] == token) found |= 1U << i;
  }
  return found;
}

// Block (t, y) works where t is the first place of its token, on columns of strip y: a pack to a thread.
template <class T>
SHARD_KERNEL sum_places_kernel(EmbeddingShape shape, bool aligned, bool aligned_tokens, const T* dy,
                               const std::int32_t* tokens, T* dtable, Store store) {
  const std::int64_t place = blockIdx.x;
  const std::int32_t token = tokens[place];
  const std::int64_t row = row_of(shape, token);
  if (row < 0) return;
  std::uint32_t earlier = 0;
  for (std::int64_t t = threadIdx.x; t < place && earlier == 0; t += blockDim.x)
    if (tokens[t] == token) earlier = 1;
  std::uint32_t* words = shared<std::uint32_t>();
  if (block_sum(earlier, words + blockDim.x) != 0) return;

  const std::int64_t n = shape.columns;
  const std::int64_t c = kPack * (static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x);
  T* out = dtable + row * n + c;
  float total[kPack] = {};
  if (store == Store::add) load_pack(out, n - c, aligned, total);
  const std::int64_t chunk = kWordBits * blockDim.x;
  // Before `place` the token is not found, so the search may begin where words do.
  for (std::int64_t begin = place / kWordBits * kWordBits; begin < shape.tokens; begin += chunk) {
    const std::int64_t own = begin + kWordBits * threadIdx.x;
    words[threadIdx.x] = places_of(token, tokens + own, shape.tokens - own, aligned_tokens);
    __syncthreads();
    for (std::uint32_t w = 0; w < blockDim.x; ++w) {
      for (std::uint32_t found = words[w]; found != 0; found &= found - 1) {
        const std::int64_t t = begin + kWordBits * w + std::countr_zero(found);
        float d[kPack];
        load_pack(dy + t * n + c, n - c, aligned, d);
        for (int k = 0; k < kPack; ++k) total[k] = total[k] + d[k];
      }
    }
    if (begin + chunk < shape.tokens) __syncthreads();
  }
  store_pack(total, n - c, aligned, out);
}

// Block (x, y) takes sequences y, y + gridDim.y, ...; `size` elements each.
template <class T>
SHARD_KERNEL add_position_kernel(std::int64_t batch, std::int64_t size, bool aligned, const T* x, const T* table,
                                 T* y) {
  for (std::int64_t i = kPack * first_element(); i < size; i += kPack * element_stride()) {
    float p[kPack];
    load_pack(table + i, size - i, aligned, p);
    for (std::int64_t b = blockIdx.y; b < batch; b += gridDim.y) {
      float v[kPack];
      load_pack(x + b * size + i, size - i, aligned, v);
      for (int k = 0; k < kPack; ++k) v[k] = v[k] + p[k];
      store_pack(v, size - i, aligned, y + b * size + i);
    }
  }
}

/// The `table_size` elements of the table, of which sequences have the first `size`.
template <class T>
SHARD_KERNEL sum_sequences_kernel(std::int64_t batch, std::int64_t size, std::int64_t table_size, bool aligned,
                                  const T* dy, T* dtable, Store store) {
  for (std::int64_t i = kPack * first_element(); i < table_size; i += kPack * element_stride()) {
    // What no sequence reaches is zero, or left alone.
    const std::int64_t left = (store == Store::add ? size : table_size) - i;
    float total[kPack] = {};
    if (store == Store::add) load_pack(dtable + i, left, aligned, total);
    for (std::int64_t b = 0; b < batch; ++b) {
      float d[kPack];
      load_pack(dy + b * size + i, size - i, aligned, d);
      // The first one as it is: -0 stays -0.
      for (int k = 0; k < kPack; ++k) total[k] = b == 0 && store == Store::write ? d[k] : total[k] + d[k];
    }
    store_pack(total, left, aligned, dtable + i);
  }
}

template <class T>
void zero(Stream stream, std::int64_t n, T* y) {
  if (n == 0) return;
  launch(stream, {.blocks_x = blocks_for(packs_of(n)), .threads = kThreads}, zero_kernel<T>, n, aligned_packs(y), y);
}

[[nodiscard]] std::uint32_t strips_of(std::int64_t columns) {
  const std::int64_t width = static_cast<std::int64_t>(row_threads(columns)) * kPack;
  return static_cast<std::uint32_t>((columns + width - 1) / width);
}

}  // namespace

void embedding_forward(Stream stream, const EmbeddingShape& shape, const std::int32_t* tokens, ConstElements table,
                       Elements y) {
  if (shape.tokens == 0 || shape.columns == 0) return;
  with_type(y.dtype(), [&]<class T>(T) {
    const T* from = table.as<T>();
    T* yt = y.as<T>();
    launch(stream, {.blocks_x = static_cast<std::uint32_t>(shape.tokens), .threads = row_threads(shape.columns)},
           take_rows_kernel<T>, shape, aligned_rows(shape.columns, from, yt), tokens, from, yt);
  });
}

void embedding_backward(Stream stream, const EmbeddingShape& shape, ConstElements dy, const std::int32_t* tokens,
                        Elements dtable, Store store) {
  with_type(dtable.dtype(), [&]<class T>(T) {
    const T* d = dy.as<T>();
    T* table = dtable.as<T>();
    if (store == Store::write) zero(stream, shape.vocabulary * shape.columns, table);
    if (shape.tokens == 0 || shape.columns == 0) return;
    const std::uint32_t threads = row_threads(shape.columns);
    launch(stream,
           {.blocks_x = static_cast<std::uint32_t>(shape.tokens),
            .blocks_y = strips_of(shape.columns),
            .threads = threads,
            .shared_bytes = (threads + kMostWarps) * static_cast<std::uint32_t>(sizeof(std::uint32_t))},
           sum_places_kernel<T>, shape, aligned_rows(shape.columns, d, table), aligned_packs(tokens), d, tokens, table,
           store);
  });
}

void add_position_forward(Stream stream, const PositionShape& shape, ConstElements x, ConstElements table, Elements y) {
  const std::int64_t size = shape.sequence * shape.columns;
  if (shape.batch == 0 || size == 0) return;
  constexpr std::int64_t kMostBlocks = 64;
  with_type(y.dtype(), [&]<class T>(T) {
    const T* xt = x.as<T>();
    const T* positions = table.as<T>() + shape.first * shape.columns;
    T* yt = y.as<T>();
    launch(stream,
           {.blocks_x = blocks_for(packs_of(size)),
            .blocks_y = static_cast<std::uint32_t>(shape.batch < kMostBlocks ? shape.batch : kMostBlocks),
            .threads = kThreads},
           add_position_kernel<T>, shape.batch, size, aligned_rows(size, xt, positions, yt), xt, positions, yt);
  });
}

void add_position_backward(Stream stream, const PositionShape& shape, ConstElements dy, Elements dtable, Store store) {
  const std::int64_t size = shape.sequence * shape.columns;
  const std::int64_t before = shape.first * shape.columns;
  const std::int64_t table_size = shape.positions * shape.columns - before;
  with_type(dtable.dtype(), [&]<class T>(T) {
    const T* d = dy.as<T>();
    T* table = dtable.as<T>() + before;
    if (store == Store::write) zero(stream, before, dtable.as<T>());
    if (table_size == 0) return;
    launch(stream, {.blocks_x = blocks_for(packs_of(table_size)), .threads = kThreads}, sum_sequences_kernel<T>,
           shape.batch, size, table_size, aligned_rows(size, d, table), d, table, store);
  });
}

}  // namespace shard::cuda
