// Tiles of 4 by 32 elements over widened copies of both operands; what is cut where changes no sum.
#include "executor/cuda/emulated/products.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "executor/numeric/half.h"
#include "executor/numeric/vectorise.h"

namespace shard::cuda::emulated {
namespace {

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kColumns = 32;

/// Rounded to the 10 bits of fraction that TF32 has, to nearest even.
float to_tensor_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7F800000U) == 0x7F800000U) return value;
  return std::bit_cast<float>((bits + 0x0FFFU + ((bits >> 13) & 1U)) & 0xFFFFE000U);
}

/// As fp32, [rows_padded, columns_padded] with zeros where there is nothing; `transposed`: lies as [columns, rows].
std::vector<float> widened(Dtype dtype, bool tensor_float, const std::byte* from, std::int64_t rows,
                           std::int64_t columns, bool transposed, std::int64_t rows_padded,
                           std::int64_t columns_padded) {
  std::vector<float> flat(static_cast<std::size_t>(rows * columns));
  widen(dtype, from, flat.data(), rows * columns);
  if (tensor_float && dtype == Dtype::f32) std::ranges::transform(flat, flat.begin(), to_tensor_float);
  std::vector<float> out(static_cast<std::size_t>(rows_padded * columns_padded));
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const to = &out[static_cast<std::size_t>(row * columns_padded)];
    if (!transposed) {
      std::copy_n(&flat[static_cast<std::size_t>(row * columns)], columns, to);
    } else {
      for (std::int64_t column = 0; column < columns; ++column)
        to[column] = flat[static_cast<std::size_t>(column * rows + row)];
    }
  }
  return out;
}

using Vector = float __attribute__((vector_size(64)));

SHARD_LAMBDA inline void load(Vector& to, const float* from) {
  std::memcpy(&to, from, sizeof to);
}

/// out[4,32] = a[4,k] b[k,32]; rows of b are `stride` apart.
SHARD_CLONES void tile(std::int64_t k, const float* a, const float* b, std::int64_t stride, float* out) {
  Vector s00{}, s01{}, s10{}, s11{}, s20{}, s21{}, s30{}, s31{};
  for (std::int64_t i = 0; i < k; ++i) {
    Vector left;
    Vector right;
    load(left, b + i * stride);
    load(right, b + i * stride + 16);
    const float a0 = a[i];
    const float a1 = a[k + i];
    const float a2 = a[2 * k + i];
    const float a3 = a[3 * k + i];
    s00 += a0 * left, s01 += a0 * right;
    s10 += a1 * left, s11 += a1 * right;
    s20 += a2 * left, s21 += a2 * right;
    s30 += a3 * left, s31 += a3 * right;
  }
  std::memcpy(out, &s00, 64), std::memcpy(out + 16, &s01, 64);
  std::memcpy(out + 32, &s10, 64), std::memcpy(out + 48, &s11, 64);
  std::memcpy(out + 64, &s20, 64), std::memcpy(out + 80, &s21, 64);
  std::memcpy(out + 96, &s30, 64), std::memcpy(out + 112, &s31, 64);
}

std::int64_t padded(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

ProductBytes product_bytes(const ProductShape& shape) {
  const std::int64_t element = bytes_per_element(shape.dtype);
  return {shape.m * shape.k * element, shape.k * shape.n * element, shape.bias ? shape.n * element : 0,
          shape.m * shape.n * element};
}

void compute_product(const ProductShape& shape, const ProductOperands& operands) {
  const std::int64_t m = shape.m;
  const std::int64_t n = shape.n;
  const std::int64_t k = shape.k;
  const std::int64_t columns = padded(n, kColumns);
  const std::vector<float> a =
      widened(shape.dtype, shape.tensor_float, operands.a, m, k, shape.transpose_a, padded(m, kRows), k);
  const std::vector<float> b =
      widened(shape.dtype, shape.tensor_float, operands.b, k, n, shape.transpose_b, k, columns);
  std::vector<float> old(static_cast<std::size_t>(shape.accumulate ? m * n : 0));
  widen(shape.dtype, operands.c, old.data(), static_cast<std::int64_t>(old.size()));
  std::vector<float> bias(static_cast<std::size_t>(shape.bias ? n : 0));
  widen(shape.dtype, operands.bias, bias.data(), static_cast<std::int64_t>(bias.size()));
  std::vector<float> result(static_cast<std::size_t>(m * n));
  std::array<float, kRows * kColumns> sums;
  // Columns outside: 32 of b stay near while all rows of a go by.
  for (std::int64_t column = 0; column < n; column += kColumns) {
    for (std::int64_t row = 0; row < m; row += kRows) {
      tile(k, a.data() + row * k, b.data() + column, columns, sums.data());
      for (std::int64_t i = row; i < std::min(m, row + kRows); ++i) {
        for (std::int64_t j = column; j < std::min(n, column + kColumns); ++j) {
          float sum = sums[static_cast<std::size_t>((i - row) * kColumns + j - column)];
          const auto at = static_cast<std::size_t>(i * n + j);
          if (shape.accumulate) sum += old[at];
          if (shape.bias) sum += bias[static_cast<std::size_t>(j)];
          result[at] = sum;
        }
      }
    }
  }
  narrow(shape.dtype, result.data(), operands.c, m * n);
}

}  // namespace shard::cuda::emulated
