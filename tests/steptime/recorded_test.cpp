// Do durations of a recorded run stand in for laws, where it has the operator, and nowhere else?
#include "profiler/steptime/recorded.h"

#include <gtest/gtest.h>

#include "profiler/steptime/forecast.h"
#include "profiler/steptime/timeline.h"
#include "sim/cluster/read_cluster.h"

namespace shard::steptime {
namespace {

using import::KinetoKernel;
using import::KinetoOperator;
using import::KinetoProgram;

KinetoOperator add_of(std::int64_t rows, std::int64_t begin, std::int64_t end) {
  KinetoOperator made;
  made.name = "aten::add";
  made.begin_ns = begin, made.end_ns = end, made.thread = 1;
  for (int i = 0; i < 2; ++i)
    made.inputs.push_back({.sizes = {rows, 1024}, .strides = {}, .type = "float", .argument = i});
  return made;
}

/// A recording of additions, each a kernel of so many nanoseconds.
KinetoProgram recording(std::initializer_list<std::pair<std::int64_t, std::int64_t>> rows_and_durations) {
  KinetoProgram made;
  std::int64_t time = 0;
  for (const auto& [rows, duration] : rows_and_durations) {
    made.operators.push_back(add_of(rows, time, time + 50));
    made.calls.push_back({.begin_ns = time + 10, .thread = 1, .correlation = time});
    KinetoKernel kernel;
    kernel.name = "elementwise_kernel", kernel.category = "kernel";
    kernel.duration_ns = duration, kernel.correlation = time;
    made.kernels.push_back(kernel);
    time += 100;
  }
  return made;
}

TEST(Recorded, IsTheMeanOfCallsWithTheSameTensors) {
  const Recorded recorded(recording({{1024, 1000}, {1024, 3000}, {2048, 500}}));
  EXPECT_EQ(recorded.count(), 2u);
  EXPECT_DOUBLE_EQ(*recorded.of(add_of(1024, 0, 1)), 2e-6);
  EXPECT_DOUBLE_EQ(*recorded.of(add_of(2048, 0, 1)), 0.5e-6);
  EXPECT_FALSE(recorded.of(add_of(4096, 0, 1)));
}

/// A step that adds twice.
Forecast step_with(const Recorded* recorded) {
  static const cluster::Cluster card = *cluster::read_cluster("a100-80gb-x8");
  KinetoProgram program;
  program.operators = {add_of(1024, 5, 45), add_of(4096, 55, 95)};
  const std::string kernel = "\t1\t0\t0\t4096\t1\t1\t128\t1\t1\telementwise_kernel\n";
  const auto work = parse_work(
      std::string(standin::kWorkHeader) + "\nk\t10" + kernel + "k\t60" + kernel + "s\t99\t1\t0\t0\t1\n", "test");
  return *forecast(*work, program, {.cluster = &card, .world_size = 1, .recorded = recorded});
}

double seconds_of(const Forecast& forecast, std::size_t i) {
  return (forecast.shown[i].end - forecast.shown[i].begin).count();
}

TEST(Recorded, StandsInForTheLawOfItsOperatorAlone) {
  const Recorded slow(recording({{1024, 1'000'000}}));
  const Forecast laws = step_with(nullptr), mixed = step_with(&slow);
  EXPECT_EQ(laws.recorded, 0);
  EXPECT_NEAR(seconds_of(mixed, 0), 1e-3 + (seconds_of(laws, 1) - seconds_of(mixed, 1)), 2e-6);
  EXPECT_NEAR(seconds_of(mixed, 1), seconds_of(laws, 1), 1e-12);
  EXPECT_GT(mixed.recorded, 0.9);
  EXPECT_LT(mixed.recorded, 1);
  EXPECT_DOUBLE_EQ(mixed.coverage, 1);
}

TEST(TraceOfStep, PutsMemoryOnTheClockOfThePrediction) {
  const Forecast f = step_with(nullptr);
  Trace trace;
  trace.header.wall_ns = trace.header.clock_ns = 1;
  for (const std::int64_t time : {0, 10, 35, 60, 5'000'000}) {
    MemoryEvent event;
    event.rank = Rank{0};
    event.time_ns = time;
    event.delta_bytes = 1;
    trace.memory.push_back(event);
  }
  add_to(trace, f, {.card = "a card"});
  ASSERT_EQ(trace.spans.size(), 2u);
  EXPECT_EQ(trace.header.kind, TraceKind::predicted);
  const std::vector<std::int64_t>& times = trace.memory.time_ns;
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  // Given at 10 and 60 of the dry run's clock.
  EXPECT_NEAR(static_cast<double>(times[1] - 10), f.host[0].predicted.count() * 1e9, 2);
  EXPECT_NEAR(static_cast<double>(times[3] - 10), f.host[1].predicted.count() * 1e9, 2);
  EXPECT_NEAR(static_cast<double>(times[2] - 10), (f.host[0].predicted + f.host[1].predicted).count() / 2 * 1e9, 2);
  // What follows is short, however long the dry run took.
  EXPECT_LE(static_cast<double>(times[4] - times[3]), f.seconds.count() * 0.25e9 + 2);
}

}  // namespace
}  // namespace shard::steptime
