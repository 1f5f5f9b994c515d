// Does a whole run of a hand-made plan add up: times, counts, peaks, what fits, the trace?
#include "sim/engine/simulate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "hand_made.h"
#include "sim/engine/report.h"
#include "traces/reader.h"

namespace shard::engine {
namespace {

using test::HandMade;
using test::slow_cluster;

/// On two ranks: creation takes p (128) for 5 s. A step gathers g (256, 40 bytes: 20 s), computes 10 s beside it and 4
/// s after it with a (64), then goes back 6 s and reduces (80 bytes: 40 s). The first step also bears s (512), for 3 s.
HandMade training() {
  HandMade h(2);
  h.plan.strategy.global_batch = 8;
  h.plan.strategy.sequence = 10;
  const BufferId p = h.buffer("p", 0, 128, Category::parameter);
  const BufferId s = h.buffer("s", 128, 512, Category::optimizer_state);
  const BufferId g = h.buffer("h.0.g", 640, 256, Category::gathered);
  const BufferId a = h.buffer("a", 896, 64, Category::activation);
  h.plan.arena_bytes[0] = Bytes{960};
  h.phase(Phase::creation).work(Stream::compute, 5).acquire = plan::list({p});
  for (const Phase phase : {Phase::first_step, Phase::steady_step}) {
    h.phase(phase);
    plan::Op& gather = h.gather(40);
    const OpId gathered = gather.id;
    gather.acquire = plan::list({g});
    gather.part = plan::Part::gather;
    h.work(Stream::compute, 10).part = plan::Part::forward;
    plan::Op& forward = h.work(Stream::compute, 4, {gathered});  // 20 .. 24
    forward.part = plan::Part::forward;
    forward.acquire = plan::list({a});
    forward.release = plan::list({g});
    plan::Op& backward = h.work(Stream::compute, 6);  // 24 .. 30
    const OpId done = backward.id;
    backward.part = plan::Part::backward;
    backward.release = plan::list({a});
    h.gather(80, {done}, Collective::reduce_scatter).part = plan::Part::reduce;  // 30 .. 70
    if (phase == Phase::first_step) {
      plan::Op& birth = h.work(Stream::compute, 3, {OpId{done.value + 1}});
      birth.acquire = plan::list({s});
      birth.part = plan::Part::optimizer;
    }
  }
  h.phase(Phase::digest).work(Stream::compute, 7).part = plan::Part::digest;
  return h;
}

Simulation simulated(const SimulateOptions& options = {}) {
  const Result<Simulation> s = simulate(training().set(), slow_cluster(), options);
  EXPECT_TRUE(s) << (s ? "" : to_string(s.error()));
  return *s;
}

TEST(Simulate, TimesOfPhasesAndShares) {
  const Simulation s = simulated({.steps = 10});
  EXPECT_EQ(s.creation_seconds, Seconds{5});
  EXPECT_EQ(s.first_step_seconds, Seconds{73});
  EXPECT_EQ(s.step_seconds, Seconds{70});
  EXPECT_EQ(s.run_seconds, Seconds{5 + 73 + 9 * 70});
  const PhaseResult& p = *s.classes[0].find(Phase::steady_step);
  EXPECT_EQ(p.compute_seconds, Seconds{10 + 4 + 6});
  EXPECT_EQ(p.communication_seconds, Seconds{20 + 40});
  EXPECT_EQ(p.exposed_communication_seconds, Seconds{10 + 40});
  EXPECT_DOUBLE_EQ(s.tokens_per_second, 80.0 / 70);
}

TEST(Simulate, TimesOfACalibratedMachineAreSurerThanOfADescription) {
  const auto doubt = [](std::optional<cluster::Measured> measured) {
    cluster::Cluster cluster = slow_cluster();
    cluster.measured = std::move(measured);
    return simulate(training().set(), cluster, {})->time_doubt;
  };
  EXPECT_EQ(doubt({}), 1);
  EXPECT_EQ(doubt(cluster::Measured{.occupancies = {{}}}), 0.25) << "of a file that does not say";
  EXPECT_EQ(doubt(cluster::Measured{.occupancies = {{}}, .step_error = 0.12}), 0.12);
  const Simulation s = simulated();
  EXPECT_EQ(s.low(s.step_seconds), Seconds{35});
  EXPECT_EQ(s.high(s.step_seconds), Seconds{140});
}

TEST(Simulate, CountsOfARunAreCreationAndSteps) {
  const Simulation s = simulated({.steps = 10, .digest = true});
  const CollectiveCounts& c = s.classes[0].collectives;
  EXPECT_EQ(c[static_cast<std::size_t>(Collective::all_gather)], (CollectiveCount{10, Bytes{400}}));
  EXPECT_EQ(c[static_cast<std::size_t>(Collective::reduce_scatter)], (CollectiveCount{10, Bytes{800}}));
  EXPECT_EQ(s.run_seconds, Seconds{5 + 73 + 9 * 70 + 7});
  EXPECT_EQ(s.classes[0].ranks, (std::vector<std::int32_t>{0, 1}));
}

TEST(Simulate, EachPhaseHasItsOwnPeak) {
  const Simulation s = simulated({.steps = 2});
  const auto peak = [&](Phase phase) { return s.classes[0].find(phase)->memory[0]; };
  EXPECT_EQ(peak(Phase::creation).peak, Bytes{128});
  EXPECT_EQ(peak(Phase::first_step).peak, Bytes{960});
  EXPECT_EQ(peak(Phase::first_step).live_peak, Bytes{128 + 512});  // forward 128 + 256 + 64 is less
  EXPECT_EQ(peak(Phase::steady_step).live_peak, Bytes{128 + 512 + 256 + 64});
  EXPECT_EQ(peak(Phase::digest).peak, Bytes{640});
  EXPECT_FALSE(s.classes[0].find(Phase::digest)->in_run);
}

TEST(Simulate, TheLargestHoldersAreNamedLargestFirst) {
  const Simulation s = simulated({.steps = 2, .holders = 2});
  const std::vector<Holder>& h = s.classes[0].find(Phase::steady_step)->memory[0].largest_holders;
  ASSERT_EQ(h.size(), 2u);
  EXPECT_EQ(h[0].name, "s");
  EXPECT_EQ(h[0].bytes, Bytes{512});
  EXPECT_EQ(h[1].name, "h.0.g");
}

TEST(Simulate, HoldersThatDifferInALayerNumberAreOne) {
  HandMade h;
  h.phase(Phase::creation);
  plan::Op& op = h.work(Stream::compute, 1);
  for (int i = 0; i < 12; ++i) {
    plan::edit(op.acquire)
        .push_back(h.buffer("h." + std::to_string(i) + ".fc2.weight", i * 64, 64, Category::parameter));
  }
  plan::edit(op.acquire).push_back(h.buffer("wte2", 768, 128, Category::parameter));
  const Result<Simulation> s = simulate(h.set(), slow_cluster());
  ASSERT_TRUE(s);
  const std::vector<Holder>& holders = s->classes[0].find(Phase::creation)->memory[0].largest_holders;
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].name, "h.*.fc2.weight");
  EXPECT_EQ(holders[0].buffers, 12);
  EXPECT_EQ(holders[0].bytes, Bytes{768});
  EXPECT_EQ(holders[1].name, "wte2");
}

