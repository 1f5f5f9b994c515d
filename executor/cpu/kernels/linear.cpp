// Linear layers in terms of gemm, and the bias gradient.
#include "executor/cpu/kernels/linear.h"

#include "executor/cpu/kernels/columns.h"
#include "executor/cpu/kernels/gemm.h"

namespace shard::cpu {
namespace {

// W as the matrix [I,O], and its transpose [O,I].
StoredMatrix weight_in_out(const LinearShape& shape, ConstElements weight) {
  return shape.weight_in_out ? StoredMatrix{weight, shape.out, false} : StoredMatrix{weight, shape.in, true};
}
StoredMatrix weight_out_in(const LinearShape& shape, ConstElements weight) {
  return shape.weight_in_out ? StoredMatrix{weight, shape.out, true} : StoredMatrix{weight, shape.in, false};
}

MatrixView as_f32(const StoredMatrix& view) {
  return {view.data.as<float>(), view.stride, view.transposed};
}

// C [M,N], contiguous, by the library's reach into the operands where they are fp32.
void product(ThreadPool& pool, std::int64_t m, std::int64_t n, std::int64_t k, StoredMatrix a, StoredMatrix b,
             Elements c, Store store, ConstElements bias, std::span<std::byte> workspace) {
  if (c.dtype() == Dtype::f32) {
    gemm(pool, m, n, k, as_f32(a), as_f32(b), c.as<float>(), n, store, bias.as<float>());
  } else {
    gemm_widened(pool, m, n, k, a, b, c, n, store, bias, workspace);
  }
}

template <class T>
SHARD_CLONES void sum_rows(std::int64_t rows, std::int64_t stride, std::int64_t width, const T* x, T* out,
                           Store store) {
  float total[kStrip] = {};
  for (std::int64_t first = 0; first < rows; first += kRowBlock) {
    float block[kStrip] = {};
    const std::int64_t end = std::min(first + kRowBlock, rows);
    for (std::int64_t t = first; t < end; ++t) {
      const T* row = x + t * stride;
      SHARD_INDEPENDENT
      for (std::int64_t c = 0; c < width; ++c) block[c] = block[c] + to_f32(row[c]);
    }
    for (std::int64_t c = 0; c < width; ++c) total[c] = total[c] + block[c];
  }
  store_strip(width, total, out, store);
}

}  // namespace

void linear_forward(ThreadPool& pool, const LinearShape& shape, ConstElements x, ConstElements weight,
                    ConstElements bias, Elements y, std::span<std::byte> workspace) {
  product(pool, shape.rows, shape.out, shape.in, {x, shape.in, false}, weight_in_out(shape, weight), y, Store::write,
          bias, workspace);
}

void linear_backward_input(ThreadPool& pool, const LinearShape& shape, ConstElements dy, ConstElements weight,
                           Elements dx, Store store, std::span<std::byte> workspace) {
  product(pool, shape.rows, shape.in, shape.out, {dy, shape.out, false}, weight_out_in(shape, weight), dx, store,
          nullptr, workspace);
}

void linear_backward_weight(ThreadPool& pool, const LinearShape& shape, ConstElements x, ConstElements dy,
                            Elements dweight, Elements dbias, Store store, std::span<std::byte> workspace) {
  if (shape.weight_in_out) {
    product(pool, shape.in, shape.out, shape.rows, {x, shape.in, true}, {dy, shape.out, false}, dweight, store, nullptr,
            workspace);
  } else {
    product(pool, shape.out, shape.in, shape.rows, {dy, shape.out, true}, {x, shape.in, false}, dweight, store, nullptr,
            workspace);
  }
  if (dbias.present()) bias_gradient(pool, shape.rows, shape.out, dy, dbias, store);
}

void bias_gradient(ThreadPool& pool, std::int64_t rows, std::int64_t columns, ConstElements dy, Elements dbias,
                   Store store) {
  with_type(dbias.dtype(), [&]<class T>(T) {
    run_strips(pool, columns, [&, d = dy.as<T>(), out = dbias.as<T>()](std::int64_t column, std::int64_t width) {
      sum_rows<T>(rows, columns, width, d + column, out + column, store);
    });
  });
}

}  // namespace shard::cpu
