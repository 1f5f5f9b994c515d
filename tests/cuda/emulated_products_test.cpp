// Are products of the emulated device sums in fp32 of widened operands, rounded once, with bits that only the shape
// decides?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "executor/cuda/emulated/random.h"
#include "executor/numeric/half.h"
#include "tests/cuda/emulated_support.h"

namespace shard::cuda {
namespace {

using testing::HasSubstr;

struct Matrices {
  std::vector<float> a, b, c, bias;
};

template <class T>
std::vector<float> multiplied(const ProductShape& shape, const Matrices& in) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  const auto put = [&](const std::vector<float>& values) {
    std::vector<T> narrow;
    for (const float each : values) narrow.push_back(from_f32<T>(each));
    return device.make(stream, narrow);
  };
  T* const c = put(in.c);
  auto* const workspace = device->allocate(Bytes{1024}).value();
  const Product product = device->prepare_product(shape, Bytes{1024}).value();
  const auto bytes = [](T* memory) { return reinterpret_cast<std::byte*>(memory); };
  EXPECT_TRUE(device->multiply(
      stream, product,
      {bytes(put(in.a)), bytes(put(in.b)), shape.bias ? bytes(put(in.bias)) : nullptr, bytes(c), {workspace, 1024}}));
  std::vector<float> wide;
  for (const T each : device.read(stream, c, in.c.size())) wide.push_back(to_f32(each));
  return wide;
}

/// As the interface says, one element after the other.
template <class T>
std::vector<float> expected(const ProductShape& shape, const Matrices& in) {
  const auto narrow = [](float value) { return to_f32(from_f32<T>(value)); };
  std::vector<float> out;
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < shape.k; ++k) {
        const auto a = static_cast<std::size_t>(shape.transpose_a ? k * shape.m + i : i * shape.k + k);
        const auto b = static_cast<std::size_t>(shape.transpose_b ? j * shape.k + k : k * shape.n + j);
        volatile const float term = narrow(in.a[a]) * narrow(in.b[b]);  // no fused multiply-add
        sum += term;
      }
      if (shape.accumulate) sum += narrow(in.c[out.size()]);
      if (shape.bias) sum += narrow(in.bias[static_cast<std::size_t>(j)]);
      out.push_back(narrow(sum));
    }
  }
  return out;
}

Matrices random_matrices(const ProductShape& shape) {
  emulated::Random random(static_cast<std::uint64_t>(shape.m * 1000 + shape.n * 100 + shape.k));
  const auto draw = [&](std::int64_t n) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& each : values) each = static_cast<float>(random.below(20001)) / 10000.0F - 1.0F;
    return values;
  };
  return {draw(shape.m * shape.k), draw(shape.k * shape.n), draw(shape.m * shape.n), draw(shape.n)};
}

TEST(EmulatedProducts, EveryShapeLayoutAndType) {
  for (const auto& [m, n, k] : {std::array{1, 1, 1}, {3, 5, 7}, {4, 32, 16}, {5, 33, 17}, {64, 31, 100}, {7, 100, 1}}) {
    for (int flags = 0; flags < 16; ++flags) {
      ProductShape shape{.m = m,
                         .n = n,
                         .k = k,
                         .transpose_a = (flags & 1) != 0,
                         .transpose_b = (flags & 2) != 0,
                         .accumulate = (flags & 4) != 0,
                         .bias = (flags & 8) != 0};
      const Matrices in = random_matrices(shape);
      EXPECT_EQ(multiplied<float>(shape, in), expected<float>(shape, in)) << m << " " << n << " " << k << " " << flags;
      shape.dtype = Dtype::bf16;
      EXPECT_EQ(multiplied<Bf16>(shape, in), expected<Bf16>(shape, in)) << m << " " << n << " " << k << " " << flags;
      shape.dtype = Dtype::f16;
      EXPECT_EQ(multiplied<F16>(shape, in), expected<F16>(shape, in)) << m << " " << n << " " << k << " " << flags;
    }
  }
}

TEST(EmulatedProducts, TensorFloatKeepsTenBits) {
  ProductShape shape{.m = 1, .n = 1, .k = 1};
  const Matrices in{{1.0F + 0x1p-12F}, {3.0F}, {0.0F}, {}};
  EXPECT_EQ(multiplied<float>(shape, in)[0], 3.0F + 3 * 0x1p-12F);
  shape.tensor_float = true;
  EXPECT_EQ(multiplied<float>(shape, in)[0], 3.0F);
}

TEST(EmulatedProducts, OperandsAreLookedAt) {
  const auto outcome = [](auto change) {
    EmulatedDevice device;
    const Stream stream = device.stream();
    static float host[16];
    ProductOperands operands{reinterpret_cast<std::byte*>(device.room<float>(5)),
                             reinterpret_cast<std::byte*>(device.room<float>(4)),
                             nullptr,
                             reinterpret_cast<std::byte*>(device.room<float>(4)),
                             {device->allocate(Bytes{64}).value(), 64}};
    change(operands, reinterpret_cast<std::byte*>(host));
    const Product product = device->prepare_product({.m = 2, .n = 2, .k = 2}, Bytes{64}).value();
    return said(device->multiply(stream, product, operands));
  };
  EXPECT_EQ(outcome([](ProductOperands&, std::byte*) {}), "no error");
  EXPECT_THAT(outcome([](ProductOperands& o, std::byte* host) { o.a = host; }),
              HasSubstr("A of a product is the host's"));
  EXPECT_THAT(outcome([](ProductOperands& o, std::byte*) { o.b += 16; }), HasSubstr("B of a product, 16 bytes"));
  EXPECT_THAT(outcome([](ProductOperands& o, std::byte*) { o.a += 4; }),
              HasSubstr("A of a product does not begin at a multiple of 16 bytes"));
  EXPECT_THAT(outcome([](ProductOperands& o, std::byte*) { o.c = nullptr; }), HasSubstr("C of a product"));
  EXPECT_THAT(outcome([](ProductOperands& o, std::byte*) { o.workspace = o.workspace.first(63); }),
              HasSubstr("less workspace"));
}

}  // namespace
}  // namespace shard::cuda
