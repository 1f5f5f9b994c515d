// Embeddings: forward by rows, backward by strips of columns so that every sum goes in order of tokens.
#include "executor/cpu/kernels/embedding.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "executor/cpu/kernels/columns.h"
#include "executor/cpu/kernels/elementwise.h"
#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "sim/target/workspace.h"

namespace shard::cpu {
namespace {

constexpr std::int64_t kRowsPerTask = 16;

/// The row of a token in a table that begins at token `first`; -1: it has none.
[[nodiscard]] std::int64_t row_of(const EmbeddingShape& shape, std::int64_t token) {
  const std::int64_t row = token - shape.first;
  return row >= 0 && row < shape.vocabulary ? row : -1;
}

template <class T>
SHARD_CLONES void add_rows(std::int64_t n, const T* a, const T* b, T* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = from_f32<T>(to_f32(a[i]) + to_f32(b[i]));
}

template <class T>
SHARD_CLONES void add_to_strip(std::int64_t width, const T* x, float* total) {
  SHARD_INDEPENDENT
  for (std::int64_t c = 0; c < width; ++c) total[c] = total[c] + to_f32(x[c]);
}

template <class T>
SHARD_CLONES void finish_strip(std::int64_t width, const float* total, T* out) {
  store_strip(width, total, out, Store::write);
}

// In 16 bits a row's sum stays in fp32 until it is complete: the tokens in order, equal ones next to each other and in
// order of their places.
template <class T>
void scatter_rounded_once(ThreadPool& pool, const EmbeddingShape& shape, const T* dy, const std::int32_t* tokens,
                          T* dtable, std::span<std::byte> workspace) {
  const std::int64_t c = shape.columns;
  assert(static_cast<std::int64_t>(workspace.size()) >=
         plan::embedding_backward_workspace(shape.tokens, kDtypeOf<T>).count());
  auto* order = reinterpret_cast<std::uint64_t*>(workspace.data());
  std::int64_t here = 0;
  for (std::int64_t t = 0; t < shape.tokens; ++t)
    if (const std::int64_t row = row_of(shape, tokens[t]); row >= 0)
      order[here++] = static_cast<std::uint64_t>(row) << 32 | static_cast<std::uint64_t>(t);
  std::sort(order, order + here);
  run_strips(pool, c, [&](std::int64_t column, std::int64_t width) {
    float total[kStrip];
    for (std::int64_t i = 0; i < here;) {
      const std::uint64_t number = order[i] >> 32;
      T* row = dtable + static_cast<std::int64_t>(number) * c + column;
      for (std::int64_t k = 0; k < width; ++k) total[k] = to_f32(row[k]);
      for (; i < here && order[i] >> 32 == number; ++i)
        add_to_strip<T>(width, dy + static_cast<std::int64_t>(order[i] & 0xFFFFFFFFU) * c + column, total);
      finish_strip<T>(width, total, row);
    }
  });
}

}  // namespace

void embedding_forward(ThreadPool& pool, const EmbeddingShape& shape, const std::int32_t* tokens, ConstElements table,
                       Elements y) {
  const std::int64_t c = shape.columns;
  const auto row_bytes = static_cast<std::size_t>(c * bytes_per_element(y.dtype()));
  run_ranges(
      pool, shape.tokens,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t t = first; t < first + count; ++t) {
          const std::int64_t row = row_of(shape, tokens[t]);
          if (row < 0)
            std::memset(y.from(t * c).bytes(), 0, row_bytes);
          else
            std::memcpy(y.from(t * c).bytes(), table.from(row * c).bytes(), row_bytes);
        }
      },
      kRowsPerTask);
}

void embedding_backward(ThreadPool& pool, const EmbeddingShape& shape, ConstElements dy, const std::int32_t* tokens,
                        Elements dtable, Store store, std::span<std::byte> workspace) {
  const std::int64_t c = shape.columns;
  if (store == Store::write) zero(pool, shape.vocabulary * c, dtable);
  with_type(dtable.dtype(), [&]<class T>(T) {
    const T* d = dy.as<T>();
    T* table = dtable.as<T>();
    if constexpr (kDtypeOf<T> == Dtype::f32) {
      run_strips(pool, c, [&](std::int64_t column, std::int64_t width) {
        for (std::int64_t t = 0; t < shape.tokens; ++t) {
          const std::int64_t r = row_of(shape, tokens[t]);
          if (r < 0) continue;
          T* row = table + r * c + column;
          add_rows<T>(width, row, d + t * c + column, row);
        }
      });
    } else {
      scatter_rounded_once<T>(pool, shape, d, tokens, table, workspace);
    }
  });
}

void add_position_forward(ThreadPool& pool, const PositionShape& shape, ConstElements x, ConstElements table,
                          Elements y) {
  const std::int64_t c = shape.columns;
  with_type(y.dtype(), [&]<class T>(T) {
    const T* xt = x.as<T>();
    const T* positions = table.as<T>();
    T* yt = y.as<T>();
    run_ranges(
        pool, shape.batch * shape.sequence,
        [&](std::int64_t first, std::int64_t count) {
          for (std::int64_t t = first; t < first + count; ++t) {
            add_rows<T>(c, xt + t * c, positions + (shape.first + t % shape.sequence) * c, yt + t * c);
          }
        },
        kRowsPerTask);
  });
}

void add_position_backward(ThreadPool& pool, const PositionShape& shape, ConstElements dy, Elements dtable,
                           Store store) {
  const std::int64_t c = shape.columns;
  with_type(dtable.dtype(), [&]<class T>(T) {
    const T* d = dy.as<T>();
    T* table = dtable.as<T>();
    run_ranges(
        pool, shape.positions,
        [&](std::int64_t first, std::int64_t count) {
          for (std::int64_t r = first; r < first + count; ++r) {
            T* row = table + r * c;
            const std::int64_t s = r - shape.first;
            if (s < 0 || s >= shape.sequence) {
              if (store == Store::write) std::fill_n(row, c, T{});
              continue;
            }
            for (std::int64_t column = 0; column < c; column += kStrip) {
              const std::int64_t width = std::min(kStrip, c - column);
              float total[kStrip];
              const T* start = store == Store::write ? d + s * c + column : row + column;
              for (std::int64_t k = 0; k < width; ++k) total[k] = to_f32(start[k]);
              for (std::int64_t b = store == Store::write ? 1 : 0; b < shape.batch; ++b)
                add_to_strip<T>(width, d + (b * shape.sequence + s) * c + column, total);
              finish_strip<T>(width, total, row + column);
            }
          }
        },
        kRowsPerTask);
  });
}

}  // namespace shard::cpu
