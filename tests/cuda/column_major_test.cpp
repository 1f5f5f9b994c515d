// Is a row-major product, as the column-major one that the library is asked for, the same product?
#include "executor/cuda/module/column_major.h"

#include <gtest/gtest.h>

#include <vector>

namespace shard::cuda {
namespace {

using Matrix = ColumnMajor::Matrix;

/// What cuBLASLt's manual says: element (row, column) of op(X), with X column-major.
double element(const std::vector<double>& data, const Matrix& matrix, std::int64_t row, std::int64_t column) {
  if (matrix.transpose) std::swap(row, column);
  EXPECT_LT(row, matrix.rows);
  EXPECT_LT(column, matrix.columns);
  return data[static_cast<std::size_t>(row + column * matrix.stride)];
}

TEST(ColumnMajorProduct, IsTheRowMajorOne) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const ProductShape shape{.m = 3, .n = 5, .k = 2, .transpose_a = transpose_a, .transpose_b = transpose_b};
      std::vector<double> a(6);
      std::vector<double> b(10);
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = 1.0 + static_cast<double>(i);
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = 100.0 * static_cast<double>(i + 1);
      const ColumnMajor as = column_major(shape);
      // [n,m] column-major, so with n contiguous: C as it lies in memory.
      EXPECT_EQ(as.out, (Matrix{5, 3, 5, false}));
      for (std::int64_t i = 0; i < shape.m; ++i) {
        for (std::int64_t j = 0; j < shape.n; ++j) {
          double expected = 0;
          double given = 0;
          for (std::int64_t k = 0; k < shape.k; ++k) {
            expected += a[static_cast<std::size_t>(transpose_a ? k * 3 + i : i * 2 + k)] *
                        b[static_cast<std::size_t>(transpose_b ? j * 2 + k : k * 5 + j)];
            given += element(b, as.left, j, k) * element(a, as.right, k, i);
          }
          EXPECT_EQ(given, expected) << i << " " << j << " " << transpose_a << transpose_b;
        }
      }
    }
  }
}

}  // namespace
}  // namespace shard::cuda
