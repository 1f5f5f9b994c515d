// Embeddings: forward by rows, backward by strips of columns so that every sum goes in order of tokens.
#include "executor/cpu/kernels/embedding.h"

#include <algorithm>
#include <cstring>

#include "executor/cpu/kernels/columns.h"
#include "executor/cpu/kernels/elementwise.h"
#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"

namespace shard::cpu {
namespace {

constexpr std::int64_t kRowsPerTask = 16;

SHARD_CLONES void add_rows(std::int64_t n, const float* a, const float* b, float* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

}  // namespace

void embedding_forward(ThreadPool& pool, const EmbeddingShape& shape, const std::int32_t* tokens, const float* table,
                       float* y) {
  const std::int64_t c = shape.columns;
  run_ranges(
      pool, shape.tokens,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t t = first; t < first + count; ++t) {
          std::memcpy(y + t * c, table + tokens[t] * c, static_cast<std::size_t>(c) * sizeof(float));
        }
      },
      kRowsPerTask);
}

void embedding_backward(ThreadPool& pool, const EmbeddingShape& shape, const float* dy, const std::int32_t* tokens,
                        float* dtable, Store store) {
  const std::int64_t c = shape.columns;
  if (store == Store::write) zero(pool, shape.vocabulary * c, dtable);
  run_strips(pool, c, [&](std::int64_t column, std::int64_t width) {
    for (std::int64_t t = 0; t < shape.tokens; ++t) {
      float* row = dtable + tokens[t] * c + column;
      add_rows(width, row, dy + t * c + column, row);
    }
  });
}

void add_position_forward(ThreadPool& pool, const PositionShape& shape, const float* x, const float* table, float* y) {
  const std::int64_t c = shape.columns;
  run_ranges(
      pool, shape.batch * shape.sequence,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t t = first; t < first + count; ++t) {
          add_rows(c, x + t * c, table + t % shape.sequence * c, y + t * c);
        }
      },
      kRowsPerTask);
}

void add_position_backward(ThreadPool& pool, const PositionShape& shape, const float* dy, float* dtable, Store store) {
  const std::int64_t c = shape.columns;
  const std::size_t row_bytes = static_cast<std::size_t>(c) * sizeof(float);
  run_ranges(
      pool, shape.positions,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t s = first; s < first + count; ++s) {
          float* row = dtable + s * c;
          if (s >= shape.sequence) {
            if (store == Store::write) std::memset(row, 0, row_bytes);
            continue;
          }
          if (store == Store::write) {
            std::memcpy(row, dy + s * c, row_bytes);
          } else {
            add_rows(c, row, dy + s * c, row);
          }
          for (std::int64_t b = 1; b < shape.batch; ++b) add_rows(c, row, dy + (b * shape.sequence + s) * c, row);
        }
      },
      kRowsPerTask);
}

}  // namespace shard::cpu
