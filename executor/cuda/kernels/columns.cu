// Columns joined and taken, a bias added, and its gradient.
#include "executor/cuda/kernels/column_sums.h"
#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/packs.h"

namespace shard::cuda {
namespace {

// Kernels over rows: block (x, y) takes row x, x + gridDim.x, ... of part y.

SHARD_DEVICE std::int64_t first_column() {
  return static_cast<std::int64_t>(threadIdx.x) * kPack;
}
SHARD_DEVICE std::int64_t column_stride() {
  return static_cast<std::int64_t>(blockDim.x) * kPack;
}

/// Rows of `columns` elements, those of a part `x_step` apart in x and `y_step` in y, parts `x_part` and `y_part`.
struct Strides {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t parts = 1;
  std::int64_t x_step = 0;
  std::int64_t x_part = 0;
  std::int64_t y_step = 0;
  std::int64_t y_part = 0;
};

template <class T>
SHARD_KERNEL copy_rows_kernel(Strides s, bool aligned, const T* x, T* y) {
  for (std::int64_t part = blockIdx.y; part < s.parts; part += gridDim.y)
    for (std::int64_t row = blockIdx.x; row < s.rows; row += gridDim.x)
      for (std::int64_t c = first_column(); c < s.columns; c += column_stride())
        copy_pack(x + part * s.x_part + row * s.x_step + c, s.columns - c, aligned,
                  y + part * s.y_part + row * s.y_step + c);
}

template <class T>
SHARD_KERNEL add_bias_kernel(std::int64_t rows, std::int64_t columns, bool aligned, const T* bias, T* y) {
  for (std::int64_t c = first_column(); c < columns; c += column_stride()) {
    float b[kPack];
    load_pack(bias + c, columns - c, aligned, b);
    for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
      T* at = y + row * columns + c;
      float v[kPack];
      load_pack(at, columns - c, aligned, v);
      for (int k = 0; k < kPack; ++k) v[k] = v[k] + b[k];
      store_pack(v, columns - c, aligned, at);
    }
  }
}

template <class T>
SHARD_KERNEL column_sum_kernel(std::int64_t rows, std::int64_t columns, bool aligned, const T* x, T* out, Store store) {
  const std::int64_t c = strip_column();
  float totals[1][kPack] = {};
  for (std::int64_t t = first_row(); t < rows; t += row_stride()) {
    float v[kPack];
    load_pack(x + t * columns + c, columns - c, aligned, v);
    for (int k = 0; k < kPack; ++k) totals[0][k] = totals[0][k] + v[k];
  }
  store_column_sums<1, T>(totals, columns, store, {out});
}

[[nodiscard]] std::uint32_t blocks_upto(std::int64_t most, std::int64_t n) {
  return static_cast<std::uint32_t>(n < most ? n : most);
}

constexpr std::int64_t kMostRowBlocks = 16384;
constexpr std::int64_t kMostPartBlocks = 64;

void copy_rows(Stream stream, const Strides& s, ConstElements x, Elements y) {
  if (s.rows == 0 || s.columns == 0 || s.parts == 0) return;
  with_type(y.dtype(), [&]<class T>(T) {
    const T* xt = x.as<T>();
    T* yt = y.as<T>();
    launch(stream,
           {.blocks_x = blocks_upto(kMostRowBlocks, s.rows),
            .blocks_y = blocks_upto(kMostPartBlocks, s.parts),
            .threads = row_threads(s.columns)},
           copy_rows_kernel<T>, s, aligned_rows(s.columns, xt, yt), xt, yt);
  });
}

}  // namespace

void join_columns(Stream stream, const ColumnParts& shape, ConstElements x, Elements y) {
  copy_rows(stream,
            {.rows = shape.rows,
             .columns = shape.columns,
             .parts = shape.parts,
             .x_step = shape.columns,
             .x_part = shape.rows * shape.columns,
             .y_step = shape.parts * shape.columns,
             .y_part = shape.columns},
            x, y);
}

void take_columns(Stream stream, const ColumnParts& shape, std::int64_t part, ConstElements x, Elements y) {
  copy_rows(
      stream,
      {.rows = shape.rows, .columns = shape.columns, .x_step = shape.parts * shape.columns, .y_step = shape.columns},
      x.from(part * shape.columns), y);
}

void add_bias(Stream stream, std::int64_t rows, std::int64_t columns, ConstElements bias, Elements y) {
  if (rows == 0 || columns == 0) return;
  with_type(y.dtype(), [&]<class T>(T) {
    const T* b = bias.as<T>();
    T* yt = y.as<T>();
    launch(stream, {.blocks_x = blocks_upto(kMostRowBlocks, rows), .threads = row_threads(columns)}, add_bias_kernel<T>,
           rows, columns, aligned_rows(columns, b, yt), b, yt);
  });
}

void bias_gradient(Stream stream, std::int64_t rows, std::int64_t columns, ConstElements dy, Elements dbias,
                   Store store) {
  if (columns == 0) return;
  with_type(dbias.dtype(), [&]<class T>(T) {
    const T* d = dy.as<T>();
    launch(stream, column_launch(rows, columns, 1), column_sum_kernel<T>, rows, columns, aligned_rows(columns, d), d,
           dbias.as<T>(), store);
  });
}

}  // namespace shard::cuda
