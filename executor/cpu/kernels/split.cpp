// Columns joined, taken, and a bias added.
#include "executor/cpu/kernels/split.h"

#include <cassert>
#include <cstring>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"

namespace shard::cpu {
namespace {

constexpr std::int64_t kRowsPerTask = 16;

template <class T>
SHARD_CLONES void add_row(std::int64_t n, const T* bias, T* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = from_f32<T>(to_f32(y[i]) + to_f32(bias[i]));
}

}  // namespace

void join_columns(ThreadPool& pool, const ColumnParts& shape, ConstElements x, Elements y) {
  assert(x.dtype() == y.dtype());
  const auto bytes = static_cast<std::size_t>(shape.columns * bytes_per_element(y.dtype()));
  run_ranges(
      pool, shape.rows,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t row = first; row < first + count; ++row)
          for (std::int64_t p = 0; p < shape.parts; ++p)
            std::memcpy(y.from((row * shape.parts + p) * shape.columns).bytes(),
                        x.from((p * shape.rows + row) * shape.columns).bytes(), bytes);
      },
      kRowsPerTask);
}

void take_columns(ThreadPool& pool, const ColumnParts& shape, std::int64_t part, ConstElements x, Elements y) {
  assert(x.dtype() == y.dtype());
  const auto bytes = static_cast<std::size_t>(shape.columns * bytes_per_element(y.dtype()));
  run_ranges(
      pool, shape.rows,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t row = first; row < first + count; ++row)
          std::memcpy(y.from(row * shape.columns).bytes(), x.from((row * shape.parts + part) * shape.columns).bytes(),
                      bytes);
      },
      kRowsPerTask);
}

void add_bias(ThreadPool& pool, std::int64_t rows, std::int64_t columns, ConstElements bias, Elements y) {
  with_type(y.dtype(), [&]<class T>(T) {
    run_ranges(
        pool, rows,
        [&, b = bias.as<T>(), out = y.as<T>()](std::int64_t first, std::int64_t count) {
          for (std::int64_t row = first; row < first + count; ++row) add_row<T>(columns, b, out + row * columns);
        },
        kRowsPerTask);
  });
}

}  // namespace shard::cpu
