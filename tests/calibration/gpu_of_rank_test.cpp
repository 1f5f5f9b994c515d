// Which GPU does a rank take that a launcher started, and who has none?
#include "executor/commands/gpu_of_rank.h"

#include <gtest/gtest.h>

#include <vector>

namespace shard::commands {
namespace {

constexpr std::int32_t kOlder = 22809;

TEST(GpuOfRank, InOrderWhereThereAreEnough) {
  for (const std::int32_t nccl : {kOlder, kNcclSharesGpus})
    for (int number = 0; number < 4; ++number) {
      const auto chosen = gpu_of_rank(number, {.number = number, .ranks = 4}, 4, nccl);
      ASSERT_TRUE(chosen);
      EXPECT_EQ(chosen->gpu, number);
      EXPECT_FALSE(chosen->is_shared);
    }
}

TEST(GpuOfRank, MoreRanksThanGpusShareThemWhereNcclCan) {
  std::vector<int> ranks_of(2);
  for (int number = 0; number < 4; ++number) {
    const auto chosen = gpu_of_rank(number, {.number = number, .ranks = 4}, 2, kNcclSharesGpus);
    ASSERT_TRUE(chosen);
    EXPECT_TRUE(chosen->is_shared) << "a rank with a number below that of GPUs shares its GPU, too";
    ++ranks_of.at(static_cast<std::size_t>(chosen->gpu));
  }
  EXPECT_EQ(ranks_of, (std::vector{2, 2}));
}

TEST(GpuOfRank, ARankWithoutAGpuIsNamed) {
  EXPECT_TRUE(gpu_of_rank(8, {.number = 0, .ranks = 2}, 1, kOlder));
  const auto chosen = gpu_of_rank(9, {.number = 1, .ranks = 2}, 1, kOlder);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, Errc::unavailable);
  EXPECT_EQ(chosen.error().what,
            "rank 9 is number 2 of its machine, which has 1 GPU, and NCCL lets ranks share one from 2.30 on");
  EXPECT_FALSE(gpu_of_rank(0, {}, 0, kNcclSharesGpus)) << "a machine without GPUs";
}

TEST(GpuOfRank, WhereNobodyKnowsHowManyThereAreOpeningOneSays) {
  const auto chosen = gpu_of_rank(3, {.number = 3, .ranks = 4}, std::nullopt, kOlder);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->gpu, 3);
}

}  // namespace
}  // namespace shard::commands
