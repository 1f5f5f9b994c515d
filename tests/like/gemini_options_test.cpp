// Are versions and options that Gemini does not have refused, with the smallest change that helps?
#include <gmock/gmock.h>

#include "tests/like/gemini.h"

namespace shard::like {
namespace {

using test::kSplit;
using test::kWhole;
using testing::HasSubstr;

ParameterList two() {
  return test::list_of({{"a.w", 8}, {"b.w", 8}});
}

Error refusal(std::string_view name, const GeminiOptions& options) {
  const Result<GeminiResult> result = simulate_gemini(name, two(), options);
  EXPECT_FALSE(result);
  return result ? Error{} : result.error();
}

TEST(GeminiNames, VersionsWithTheSameRules) {
  for (const char* name : {"colossalai-gemini", "colossalai-gemini@0.4.7", "colossalai-gemini@0.5.0", kSplit})
    EXPECT_EQ(gemini_rules(name), GeminiRules::split) << name;
  EXPECT_EQ(gemini_rules(kWhole), GeminiRules::whole);
}

TEST(GeminiNames, OthersGetTheClosestAndTheList) {
  for (const char* name : {"colossalai-gemini@", "colossalai-gemini@0.2.8", "colossalai-gemini@0.1.90",
                           "colossalai-gemnii", "colossalai-gemini-0.1.9"}) {
    EXPECT_EQ(gemini_rules(name), std::nullopt) << name;
    const Error error = refusal(name, {.world_size = 2, .chunk = Elems{8}});
    EXPECT_EQ(error.code, Errc::usage) << name;
    EXPECT_THAT(error.help, HasSubstr("did you mean 'colossalai-gemini@")) << name;
    EXPECT_THAT(error.help, HasSubstr("colossalai-gemini@0.1.9")) << name;
  }
}

TEST(GeminiOptions, AChunkIsCutIntoEqualShards) {
  const Error error = refusal(kSplit, {.world_size = 4, .chunk = Elems{10}});
  EXPECT_EQ(error.code, Errc::contradiction);
  EXPECT_THAT(error.what, testing::AllOf(HasSubstr("--chunk-size 10"), HasSubstr("--world-size 4")));
  EXPECT_EQ(error.help, "--chunk-size 12");
  EXPECT_TRUE(simulate_gemini(kWhole, two(), {.world_size = 4, .chunk = Elems{10}}));
}

TEST(GeminiOptions, OneChunkPerTensorIsForTheOldVersion) {
  EXPECT_EQ(refusal(kSplit, {.world_size = 2, .chunk = {}}).code, Errc::contradiction);
}

TEST(GeminiOptions, OutOfRange) {
  const GeminiOptions good{.world_size = 2, .chunk = Elems{8}};
  for (double GeminiOptions::*fraction :
       {&GeminiOptions::shard_param_frac, &GeminiOptions::offload_optim_frac, &GeminiOptions::offload_param_frac})
    for (const double value : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
      GeminiOptions options = good;
      options.*fraction = value;
      EXPECT_EQ(refusal(kSplit, options).code, Errc::usage);
    }
  GeminiOptions options = good;
  options.chunk = Elems{0};
  EXPECT_EQ(refusal(kSplit, options).code, Errc::usage);
  options = good;
  options.world_size = 0;
  EXPECT_EQ(refusal(kSplit, options).code, Errc::usage);
  options = good;
  options.rank = 2;
  EXPECT_EQ(refusal(kSplit, options).code, Errc::usage);
  options = good;
  options.chunk = Elems{std::int64_t{1} << 60};
  EXPECT_EQ(refusal(kSplit, options).code, Errc::contradiction);
}

TEST(GeminiOptions, TheOldVersionKnowsAllOrNothing) {
  GeminiOptions options{.world_size = 2, .chunk = Elems{8}, .offload_optim_frac = 0.5, .offload_param_frac = 0.5};
  EXPECT_THAT(refusal(kWhole, options).what,
              testing::AllOf(HasSubstr("--offload-optim-frac 0.5"), HasSubstr("--offload-param-frac 0.5")));
  options = {.world_size = 2, .chunk = Elems{8}, .offload_optim_frac = 1};
  EXPECT_EQ(refusal(kWhole, options).code, Errc::contradiction);
  options = {.world_size = 2, .chunk = Elems{8}, .shard_param_frac = 0.5};
  EXPECT_EQ(refusal(kWhole, options).help, "--shard-param-frac 1");
}

TEST(GeminiCapacity, ASmallDeviceDoesNotFitAndIsStillReported) {
  const GeminiOptions options{.world_size = 2, .chunk = Elems{8}};
  const Bytes peak = test::gemini(kSplit, two(), options).device_peak;
  const Result<GeminiResult> enough = simulate_gemini(kSplit, two(), options, 2, peak);
  const Result<GeminiResult> little = simulate_gemini(kSplit, two(), options, 2, peak - Bytes{1});
  ASSERT_TRUE(enough && little);
  EXPECT_TRUE(enough->fits);
  EXPECT_FALSE(little->fits);
  EXPECT_EQ(little->device_peak, peak);
  EXPECT_FALSE(little->holders.empty());
}

}  // namespace
}  // namespace shard::like
