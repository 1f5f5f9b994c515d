// Do strategies train to the same bits wherever model data rests, in exactly the arenas planned?
#include <gtest/gtest.h>

#include "tests/agreement/matrix.h"

namespace shard {
namespace {

/// Every stage with every placement, units and the rest turning with them.
std::vector<std::vector<std::size_t>> placed_rows(const Subject& subject) {
  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t stage = 0; stage < 4; ++stage)
    for (std::size_t placement = 0; placement < kPlacements.size(); ++placement) {
      const std::size_t n = rows.size();
      rows.push_back({n % subject.worlds.size(), stage, (placement + stage) % kUnits.size(), n % kRecompute.size(),
                      n / 2 % 3, n % 2, 0, placement});
    }
  return rows;
}

class Place : public testing::TestWithParam<plan::Precision> {};

TEST_P(Place, MlpAgrees) {
  const Subject subject{.model = TEST_DATA "/data/models/mlp-small.json",
                        .micro_batch = 2,
                        .global_batch = 16,
                        .sequence = 1,
                        .chunk = Elems{900},
                        .steps = 3,
                        .worlds = {1, 2, 4, 8},
                        .precision = GetParam()};
  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t unit = 0; unit < kUnits.size(); ++unit)
    for (std::vector<std::size_t> row : placed_rows(subject)) {
      row[0] = (row[0] + unit) % 4;
      row[2] = unit;
      rows.push_back(row);
    }
  expect_agreement(subject, rows);
}

TEST_P(Place, LlamaNanoAgrees) {
  const Subject subject{.model = TEST_DATA "/data/models/llama-nano.json",
                        .global_batch = 4,
                        .sequence = 8,
                        .chunk = Elems{30'000},
                        .steps = 2,
                        .precision = GetParam()};
  expect_agreement(subject, placed_rows(subject));
}

INSTANTIATE_TEST_SUITE_P(All, Place,
                         testing::Values(plan::Precision::fp32, plan::Precision::bf16, plan::Precision::fp16),
                         [](const auto& param) { return std::string(to_string(param.param)); });

}  // namespace
}  // namespace shard
