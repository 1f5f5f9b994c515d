// numpy's mean and standard deviation, bit for bit.
#include "sim/search/outlier_filter.h"

#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>

namespace shard {
namespace {

/// numpy's summation order for contiguous float64: fewer than 8 one by one; up to 128 in eight interleaved sums, joined
/// as a tree, then the rest one by one; more in two halves, the first a multiple of 8.
double pairwise_sum(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n < 8) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  if (n <= 128) {
    std::array<double, 8> sums{};
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] = values[lane];
    std::size_t index = 8;
    for (; index + 8 <= n; index += 8) {
      for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += values[index + lane];
    }
    double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; index < n; ++index) sum += values[index];
    return sum;
  }
  const std::size_t half = n / 2 - n / 2 % 8;
  return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
}

}  // namespace

double outlier_bound(std::span<const std::int64_t> sizes) {
  assert(!sizes.empty());
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) total += size;  // exact: sums below 2^53 are so in numpy too
  const auto n = static_cast<double>(sizes.size());
  const double mean = static_cast<double>(total) / n;
  std::vector<double> squares;
  squares.reserve(sizes.size());
  for (const std::int64_t size : sizes) {
    const double deviation = static_cast<double>(size) - mean;
    squares.push_back(deviation * deviation);
  }
  const double three_sigma = 3 * std::sqrt(pairwise_sum(squares) / n);
  return mean + three_sigma;
}

std::vector<std::int64_t> without_outliers(std::span<const std::int64_t> sizes) {
  const double bound = outlier_bound(sizes);
  std::vector<std::int64_t> kept;
  kept.reserve(sizes.size());
  for (const std::int64_t size : sizes) {
    if (static_cast<double>(size) <= bound) kept.push_back(size);
  }
  return kept;
}

}  // namespace shard
