// Is a difference in memory that is planted in what the CPU executor did named by its op and size, whatever the
// strategy; and does the prediction of the same plan show none?
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "executor/train/trace_observer.h"
#include "sim/engine/simulate.h"
#include "tests/agreement/random_runs.h"
#include "tests/daily.h"
#include "tests/engine/hand_made.h"
#include "tests/engine/planted_memory.h"
#include "traces/writer.h"

namespace shard {
namespace {

namespace fs = std::filesystem;

/// Of a class of strategies that are drawn until one does not contradict itself; at most four ranks.
struct Drawn {
  plan::ModelPtr model;
  plan::Strategy strategy;
};

std::optional<Drawn> drawn(unsigned seed) {
  RandomClass random_class(seed);
  for (int tries = 0; tries < 100; ++tries) {
    const std::optional<plan::Strategy> strategy = random_class.draw(plan::Device::cpu);
    if (strategy && strategy->world_size <= 4) return Drawn{random_class.model(), *strategy};
  }
  return std::nullopt;
}

cluster::Cluster cluster_of_no_machine() {
  cluster::Cluster cluster = engine::test::slow_cluster();
  cluster.memory_bandwidth = BytesPerSecond{1e9};
  return cluster;
}

Trace predicted(const plan::PlanSet& plans, const fs::path& path) {
  const cluster::Cluster cluster = cluster_of_no_machine();
  engine::SimulateOptions options{.steps = 2};
  Result<Writer> writer = Writer::create(path.string(), engine::trace_header(plans, cluster, options));
  EXPECT_TRUE(writer);
  options.trace = &*writer;
  EXPECT_TRUE(engine::simulate(plans, cluster, options));
  EXPECT_TRUE(writer->close());
  Result<Trace> trace = load(path.string());
  EXPECT_TRUE(trace);
  return std::move(*trace);
}

/// Three steps and the digest, ranks as threads, each with a trace of its own; all of them in one.
Trace measured(const Drawn& of, const plan::PlanSet& plans, unsigned seed, const fs::path& path) {
  Header header = engine::trace_header(plans, cluster_of_no_machine(), {});
  header.kind = TraceKind::measured;
  const auto ranks = static_cast<std::size_t>(of.strategy.world_size);
  std::vector<fs::path> files;
  std::vector<Writer> writers;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    files.emplace_back(path.string() + ".rank" + std::to_string(rank));
    Result<Writer> writer = Writer::create(files.back().string(), header);
    EXPECT_TRUE(writer);
    writers.push_back(std::move(*writer));
  }
  std::vector<std::unique_ptr<train::TraceObserver>> observers;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Rank of_rank{static_cast<std::int32_t>(rank)};
    observers.push_back(std::make_unique<train::TraceObserver>(plans.of_rank(of_rank.value), of_rank, writers[rank]));
  }
  const plan::Strategy& s = of.strategy;
  const auto run =
      train::run_in_process(plans, make_in_process(s.world_size), "random",
                            {.batch = s.micro_batch, .sequence = s.sequence, .seed = seed}, [&](std::int32_t rank) {
                              train::SessionOptions session = random_session(seed);
                              train::TraceObserver& observer = *observers[static_cast<std::size_t>(rank)];
                              session.observer = &observer;
                              session.before_phase = [&observer](Phase phase, std::int64_t step) {
                                observer.begin(phase, phase == Phase::digest ? 2 : step);
                              };
                              return session;
                            });
  EXPECT_TRUE(run) << to_string(run.error());
  for (Writer& writer : writers) EXPECT_TRUE(writer.close());
  EXPECT_TRUE(merge_traces(files, path));
  for (const fs::path& file : files) fs::remove(file);
  Result<Trace> trace = load(path.string());
  EXPECT_TRUE(trace);
  return std::move(*trace);
}

class PlantedInTheExecutor : public testing::TestWithParam<unsigned> {};

TEST_P(PlantedInTheExecutor, IsNamedByOpAndSize) {
  const unsigned seed = daily::pick(GetParam(), PLANTED_STRATEGIES, 100);
  const std::optional<Drawn> of = drawn(seed);
  if (!of) GTEST_SKIP() << "no strategy of this class has at most four ranks and does not contradict itself";
  const Result<plan::PlanSet> plans = plan::compile(of->model, of->strategy);
  ASSERT_TRUE(plans) << to_string(plans.error());
  const fs::path path = fs::path(testing::TempDir()) / ("planted-executor-" + std::to_string(seed) + ".sst");
  const Trace trace = measured(*of, *plans, seed, path);
  test::expect_equal_whatever_the_number_of_steps(predicted(*plans, path), trace);
  std::mt19937 random(seed);
  test::expect_planted_differences_named(trace, random);
  fs::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Strategies, PlantedInTheExecutor, testing::Range(0U, PLANTED_STRATEGIES));

}  // namespace
}  // namespace shard