TEST(Simulate, MomentsAreAfterCreationForwardBackwardAndStep) {
  const Simulation s = simulated({.steps = 2});
  std::vector<std::pair<std::string, std::int64_t>> moments;
  for (const Moment& m : s.classes[0].moments) moments.emplace_back(m.name, m.live.count());
  EXPECT_EQ(moments, (std::vector<std::pair<std::string, std::int64_t>>{
                         {"creation", 128}, {"forward", 704}, {"backward", 640}, {"step", 640}}));
}

TEST(Simulate, TheSeriesBeginsWithWhatIsLiveAndFollowsTheStep) {
  const Simulation s = simulated({.steps = 2});
  std::vector<std::pair<double, std::int64_t>> points;
  for (const MemoryPoint& p : s.classes[0].series) {
    std::int64_t sum = 0;
    for (const Bytes b : p.live) sum += b.count();
    points.emplace_back(p.time.count(), sum);
  }
  EXPECT_EQ(points,
            (std::vector<std::pair<double, std::int64_t>>{{0, 640}, {0, 896}, {20, 960}, {24, 704}, {30, 640}}));
}

TEST(Simulate, FitsComparesTheExtentsOfTheRunsPhases) {
  EXPECT_TRUE(simulated().fits);  // no limit
  EXPECT_EQ(simulated().headroom(), std::nullopt);
  EXPECT_TRUE(simulated({.device_capacity = Bytes{960}}).fits);
  const Simulation s = simulated({.device_capacity = Bytes{959}});
  EXPECT_FALSE(s.fits);
  EXPECT_EQ(s.headroom(), Bytes{-1});
}

