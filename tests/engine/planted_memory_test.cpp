// Is a planted difference in memory named by its op and size, whatever the strategy; and is there none without one?
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "sim/engine/simulate.h"
#include "sim/strategy/checks.h"
#include "tests/compile/random_cases.h"
#include "tests/daily.h"
#include "tests/engine/hand_made.h"
#include "tests/engine/planted_memory.h"
#include "traces/reader.h"

namespace shard::engine {
namespace {

/// The predicted trace of a random strategy of a random small model; `steps` steady ones behind the first.
Trace predicted(unsigned seed, std::int32_t steps) {
  plan::RandomCases cases(seed);
  const plan::ModelPtr model = cases.model();
  plan::Strategy strategy = cases.strategy(*model);
  while (!plan::check(*model, strategy)) strategy = cases.strategy(*model);
  const Result<plan::PlanSet> plans = plan::compile(model, strategy);
  EXPECT_TRUE(plans) << to_string(plans.error());
  cluster::Cluster cluster = test::slow_cluster();
  cluster.memory_bandwidth = BytesPerSecond{1e9};
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / ("planted-" + std::to_string(seed) + ".sst")).string();
  SimulateOptions options{.steps = steps};
  Result<Writer> writer = Writer::create(path, trace_header(*plans, cluster, options));
  EXPECT_TRUE(writer);
  options.trace = &*writer;
  const Result<Simulation> run = simulate(*plans, cluster, options);
  EXPECT_TRUE(run) << to_string(run.error());
  EXPECT_TRUE(writer->close());
  Result<Trace> trace = load(path);
  EXPECT_TRUE(trace);
  std::filesystem::remove(path);
  return std::move(*trace);
}

class PlantedMemory : public testing::TestWithParam<unsigned> {};

TEST_P(PlantedMemory, IsNamedByOpAndSize) {
  const unsigned seed = daily::pick(GetParam(), PLANTED_STRATEGIES, 400);
  std::mt19937 random(seed);
  const Trace first = predicted(seed, 3);
  shard::test::expect_equal_whatever_the_number_of_steps(first, predicted(seed, 5));
  shard::test::expect_planted_differences_named(first, random);
}

INSTANTIATE_TEST_SUITE_P(Strategies, PlantedMemory, testing::Range(0U, PLANTED_STRATEGIES));

}  // namespace
}  // namespace shard::engine
