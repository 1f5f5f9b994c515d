// Errors of many predictions, summed up.
#pragma once

#include <cstdint>
#include <vector>

namespace shard::validate {

/// Of absolute percentage errors, as fractions: 0.05 is 5 %. All 0 where nothing was counted.
struct ErrorSummary {
  std::int64_t count = 0;
  double median_ape = 0;
  double mean_ape = 0;
  double p90_ape = 0;
};

/// |predicted - measured| / measured.
[[nodiscard]] double absolute_percentage_error(double predicted, double measured);

/// Percentiles lie between neighbours, linearly: of n sorted errors the p-th is at p (n - 1), counted from 0.
[[nodiscard]] ErrorSummary summarize(std::vector<double> errors);

}  // namespace shard::validate