TEST(Simulate, JsonHasTheKeysThatProgramsRead) {
  const nlohmann::json j = to_json(simulated({.steps = 10, .device_capacity = Bytes{900}}),
                                   Change{"--stage 3", plan::Strategy{}, Bytes{700}});
  EXPECT_EQ(j["schema_version"], 2);
  EXPECT_EQ(j["fits"], false);
  EXPECT_EQ(j["headroom_bytes"], -60);
  EXPECT_EQ(j["peak_device_bytes"], 960);
  EXPECT_EQ(j["live_peak_device_bytes"], 960);
  EXPECT_EQ(j["largest_holders"][0]["name"], "s");
  EXPECT_EQ(j["smallest_change"]["options"], "--stage 3");
  EXPECT_EQ(j["arenas"], nlohmann::json::parse(R"([{"rank":0,"memory":"device","predicted_peak_bytes":960},
                                                   {"rank":1,"memory":"device","predicted_peak_bytes":960}])"));
  EXPECT_EQ(j["collectives"].size(), 4u);
  EXPECT_EQ(j["collectives"][0]["predicted_count"], 10);
  EXPECT_EQ(j["step_seconds"], 70.0);
  EXPECT_TRUE(to_json(simulated())["device_capacity_bytes"].is_null());
}

TEST(Simulate, TextSaysWhatToTry) {
  const Simulation run = simulated({.steps = 10, .device_capacity = Bytes{900}});
  const std::string text = verdict_text(run, Change{"--stage 3", plan::Strategy{}, Bytes{700}}, unit_of(run)) +
                           details_text(run, unit_of(run));
  EXPECT_NE(text.find("does not fit"), std::string::npos);
  EXPECT_NE(text.find("try: --stage 3"), std::string::npos);
  EXPECT_NE(text.find("ranks 0-1"), std::string::npos);
  EXPECT_NE(text.find("reduce_scatter"), std::string::npos);
}

TEST(Simulate, RefusesARunWithoutStepsAndTooManyRanks) {
  EXPECT_EQ(simulate(training().set(), slow_cluster(), {.steps = 0}).error().code, Errc::contradiction);
  cluster::Cluster small = slow_cluster();
  small.devices_per_host = 1;
  small.ranks_share_device = false;
  EXPECT_EQ(simulate(training().set(), small).error().code, Errc::contradiction);
}

