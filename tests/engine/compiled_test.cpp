// Does the engine agree with what the compiler promised, whatever the strategy, and with sums made without it?
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <string>

#include "sim/cluster/read_cluster.h"
#include "sim/compile/compile.h"
#include "sim/engine/simulate.h"
#include "sim/engine/smallest_change.h"
#include "sim/model/read_model.h"

namespace shard::engine {
namespace {

std::shared_ptr<const model::Model> example(std::string_view name) {
  Result<model::Model> m = model::read_model(name);
  EXPECT_TRUE(m) << name;
  return std::make_shared<const model::Model>(std::move(*m));
}

template <class T, std::size_t N>
T pick(std::mt19937& random, const std::array<T, N>& from) {
  return from[random() % N];
}

plan::Strategy random_strategy(std::mt19937& random, const model::Model& model) {
  using plan::Recompute;
  using plan::UnitKind;
  plan::Strategy s;
  s.world_size = pick<std::int32_t, 4>(random, {1, 2, 3, 4});
  s.stage = static_cast<std::int32_t>(random() % 4);
  s.unit = pick<UnitKind, 4>(random, {UnitKind::tensor, UnitKind::bucket, UnitKind::module, UnitKind::chunk});
  if (s.unit == UnitKind::chunk) s.chunk_elems = Elems{s.world_size * 30'000};
  if (s.stage == 1 && random() % 2 == 0) s.partition = plan::Partition::parameter;
  s.micro_batch = pick<std::int64_t, 2>(random, {1, 2});
  s.global_batch = s.micro_batch * s.world_size * pick<std::int64_t, 3>(random, {1, 2, 4});
  s.sequence = model.family == model::Family::mlp ? 1 : 16;
  s.recompute = pick<Recompute, 2>(random, {Recompute::none, Recompute::block});
  s.optimizer = pick<plan::OptimizerKind, 2>(random, {plan::OptimizerKind::sgd, plan::OptimizerKind::adamw});
  s.prefetch = static_cast<std::int32_t>(random() % 3);
  return s;
}

/// Live peak and collectives of one plan, summed over its ops without ledger, clock or effects.
struct Plain {
  std::int64_t live = 0, live_peak = 0;
  CollectiveCounts run;
};

Plain plain_sums(const plan::Plan& plan, std::int64_t steps) {
  Plain sums;
  for (const plan::PhaseOps& phase : plan.phases) {
    for (const plan::Op& op : phase.ops) {
      const auto bytes = [&](BufferId id) {
        const plan::Buffer& b = plan.buffer(id);
        return b.memory == Memory::device ? (b.bytes.count() + 63) / 64 * 64 : 0;
      };
      for (const BufferId id : op.acquire) sums.live += bytes(id);
      sums.live_peak = std::max(sums.live_peak, sums.live);
      for (const BufferId id : op.release) sums.live -= bytes(id);
      // The digest checks a run and is not counted as a part of it.
      if (const auto* call = std::get_if<plan::Communicate>(&op.action); call && phase.phase != Phase::digest) {
        const std::int64_t times = phase.phase == Phase::steady_step ? steps - 1 : 1;
        CollectiveCount& c = sums.run[static_cast<std::size_t>(call->kind)];
        c.count += times;
        for (const plan::Segment& s : call->segments) c.bytes += Bytes{s.elems.count() * 4 * times};
      }
    }
  }
  return sums;
}

TEST(Compiled, PeaksAndCountsAreThoseOfThePlanForRandomStrategies) {
  const cluster::Cluster cluster = *cluster::read_cluster("cpu-local");
  std::mt19937 random(6);
  int compiled = 0;
  for (const char* name : {"gpt2-nano", "mlp-20x2000"}) {
    const auto model = example(name);
    for (int i = 0; i < 25; ++i) {
      const plan::Strategy strategy = random_strategy(random, *model);
      SCOPED_TRACE(std::string(name) + " " + plan::to_string(strategy));
      const Result<plan::PlanSet> plans = plan::compile(model, strategy);
      if (!plans) {
        EXPECT_EQ(plans.error().code, Errc::contradiction) << to_string(plans.error());
        continue;
      }
      ++compiled;
      const Result<Simulation> s = simulate(*plans, cluster, {.steps = 5, .digest = true});
      ASSERT_TRUE(s) << to_string(s.error());
      for (std::size_t c = 0; c < s->classes.size(); ++c) {
        const ClassResult& result = s->classes[c];
        const plan::Plan& plan = plans->classes[c];
        for (std::size_t m = 0; m < kMemoryCount; ++m) EXPECT_EQ(result.peak[m], plan.arena_bytes[m]);
        const Plain plain = plain_sums(plan, 5);
        EXPECT_EQ(result.live_peak[0], Bytes{plain.live_peak});
        EXPECT_LE(result.live_peak[0], result.peak[0]);
        EXPECT_EQ(result.collectives, plain.run);
        for (const PhaseResult& phase : result.phases) {
          Bytes sum;
          for (const Bytes b : phase.memory[0].by_category) sum += b;
          EXPECT_EQ(sum, phase.memory[0].live_peak);
        }
      }
    }
  }
  EXPECT_GE(compiled, 40);
}

TEST(Compiled, AFasterClusterIsNeverSlowerAndPeaksDoNotMove) {
  const auto model = example("gpt2-nano");
  std::mt19937 random(7);
  for (int i = 0; i < 12; ++i) {
    const plan::Strategy strategy = random_strategy(random, *model);
    const Result<plan::PlanSet> plans = plan::compile(model, strategy);
    if (!plans) continue;
    SCOPED_TRACE(plan::to_string(strategy));
    const cluster::Cluster slow = *cluster::read_cluster("cpu-local");
    const Result<Simulation> before = simulate(*plans, slow);
    ASSERT_TRUE(before);
    for (const int what : {0, 1, 2, 3}) {
      cluster::Cluster fast = slow;
      if (what == 0) fast.intra_host.bus_bandwidth = BytesPerSecond{2 * fast.intra_host.bus_bandwidth.count()};
      if (what == 1) fast.memory_bandwidth = BytesPerSecond{2 * fast.memory_bandwidth.count()};
      if (what == 2) fast.peak_fp32 = FlopsPerSecond{2 * fast.peak_fp32.count()};
      if (what == 3) fast.launch = Seconds{0};
      const Result<Simulation> after = simulate(*plans, fast);
      ASSERT_TRUE(after);
      EXPECT_LE(after->step_seconds, before->step_seconds) << what;
      EXPECT_EQ(after->largest().peak, before->largest().peak);
    }
  }
}

TEST(Compiled, TheSmallestChangeOfAStrategyThatDoesNotFitReallyFits) {
  const auto model = example("gpt2-nano");
  const cluster::Cluster cluster = *cluster::read_cluster("cpu-local");
  plan::Strategy strategy;
  strategy.world_size = 2;
  strategy.micro_batch = 4;
  strategy.global_batch = 8;
  strategy.sequence = 64;
  const Result<Bytes> peak = peak_device_bytes(model, strategy, cluster, {.steps = 2});
  ASSERT_TRUE(peak);
  const auto peak_of = [&](const plan::Strategy& s) { return peak_device_bytes(model, s, cluster, {.steps = 2}); };
  const Bytes capacity{peak->count() * 6 / 10};
  const std::optional<Change> change = smallest_change(strategy, capacity, peak_of);
  ASSERT_TRUE(change);
  EXPECT_LE(change->peak, capacity);
  EXPECT_EQ(*peak_of(change->strategy), change->peak);
  EXPECT_FALSE(smallest_change(strategy, Bytes{1}, peak_of));
}

TEST(Compiled, AStepTakesAtLeastAsLongAsItsComputationAndAsItsCommunication) {
  const auto model = example("gpt2-medium");
  plan::Strategy strategy;
  strategy.world_size = 8;
  strategy.stage = 3;
  strategy.global_batch = 8;
  strategy.sequence = 1024;
  const Result<plan::PlanSet> plans = plan::compile(model, strategy);
  ASSERT_TRUE(plans);
  const Result<Simulation> s = simulate(*plans, *cluster::read_cluster("a100-40gb-x8"), {.steps = 2});
  ASSERT_TRUE(s);
  EXPECT_TRUE(s->fits);
  const PhaseResult& p = *s->classes[0].find(Phase::steady_step);
  EXPECT_GE(p.seconds, p.compute_seconds);
  EXPECT_GE(p.seconds, p.communication_seconds);
  EXPECT_LE(p.exposed_communication_seconds, p.communication_seconds);
  // 8 ranks x 1024 tokens x about 6 x 355e6 flops, less than the peak of 19.5 TFLOP/s allows.
  EXPECT_GT(s->flops_per_second, 5e12);
  EXPECT_LT(s->flops_per_second, 19.5e12);
}

// A gradient that is just being reduced does not hold up the next one where memory is left: stages that send the same
// bytes take the same time, but for what is at the peak.
TEST(Compiled, ShardedGradientsDoNotWaitForEachOther) {
  const auto model = example("gpt2-xl");
  const Result<cluster::Cluster> machine = cluster::read_cluster("a100-40gb-x8");
  ASSERT_TRUE(machine);
  std::array<Seconds, 4> step;
  for (std::int32_t stage = 1; stage <= 3; ++stage) {
    plan::Strategy s;
    s.world_size = 8;
    s.global_batch = 8;
    s.sequence = 1024;
    s.stage = stage;
    s.precision = plan::Precision::bf16;
    const Result<plan::PlanSet> plans = plan::compile(model, s);
    ASSERT_TRUE(plans);
    const Result<Simulation> run = simulate(*plans, *machine, {.steps = 2});
    ASSERT_TRUE(run);
    step[static_cast<std::size_t>(stage)] = run->step_seconds;
  }
  EXPECT_LT(step[2], 1.02 * step[1]);
  EXPECT_LT(step[3], step[1]);
}

}  // namespace
}  // namespace shard::engine
