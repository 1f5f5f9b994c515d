// Median, mean and 90th percentile.
#include "sim/validate/errors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace shard::validate {
namespace {

double percentile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

}  // namespace

double absolute_percentage_error(double predicted, double measured) {
  return std::abs(predicted - measured) / measured;
}

ErrorSummary summarize(std::vector<double> errors) {
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  return {.count = static_cast<std::int64_t>(errors.size()),
          .median_ape = percentile(errors, 0.5),
          .mean_ape = std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size()),
          .p90_ape = percentile(errors, 0.9)};
}

}  // namespace shard::validate
