// Is every 16-bit value told from infinities and NaN, and one among many found wherever it stands?
#include "executor/cpu/kernels/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace shard::cpu::test {
namespace {

template <class T>
void expect_every_pattern() {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const T value{static_cast<std::uint16_t>(bits)};
    ASSERT_EQ(finite_range(1, &value), std::isfinite(to_f32(value))) << bits;
  }
}

TEST(FiniteRange, KnowsEvery16BitValue) {
  expect_every_pattern<F16>();
  expect_every_pattern<Bf16>();
}

template <class T>
void expect_found_anywhere(T number, T infinite) {
  std::vector<T> x(100, number);
  const auto n = static_cast<std::int64_t>(x.size());
  EXPECT_TRUE(finite_range(n, x.data()));
  for (T& each : x) {
    each = infinite;
    EXPECT_FALSE(finite_range(n, x.data())) << &each - x.data();
    each = number;
  }
  x.back() = infinite;
  EXPECT_TRUE(finite_range(n - 1, x.data()));
}

TEST(FiniteRange, FindsOneAmongMany) {
  expect_found_anywhere(-2.5F, -std::numeric_limits<float>::infinity());
  expect_found_anywhere(F16{0xFBFF}, F16{0xFC00});
  expect_found_anywhere(Bf16{0x7F7F}, Bf16{0x7FC0});
}

}  // namespace
}  // namespace shard::cpu::test
