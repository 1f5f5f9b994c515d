// Tiles of C by shape, each one single-threaded call of oneDNN.
#include "executor/cpu/kernels/gemm.h"

#include <dnnl.h>

#include <algorithm>
#include <cassert>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"

// The one function of the OpenMP runtime that is needed; omp.h would need the compiler's OpenMP package.
extern "C" void omp_set_num_threads(int);

namespace shard::cpu {
namespace {

// Tiles of at most 384 x 384 keep both operands' packing below 3 % of a tile's time; fewer than four tiles (two
// threads, twice over) are halved along the longer edge, down to 128.
constexpr std::int64_t kLargestEdge = 384;
constexpr std::int64_t kSmallestEdge = 128;
constexpr std::int64_t kFewestTiles = 4;

struct Grid {
  std::int64_t rows;  // edge of a tile
  std::int64_t columns;
  std::int64_t tall;  // tiles along M
  std::int64_t wide;  // tiles along N
};

// Equal parts of at most `edge`, in multiples of 16 (a vector of the library's kernels).
std::int64_t even_edge(std::int64_t dimension, std::int64_t edge) {
  return ceil_div(ceil_div(dimension, ceil_div(dimension, edge)), 16) * 16;
}

Grid grid_of(std::int64_t m, std::int64_t n) {
  std::int64_t rows = even_edge(m, kLargestEdge);
  std::int64_t columns = even_edge(n, kLargestEdge);
  while (ceil_div(m, rows) * ceil_div(n, columns) < kFewestTiles && std::max(rows, columns) >= 2 * kSmallestEdge) {
    std::int64_t& edge = rows > columns ? rows : columns;
    edge = ceil_div(edge, 32) * 16;
  }
  return {rows, columns, ceil_div(m, rows), ceil_div(n, columns)};
}

const float* at(const MatrixView& view, std::int64_t row, std::int64_t column) {
  return view.transposed ? view.data + column * view.stride + row : view.data + row * view.stride + column;
}

SHARD_CLONES void add_bias(std::int64_t rows, std::int64_t columns, const float* bias, float* c, std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    float* row = c + i * stride;
    SHARD_INDEPENDENT
    for (std::int64_t j = 0; j < columns; ++j) row[j] = row[j] + bias[j];
  }
}

}  // namespace

void gemm_tile(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, MatrixView a, MatrixView b, float beta,
               float* c, std::int64_t c_stride) {
  // The library would start an OpenMP team of its own; one per thread that calls is enough.
  thread_local const bool alone = (omp_set_num_threads(1), true);
  (void)alone;
  [[maybe_unused]] const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data, a.stride, b.data, b.stride,
                 beta, c, c_stride);
  assert(status == dnnl_success);
}

void gemm(ThreadPool& pool, std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, float* c,
          std::int64_t c_stride, Store store, const float* bias) {
  const Grid grid = grid_of(m, n);
  // Neighbouring tasks share the columns of B, the larger operand of a forward product.
  pool.run(grid.tall * grid.wide, [&](std::int64_t task) {
    const std::int64_t row = task % grid.tall * grid.rows;
    const std::int64_t column = task / grid.tall * grid.columns;
    const std::int64_t rows = std::min(grid.rows, m - row);
    const std::int64_t columns = std::min(grid.columns, n - column);
    float* tile = c + row * c_stride + column;
    gemm_tile(rows, columns, k, 1.0F, {at(a, row, 0), a.stride, a.transposed},
              {at(b, 0, column), b.stride, b.transposed}, store == Store::add ? 1.0F : 0.0F, tile, c_stride);
    if (bias != nullptr) add_bias(rows, columns, bias + column, tile, c_stride);
  });
}

}  // namespace shard::cpu