TEST(Simulate, ALongRunsTraceHoldsItsFirstStepsAndAllTotals) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "simulate_long_test.trace";
  const plan::PlanSet plans = training().set();
  Result<Writer> writer = Writer::create(path, trace_header(plans, slow_cluster(), {}));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(simulate(plans, slow_cluster(), {.steps = 1000, .trace = &*writer, .trace_ranks = 1, .trace_steps = 4}));
  ASSERT_TRUE(writer->close());
  const Result<Trace> trace = load(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->spans.size(), 1u + 6 + 3 * 5);
  EXPECT_EQ(trace->collectives[0].count, 1000);
}

TEST(Simulate, TheTraceKnowsTheCapacitiesThatDecideWhatFits) {
  cluster::Cluster machine = slow_cluster();
  machine.device_memory = std::nullopt;
  machine.host_memory = std::nullopt;
  const plan::PlanSet plans = training().set();
  EXPECT_TRUE(trace_header(plans, machine, {}).capacities.empty());
  machine.device_memory = Bytes{2000};
  machine.host_memory = Bytes{5000};
  machine.devices_per_host = 2;
  EXPECT_EQ(trace_header(plans, machine, {}).capacities,
            (std::vector<MemoryCapacity>{{Rank{}, Memory::device, 1, 2000}, {Rank{}, Memory::host, 2, 5000}}));
  EXPECT_EQ(trace_header(plans, machine, {.device_capacity = Bytes{900}, .host_capacity = Bytes{700}}).capacities,
            (std::vector<MemoryCapacity>{{Rank{}, Memory::device, 1, 900}, {Rank{}, Memory::host, 2, 700}}));
}

TEST(Simulate, TheTraceTellsTheSameRunForEveryRank) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "simulate_test.trace";
  const plan::PlanSet plans = training().set();
  Result<Writer> writer = Writer::create(path, trace_header(plans, slow_cluster(), {}));
  ASSERT_TRUE(writer);
  const Result<Simulation> s = simulate(plans, slow_cluster(), {.steps = 3, .digest = true, .trace = &*writer});
  ASSERT_TRUE(s);
  ASSERT_TRUE(writer->close());
  const Result<Trace> trace = load(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(trace);
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(trace->header.kind, TraceKind::predicted);
  EXPECT_EQ(trace->header.world_size, 2);
  EXPECT_EQ(trace->spans.size(), 2u * (1 + 6 + 2 * 5 + 1));

  std::int64_t end = 0;
  for (std::size_t i = 0; i < trace->spans.size(); ++i) {
    const Span span = trace->spans[i];
    end = std::max(end, span.begin_ns + span.duration_ns);
    if (span.phase == Phase::steady_step) {
      EXPECT_GE(span.begin_ns, 78'000'000'000 + (span.step - 1) * 70'000'000'000);
    }
    if (span.phase == Phase::digest) {
      EXPECT_EQ(span.begin_ns, 218'000'000'000);
    }
  }
  EXPECT_EQ(end, 225'000'000'000);
  EXPECT_EQ(end, std::llround(s->run_seconds.count() * 1e9));

  // The events of each rank, in order, reach the peak that the ledger reached.
  for (const std::int32_t rank : {0, 1}) {
    std::int64_t live = 0, peak = 0, last = 0;
    for (std::size_t i = 0; i < trace->memory.size(); ++i) {
      const MemoryEvent e = trace->memory[i];
      if (e.rank != Rank{rank}) continue;
      live += e.delta_bytes;
      peak = std::max(peak, live);
      EXPECT_GE(e.time_ns, last);
      last = e.time_ns;
    }
    EXPECT_EQ(peak, 960);
    EXPECT_EQ(live, 640);
  }
  EXPECT_EQ(trace->arenas.size(), 2u * 4);
  for (const ArenaSummary& a : trace->arenas) {
    if (a.phase == Phase::first_step) {
      EXPECT_EQ(a.peak_bytes, 960);
    }
  }
  ASSERT_EQ(trace->collectives.size(), 4u);
  EXPECT_EQ(trace->collectives[0].count, 3);
}

}  // namespace
}  // namespace shard::engine
