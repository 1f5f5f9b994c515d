// A row-major product as the column-major one that cuBLASLt computes.
#pragma once

#include "executor/cuda/api/api.h"

namespace shard::cuda {

/// The column-major product that cuBLASLt is asked for: C^T [n,m] = B^T A^T, whose operands lie in memory as the
/// row-major ones do. `left` is our B, `right` our A.
struct ColumnMajor {
  struct Matrix {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t stride = 0;  ///< elements from one column to the next
    bool transpose = false;
    friend bool operator==(const Matrix&, const Matrix&) = default;
  };
  Matrix left;
  Matrix right;
  Matrix out;
};
[[nodiscard]] constexpr ColumnMajor column_major(const ProductShape& s) {
  ColumnMajor p;
  // Row-major [r,c] is column-major [c,r].
  p.left = s.transpose_b ? ColumnMajor::Matrix{s.k, s.n, s.k, true} : ColumnMajor::Matrix{s.n, s.k, s.n, false};
  p.right = s.transpose_a ? ColumnMajor::Matrix{s.m, s.k, s.m, true} : ColumnMajor::Matrix{s.k, s.m, s.k, false};
  p.out = {s.n, s.m, s.n, false};
  return p;
}

}  // namespace shard::cuda
