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
#include "sim/target/workspace.h"

// The one function of the OpenMP runtime that is needed; omp.h would need the compiler's OpenMP package.
extern "C" void omp_set_num_threads(int);

namespace shard::cpu {
namespace {

const float* at(const MatrixView& view, std::int64_t row, std::int64_t column) {
  return view.transposed ? view.data + column * view.stride + row : view.data + row * view.stride + column;
}

// In place, n columns.
SHARD_CLONES void add_bias(std::int64_t rows, std::int64_t columns, const float* bias, float* c, std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    float* row = c + i * stride;
    SHARD_INDEPENDENT
    for (std::int64_t j = 0; j < columns; ++j) row[j] = row[j] + bias[j];
  }
}

// `rows` rows of `columns` elements, widened one behind the other; and back.
void widen_block(std::int64_t rows, std::int64_t columns, ConstElements from, std::int64_t stride, float* to) {
  with_type(from.dtype(), [&]<class T>(T) {
    const T* x = from.as<T>();
    for (std::int64_t r = 0; r < rows; ++r) {
      if constexpr (kDtypeOf<T> == Dtype::f32)
        std::copy_n(x + r * stride, columns, to + r * columns);
      else
        widen(x + r * stride, to + r * columns, columns);
    }
  });
}
void narrow_block(std::int64_t rows, std::int64_t columns, const float* from, Elements to, std::int64_t stride) {
  with_type(to.dtype(), [&]<class T>(T) {
    T* y = to.as<T>();
    for (std::int64_t r = 0; r < rows; ++r) {
      if constexpr (kDtypeOf<T> == Dtype::f32)
        std::copy_n(from + r * columns, columns, y + r * stride);
      else
        narrow(from + r * columns, y + r * stride, columns);
    }
  });
}

// Elements [row, row + rows) x [column, column + columns) of an operand: as the library reads them, behind each other.
MatrixView widen_part(const StoredMatrix& view, std::int64_t row, std::int64_t rows, std::int64_t column,
                      std::int64_t columns, float* to) {
  if (view.transposed) {
    widen_block(columns, rows, view.data.from(column * view.stride + row), view.stride, to);
    return {to, rows, true};
  }
  widen_block(rows, columns, view.data.from(row * view.stride + column), view.stride, to);
  return {to, columns, false};
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
  const plan::GemmGrid grid = plan::gemm_grid(m, n);
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

void gemm_widened(ThreadPool& pool, std::int64_t m, std::int64_t n, std::int64_t k, StoredMatrix a, StoredMatrix b,
                  Elements c, std::int64_t c_stride, Store store, ConstElements bias, std::span<std::byte> workspace) {
  const plan::GemmGrid grid = plan::gemm_grid(m, n);
  const plan::GemmPanels panels = plan::gemm_panels(m, n, k);
  const std::int64_t tiles = grid.tall * grid.wide;
  assert(static_cast<std::int64_t>(workspace.size()) >=
         std::min<std::int64_t>(tiles, pool.threads()) * panels.bytes.count());
  pool.run(tiles, [&](std::int64_t task, int worker) {
    const std::int64_t row = task % grid.tall * grid.rows;
    const std::int64_t column = task / grid.tall * grid.columns;
    const std::int64_t rows = std::min(grid.rows, m - row);
    const std::int64_t columns = std::min(grid.columns, n - column);
    const std::int64_t slot = tiles < pool.threads() ? task : worker;
    const auto panel = [&](Bytes offset) {
      return reinterpret_cast<float*>(workspace.data() + slot * panels.bytes.count() + offset.count());
    };
    float* tile = panel(panels.c);
    const Elements out = c.from(row * c_stride + column);
    if (store == Store::add) widen_block(rows, columns, out, c_stride, tile);
    for (std::int64_t inner = 0; inner < k; inner += plan::kGemmInner) {
      const std::int64_t depth = std::min(plan::kGemmInner, k - inner);
      const MatrixView a32 = widen_part(a, row, rows, inner, depth, panel(panels.a));
      const MatrixView b32 = widen_part(b, inner, depth, column, columns, panel(panels.b));
      gemm_tile(rows, columns, depth, 1.0F, a32, b32, store == Store::add || inner > 0 ? 1.0F : 0.0F, tile, columns);
    }
    if (bias.present()) {
      float* bias32 = panel(panels.a);  // read for the last time above
      widen_block(1, columns, bias.from(column), columns, bias32);
      add_bias(rows, columns, bias32, tile, columns);
    }
    narrow_block(rows, columns, tile, out, c_stride);
  });
}

void warm_up(ThreadPool& pool) {
  constexpr std::int64_t kEdge = 768;
  constexpr std::int64_t kInner = 1024;
  constexpr std::int64_t kSmallEdge = 96;
  constexpr std::int64_t kSmallInner = 256;
  const std::vector<float> operand(static_cast<std::size_t>(kEdge * kInner));
  std::vector<float> results(static_cast<std::size_t>(kEdge * kEdge) * static_cast<std::size_t>(pool.threads()));
  std::atomic<int> arrived{0};
  pool.run(pool.threads(), [&](std::int64_t task) {
    // One task per thread: nobody leaves before all have come.
    ++arrived;
    while (arrived.load() < pool.threads()) sched_yield();
    float* c = results.data() + task * kEdge * kEdge;
    const auto product = [&](std::int64_t edge, std::int64_t inner, bool a_transposed, bool b_transposed, float beta) {
      gemm_tile(edge, edge, inner, 1.0F, {operand.data(), a_transposed ? edge : inner, a_transposed},
                {operand.data(), b_transposed ? inner : edge, b_transposed}, beta, c, edge);
    };
    // The buffers are as large whichever operand is transposed: one large product has them, small ones have the code.
    product(kEdge, kInner, false, false, 0.0F);
    for (const bool a_transposed : {false, true})
      for (const bool b_transposed : {false, true})
        for (const float beta : {0.0F, 1.0F}) product(kSmallEdge, kSmallInner, a_transposed, b_transposed, beta);
  });
}

}  // namespace shard::cpu
