// Do steps on the host run beside backward? The step then takes little longer than its busiest stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "sim/cluster/read_cluster.h"
#include "sim/compile/compile.h"
#include "sim/cost/op_cost.h"
#include "sim/engine/simulate.h"
#include "sim/ir/effects.h"
#include "sim/model/read_model.h"

namespace shard::engine {
namespace {

struct OffloadCase {
  const char* name;
  plan::Precision precision;
  std::int32_t world_size;
  std::int32_t stage;
  plan::PlacementPolicy policy;  ///< fixed: optimizer state alone rests on the host
  std::int32_t threads;
};

class Offload : public ::testing::TestWithParam<OffloadCase> {};

/// What the busiest stream does in a steady step of the first class.
Seconds busiest(const plan::Plan& plan, const cluster::Cluster& machine) {
  const cost::OpCost cost(plan, machine);
  std::array<Seconds, kStreamCount> sums{};
  for (const plan::Op& op : plan.find(Phase::steady_step)->ops)
    sums[static_cast<std::size_t>(op.stream)] += cost(op, plan::effects(plan, op));
  return *std::ranges::max_element(sums);
}

TEST_P(Offload, TheStepTakesLittleMoreThanItsBusiestStream) {
  const OffloadCase& c = GetParam();
  Result<model::Model> read = model::read_model("gpt2-xl");
  ASSERT_TRUE(read);
  const auto model = std::make_shared<const model::Model>(std::move(*read));
  const Result<cluster::Cluster> machine = cluster::read_cluster("h100-80gb-x8");
  ASSERT_TRUE(machine);
  plan::Strategy s;
  s.device = plan::Device::cuda;
  s.precision = c.precision;
  s.world_size = c.world_size;
  s.stage = c.stage;
  s.micro_batch = 4;
  s.global_batch = 4 * c.world_size;
  s.sequence = 1024;
  s.threads = c.threads;
  s.placement.policy = c.policy;
  if (c.policy == plan::PlacementPolicy::fixed) s.placement.optimizer = plan::kOnHost;
  const Result<plan::PlanSet> plans = plan::compile(model, s);
  ASSERT_TRUE(plans) << to_string(plans.error());
  const Result<Simulation> run = simulate(*plans, *machine, {.steps = 2});
  ASSERT_TRUE(run);
  EXPECT_GE(busiest(plans->classes[0], *machine).count() / run->step_seconds.count(), 0.8)
      << run->step_seconds.count() << " s, of which busiest " << busiest(plans->classes[0], *machine).count();
}

using enum plan::Precision;
using enum plan::PlacementPolicy;
INSTANTIATE_TEST_SUITE_P(
    Cases, Offload,
    ::testing::Values(OffloadCase{"OneRankOptimizer", bf16, 1, 0, fixed, 1},
                      OffloadCase{"OneRankOptimizerSixteenThreads", bf16, 1, 0, fixed, 16},
                      OffloadCase{"OneRankAll", bf16, 1, 0, host, 1},
                      OffloadCase{"OneRankAllFp32", fp32, 1, 0, host, 1},
                      OffloadCase{"OneRankAllFp32SixteenThreads", fp32, 1, 0, host, 16},
                      OffloadCase{"TwoRanksStage1Optimizer", bf16, 2, 1, fixed, 1},
                      OffloadCase{"TwoRanksStage2Optimizer", bf16, 2, 2, fixed, 1},
                      OffloadCase{"TwoRanksStage3Optimizer", bf16, 2, 3, fixed, 1},
                      OffloadCase{"TwoRanksStage3All", bf16, 2, 3, host, 1}),
    [](const auto& i) { return std::string(i.param.name); });

}  // namespace
}  // namespace shard::engine
