// Are unknown frameworks and strategies that they lack refused, with the smallest change that helps?
#include <gmock/gmock.h>

#include "tests/like/recipe.h"

namespace shard::like {
namespace {

using test::recipe;
using testing::HasSubstr;

Error refusal(std::string_view name, const plan::Strategy& strategy) {
  const Result<LikeResult> result = simulate_like(name, test::mlp(2, 8), strategy);
  EXPECT_FALSE(result);
  return result ? Error{} : result.error();
}

TEST(Refusals, UnknownNamesGetTheClosestAndTheList) {
  for (const char* name :
       {"pytorhc@1.8", "pytorch@1.9", "pytorch@1.80", "pytorch@1.8.", "pytorch@1.8.x", "gemini", ""}) {
    const Error error = refusal(name, recipe(0));
    EXPECT_EQ(error.code, Errc::usage) << name;
    EXPECT_THAT(error.help, HasSubstr("known: pytorch@2.11 (and 2.8 to 2.10), pytorch@1.8, ddp@2.11"));
  }
  EXPECT_THAT(refusal("pytorhc@1.8", recipe(0)).help, HasSubstr("did you mean 'pytorch@1.8'?"));
}

TEST(Refusals, NamesThatAreKnown) {
  for (const char* name : {"pytorch", "pytorch@1.8", "pytorch@1.8.1"}) {
    const Result<LikeResult> result = simulate_like(name, test::mlp(2, 8), recipe(0));
    ASSERT_TRUE(result) << name;
    EXPECT_EQ(result->framework, "pytorch@1.8");
  }
}

TEST(Refusals, StagesWithShardedGradients) {
  for (const std::int32_t stage : {2, 3}) {
    const Error error = refusal("pytorch@1.8", recipe(stage));
    EXPECT_EQ(error.code, Errc::contradiction);
    EXPECT_THAT(error.what, HasSubstr("PyTorch 1.8 has no sharded gradients"));
    EXPECT_EQ(error.help, "--stage 1 --partition parameter");
  }
}

TEST(Refusals, TheFlatPartitionNamesBothOptions) {
  plan::Strategy s = recipe(1);
  s.partition = plan::Partition::flat;
  const Error error = refusal("pytorch@1.8", s);
  EXPECT_EQ(error.code, Errc::contradiction);
  EXPECT_THAT(error.what, testing::AllOf(HasSubstr("--stage 1"), HasSubstr("--partition flat")));
  EXPECT_EQ(error.help, "--partition parameter");
}

TEST(Refusals, ChunksAndWhatTheCompilerRefuses) {
  plan::Strategy s = recipe(0);
  s.unit = plan::UnitKind::chunk;
  EXPECT_EQ(refusal("pytorch@1.8", s).code, Errc::contradiction);
  s = recipe(0);
  s.global_batch = 41;
  EXPECT_EQ(refusal("pytorch@1.8", s).code, Errc::contradiction);
}

TEST(Capacity, ASmallDeviceDoesNotFitAndIsStillReported) {
  const auto with = [](std::int64_t bytes) {
    return simulate_like("pytorch@1.8", test::recipe_model(), recipe(0),
                         {.device_capacity = Bytes{bytes}, .rules = {}, .allocator = {}});
  };
  const Result<LikeResult> enough = with(std::int64_t{2} << 30);
  const Result<LikeResult> little = with(std::int64_t{1} << 30);
  ASSERT_TRUE(enough && little);
  EXPECT_TRUE(enough->fits);
  EXPECT_FALSE(little->fits);
  EXPECT_EQ(test::maxima(*enough), test::maxima(*little));
  EXPECT_LE(enough->peak_reserved().count(), std::int64_t{2} << 30);
}

}  // namespace
}  // namespace shard::like
