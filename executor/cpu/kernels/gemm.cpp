// Tiles of C by shape, each one single-threaded call of oneDNN.
#include "executor/cpu/kernels/gemm.h"

#include <dnnl.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <vector>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"

// The one function of the OpenMP runtime that is needed; omp.h would need the compiler's OpenMP package.
extern "C" void omp_set_num_threads(int);

namespace shard::cpu {
namespace {

// Tiles of at most 512 x 768 cost 2 % against one call (packing is repeated); 512 columns would cost 10 % more where
// the inner dimension is short, as in the gradient of a vocabulary's weights: the library's blocks are 384 wide. At
// least four, so that a few threads share the work, unless they would be narrower than 128; an even number, for two.
constexpr std::int64_t kTallest = 512;
constexpr std::int64_t kWidest = 768;
constexpr std::int64_t kSmallestEdge = 128;
constexpr std::int64_t kFewestTiles = 4;
constexpr std::int64_t kManyTiles = 16;  // from here on an odd number does not matter

struct Grid {
  std::int64_t rows;  // edges of a tile
  std::int64_t columns;
  std::int64_t tall;  // tiles along M and N
  std::int64_t wide;
};

Grid grid_of(std::int64_t m, std::int64_t n) {
  std::int64_t tall = ceil_div(m, kTallest);
  std::int64_t wide = ceil_div(n, kWidest);
  const auto longer = [&]() -> std::int64_t& { return m * wide > n * tall ? tall : wide; };
  while (tall * wide < kFewestTiles && std::max(m / tall, n / wide) >= 2 * kSmallestEdge) longer() *= 2;
  if (tall * wide > 1 && tall * wide < kManyTiles && tall * wide % 2 != 0) longer() += 1;
  // Edges in multiples of 16, a vector of the library's kernels.
  const std::int64_t rows = ceil_div(ceil_div(m, tall), 16) * 16;
  const std::int64_t columns = ceil_div(ceil_div(n, wide), 16) * 16;
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

void warm_up(ThreadPool& pool) {
  constexpr std::int64_t kEdge = kWidest;
  constexpr std::int64_t kInner = 1024;
  const std::vector<float> operand(static_cast<std::size_t>(kEdge * kInner));
  std::vector<float> results(static_cast<std::size_t>(kEdge * kEdge) * static_cast<std::size_t>(pool.threads()));
  std::atomic<int> arrived{0};
  pool.run(pool.threads(), [&](std::int64_t task) {
    // One task per thread: nobody leaves before all have come.
    ++arrived;
    while (arrived.load() < pool.threads()) sched_yield();
    float* c = results.data() + task * kEdge * kEdge;
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        for (const float beta : {0.0F, 1.0F}) {
          gemm_tile(kEdge, kEdge, kInner, 1.0F, {operand.data(), a_transposed ? kEdge : kInner, a_transposed},
                    {operand.data(), b_transposed ? kInner : kEdge, b_transposed}, beta, c, kEdge);
        }
      }
    }
  });
}

}  // namespace shard::cpu
