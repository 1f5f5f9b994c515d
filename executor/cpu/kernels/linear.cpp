// Linear layers in terms of gemm, and the bias gradient.
#include "executor/cpu/kernels/linear.h"

#include "executor/cpu/kernels/columns.h"
#include "executor/cpu/kernels/gemm.h"

namespace shard::cpu {
namespace {

// W as the matrix [I,O], and its transpose [O,I].
MatrixView weight_in_out(const LinearShape& shape, const float* weight) {
  return shape.weight_in_out ? MatrixView{weight, shape.out, false} : MatrixView{weight, shape.in, true};
}
MatrixView weight_out_in(const LinearShape& shape, const float* weight) {
  return shape.weight_in_out ? MatrixView{weight, shape.out, true} : MatrixView{weight, shape.in, false};
}

SHARD_CLONES void sum_rows(std::int64_t rows, std::int64_t stride, std::int64_t width, const float* x, float* out,
                           Store store) {
  float total[kStrip] = {};
  for (std::int64_t first = 0; first < rows; first += kRowBlock) {
    float block[kStrip] = {};
    const std::int64_t end = std::min(first + kRowBlock, rows);
    for (std::int64_t t = first; t < end; ++t) {
      const float* row = x + t * stride;
      SHARD_INDEPENDENT
      for (std::int64_t c = 0; c < width; ++c) block[c] = block[c] + row[c];
    }
    for (std::int64_t c = 0; c < width; ++c) total[c] = total[c] + block[c];
  }
  store_strip(width, total, out, store);
}

}  // namespace

void linear_forward(ThreadPool& pool, const LinearShape& shape, const float* x, const float* weight, const float* bias,
                    float* y) {
  gemm(pool, shape.rows, shape.out, shape.in, {x, shape.in, false}, weight_in_out(shape, weight), y, shape.out,
       Store::write, bias);
}

void linear_backward_input(ThreadPool& pool, const LinearShape& shape, const float* dy, const float* weight, float* dx,
                           Store store) {
  gemm(pool, shape.rows, shape.in, shape.out, {dy, shape.out, false}, weight_out_in(shape, weight), dx, shape.in,
       store);
}

void linear_backward_weight(ThreadPool& pool, const LinearShape& shape, const float* x, const float* dy, float* dweight,
                            float* dbias, Store store) {
  if (shape.weight_in_out) {
    gemm(pool, shape.in, shape.out, shape.rows, {x, shape.in, true}, {dy, shape.out, false}, dweight, shape.out, store);
  } else {
    gemm(pool, shape.out, shape.in, shape.rows, {dy, shape.out, true}, {x, shape.in, false}, dweight, shape.in, store);
  }
  if (dbias == nullptr) return;
  run_strips(pool, shape.out, [&](std::int64_t column, std::int64_t width) {
    sum_rows(shape.rows, shape.out, width, dy + column, dbias + column, store);
  });
}

}  // namespace shard::cpu
