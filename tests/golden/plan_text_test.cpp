// Does a small gpt2 compile to exactly the plans that were last looked at, in every stage?
// After a change that is meant: SHARDSCOPE_UPDATE_GOLDEN=1 tests/plan_text_test, then read the diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "sim/check/verify.h"
#include "tests/compile/support.h"

namespace shard::plan {
namespace {

ModelPtr one_block() {
  return model_from(
      R"({"model_type": "gpt2", "vocab_size": 11, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2})");
}

struct Golden {
  const char* file;
  Strategy strategy;
};

void PrintTo(const Golden& golden, std::ostream* out) {
  *out << golden.file;
}

Strategy strategy(std::int32_t stage, UnitKind unit, std::int64_t accumulation) {
  return {.world_size = 2,
          .stage = stage,
          .unit = unit,
          .chunk_elems = Elems{400},
          .micro_batch = 1,
          .global_batch = 2 * accumulation,
          .sequence = 4,
          .prefetch = 1};
}

Strategy with_recompute(Strategy s) {
  s.recompute = Recompute::block;
  s.transport = Transport::messages;
  return s;
}

const Golden kGoldens[] = {
    {"plan_stage0_module.txt", strategy(0, UnitKind::module, 2)},
    {"plan_stage1_bucket.txt", strategy(1, UnitKind::bucket, 2)},
    {"plan_stage2_tensor.txt", strategy(2, UnitKind::tensor, 1)},
    {"plan_stage3_chunk_recompute_messages.txt", with_recompute(strategy(3, UnitKind::chunk, 2))},
};

class PlanText : public testing::TestWithParam<Golden> {};

TEST_P(PlanText, IsTheOneThatWasLookedAt) {
  const PlanSet plans = compiled(one_block(), GetParam().strategy);
  ASSERT_TRUE(verify(plans)) << to_string(verify(plans).error());
  Plan plan = plans.classes.front();
  // The first step is the steady step with births; a digest is the same for all.
  std::erase_if(plan.phases,
                [](const PhaseOps& p) { return p.phase == Phase::first_step || p.phase == Phase::digest; });
  const std::string text = to_text(plan);
  const std::string path = std::string(TEST_DATA) + "/golden/" + GetParam().file;
  if (std::getenv("SHARDSCOPE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream in(path);
  ASSERT_TRUE(in) << path;
  std::istringstream now(text);
  std::string expected;
  std::string actual;
  for (int line = 1; std::getline(in, expected); ++line) {
    ASSERT_TRUE(std::getline(now, actual)) << path << ':' << line << ": the plan ends here";
    ASSERT_EQ(actual, expected) << path << ':' << line;
  }
  EXPECT_FALSE(std::getline(now, actual)) << "the plan goes on: " << actual;
}

INSTANTIATE_TEST_SUITE_P(Stages, PlanText, testing::ValuesIn(kGoldens), [](const auto& each) {
  const std::string name = each.param.file;
  return name.substr(0, name.find('.'));
});

}  // namespace
}  // namespace shard::plan
