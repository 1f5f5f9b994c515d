// Do strategies, pair by pair of their choices, train to the same bits in exactly the memory and calls planned?
#include <gtest/gtest.h>

#include "tests/agreement/bit_class.h"
#include "tests/daily.h"

namespace shard {
namespace {

void expect_pairs_agree(const Subject& subject) {
  expect_agreement(subject, daily::part_of(pairwise(levels(subject)), 12));
}

class Strategies : public testing::TestWithParam<BitClass> {};

// Two steps: the first and one like all that follow. Twenty are in matrix_test.
TEST_P(Strategies, Agree) {
  expect_pairs_agree(subject_of(GetParam(), 8, 2));
}

INSTANTIATE_TEST_SUITE_P(Pairs, Strategies, testing::ValuesIn(bit_classes()),
                         [](const auto& c) { return name_of(c.param); });

TEST(Agreement, HoldsOverTenSteps) {
  Subject subject = subject_of({}, 16, 10);
  subject.worlds = {1, 2, 4};
  expect_pairs_agree(subject);
}

// Masks belong to micro-batches: no rank, no order of ops and no recomputation may draw another one.
TEST(Agreement, HoldsWithDropout) {
  Subject subject = subject_of({}, 8, 2);
  subject.dropout = 0.1F;
  expect_pairs_agree(subject);
  subject = subject_of({.llama = true, .precision = plan::Precision::bf16}, 8, 2);
  subject.dropout = 0.25F;
  expect_pairs_agree(subject);
}

TEST(Agreement, DropoutChangesTheLossAndTheSameSeedGivesItAgain) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  const auto losses = [&](float dropout) {
    const auto run = run_in_process(model, {.micro_batch = 1, .global_batch = 1, .sequence = 8, .dropout = dropout},
                                    {.steps = 1, .scalars = {}, .seed = 7, .after_step = {}, .before_phase = {}});
    return run ? run->ranks[0].losses : std::vector<float>{};
  };
  ASSERT_EQ(losses(0.5F).size(), 1U);
  EXPECT_EQ(losses(0.5F), losses(0.5F));
  EXPECT_NE(losses(0.5F), losses(0));
}

// Accumulation that is no power of two closes another tree; every strategy with that many micro-batches still trains,
// in the memory planned.
TEST(Agreement, OtherWorldSizesRunAsPlanned) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  for (std::int32_t world : {3, 5})
    for (std::int32_t stage : {0, 1, 2, 3}) {
      const plan::Strategy strategy{.world_size = world,
                                    .stage = stage,
                                    .unit = plan::UnitKind::chunk,
                                    .chunk_elems = round_up(Elems{100'000}, world),
                                    .micro_batch = 1,
                                    .global_batch = 3 * world,
                                    .sequence = 8};
      const std::string what = to_string(strategy);
      const auto run =
          run_in_process(model, strategy, {.steps = 2, .scalars = {}, .seed = 7, .after_step = {}, .before_phase = {}});
      ASSERT_TRUE(run) << what << ": " << to_string(run.error());
      expect_as_planned(*run, 2, what);
      EXPECT_LT(run->ranks[0].losses[1], run->ranks[0].losses[0]) << what;
    }
}

TEST(Agreement, WholeParameterPartitionAgreesWithFlatShards) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  std::string sha;
  for (auto partition : {plan::Partition::flat, plan::Partition::parameter}) {
    const plan::Strategy strategy{.world_size = 4,
                                  .stage = 1,
                                  .partition = partition,
                                  .micro_batch = 1,
                                  .global_batch = 8,
                                  .sequence = 16,
                                  .optimizer = plan::OptimizerKind::adam};
    const auto run =
        run_in_process(model, strategy, {.steps = 3, .scalars = {}, .seed = 7, .after_step = {}, .before_phase = {}});
    ASSERT_TRUE(run) << to_string(run.error());
    expect_as_planned(*run, 3, to_string(strategy));
    if (sha.empty()) sha = run->ranks[0].state_sha256;
    EXPECT_EQ(run->ranks[0].state_sha256, sha);
    Bytes state{0};
    for (const auto& rank : run->ranks) state += rank.optimizer_state;
    const auto counts = static_cast<std::int64_t>(model->parameters.size()) * 4;
    // Flat shards count a parameter's steps on every rank that has a part of it.
    if (partition == plan::Partition::parameter) {
      EXPECT_EQ(state.count(), 8 * model->parameter_elements() + counts);
    }
  }
}

}  // namespace
}  // namespace shard
