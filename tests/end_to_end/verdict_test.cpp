// Does `shardscope simulate` say fits, tight or does not fit by what a GPU needs beside the allocator?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/end_to_end/program.h"
#include "traces/base/numbers.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words gpus(const Words& more) {
  return with({"simulate", "--model", "gpt2", "--cluster", "a100-40gb-x8", "--world-size", "2"}, more);
}

json asked(const Words& words, int exit_code = 0) {
  return json_of(shardscope(with(words, {"--json"})), exit_code);
}

/// The verdict line of a text answer.
std::string headline(const Words& words) {
  const std::string out = "\n" + shardscope(words).out;
  for (const char* begin : {"\nfits: ", "\ntight: ", "\ndoes not fit: "})
    if (const std::size_t at = out.find(begin); at != std::string::npos)
      return out.substr(at + 1, out.find('\n', at + 1) - at - 1);
  return out;
}

class OfWhom : public testing::TestWithParam<Words> {};

TEST_P(OfWhom, TheThreeValuesLieWhereTheIntervalDoes) {
  const Words run = gpus(GetParam());
  const json free = asked(run);
  const auto peak = free["peak_device_bytes"].get<std::int64_t>();
  const auto low = free["outside_allocator_bytes"]["low"].get<std::int64_t>();
  const auto high = free["outside_allocator_bytes"]["high"].get<std::int64_t>();
  EXPECT_GT(low, 0);
  EXPECT_LT(low, high);
  EXPECT_EQ(free["verdict"], "fits");
  const double larger = 1 + free["peak_uncertainty"].get<double>();
  const auto surely = static_cast<std::int64_t>(static_cast<double>(peak) * larger) + high + (2 << 20);
  const auto at = [&](std::int64_t capacity) { return with(run, {"--device-capacity", std::to_string(capacity)}); };
  EXPECT_EQ(asked(at(surely))["verdict"], "fits");
  EXPECT_EQ(asked(at(peak + high - 1))["verdict"], "tight");
  const json tight = asked(at(peak + low));
  EXPECT_EQ(tight["verdict"], "tight");
  EXPECT_EQ(tight["fits"], true);
  EXPECT_EQ(tight["peak_device_bytes"], peak);
  const json little = asked(at(peak / 2 + low), 3);
  EXPECT_EQ(little["verdict"], "does_not_fit");
  EXPECT_EQ(little["fits"], false);
  EXPECT_THAT(headline(at(peak + low)), StartsWith("tight: "));
  EXPECT_THAT(headline(at(surely)), HasSubstr(" outside of the allocator = "));
}

INSTANTIATE_TEST_SUITE_P(All, OfWhom,
                         testing::Values(Words{"--stage", "3"},
                                         Words{"--like", "fsdp2", "--stage", "3", "--sequence", "128"},
                                         Words{"--like", "deepspeed", "--stage", "2", "--sequence", "128"}));

/// What a reader sees first.
std::string first_lines(const std::string& text, int count) {
  std::size_t end = 0;
  for (; count > 0 && end < text.size(); --count) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

class Opening : public testing::TestWithParam<Words> {};

TEST_P(Opening, SaysVerdictNumberAndLargestLeverBeforeAllElse) {
  const std::string out = shardscope(gpus(GetParam())).out;
  const std::string first = first_lines(out, 5);
  EXPECT_THAT(first, testing::AnyOf(StartsWith("fits: "), StartsWith("does not fit: ")));
  EXPECT_THAT(first, HasSubstr(" device memory"));
  EXPECT_THAT(first, HasSubstr("\n  largest lever: --"));
  EXPECT_GT(out.find("\nmodel     gpt2 (given)"), out.find("largest lever"));
}

TEST_P(Opening, IsInTheUnitOfAllThatFollows) {
  const std::string out = shardscope(gpus(GetParam())).out;
  EXPECT_THAT(out, HasSubstr(" GiB"));
  for (const char* other : {" MiB", " KiB", " TiB"}) EXPECT_THAT(out, Not(HasSubstr(other))) << out;
}

TEST_P(Opening, IsToTheByteWithExact) {
  const std::string out = shardscope(gpus(with(GetParam(), {"--exact"}))).out;
  const int code = shardscope(gpus(GetParam())).exit_code;
  EXPECT_THAT(out, HasSubstr(": " + with_commas(asked(gpus(GetParam()), code)["peak_device_bytes"]) + " B "));
  for (const char* other : {" GiB", " MiB"}) EXPECT_THAT(out, Not(HasSubstr(other)));
}

INSTANTIATE_TEST_SUITE_P(All, Opening,
                         testing::Values(Words{"--like", "shardscope", "--stage", "2"},
                                         Words{"--like", "shardscope", "--device-capacity", "2Gi"},
                                         Words{"--like", "fsdp2", "--stage", "3"},
                                         Words{"--like", "ddp", "--device-capacity", "4Gi", "--what-if"}));

/// The framework that is meant does not answer; its own levers would be refused as well.
TEST(Opening, OfOurOwnExecutorInAnothersPlaceHasItsLevers) {
  const Outcome outcome = shardscope(
      {"simulate", "--model", "gpt2", "--cluster", "a100-40gb-x8", "--stage", "3", "--device-capacity", "2Gi"});
  EXPECT_THAT(outcome.out, HasSubstr("\n  by Shardscope's own executor; pytorch"));
  EXPECT_THAT(first_lines(outcome.out, 5), HasSubstr("\n  largest lever: --"));
}

TEST(Verdict, CountsNothingOutsideOnProcessors) {
  const json j = asked({"simulate", "--model", "gpt2-nano", "--world-size", "2"});
  EXPECT_EQ(j["outside_allocator_bytes"], (json{{"low", 0}, {"high", 0}}));
  EXPECT_EQ(j["verdict"], "fits");
}

TEST(Verdict, HeadlinesTheHostWhereItsMemoryIsTooSmall) {
  const Words run = gpus({"--placement", "host", "--host-capacity", "1Gi"});
  EXPECT_THAT(headline(run), StartsWith("does not fit: "));
  EXPECT_THAT(headline(run), HasSubstr("of 1.00 GiB host memory"));
  EXPECT_THAT(shardscope(run).out, HasSubstr("\ndevice memory: "));
  EXPECT_EQ(asked(run, 3)["verdict"], "does_not_fit");
}

TEST(Verdict, StandsBesideTablesForOtherPrograms) {
  for (const char* format : {"csv", "markdown"}) {
    const Outcome outcome = shardscope(gpus({"--device-capacity", "1Gi", "--format", format}));
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.err, HasSubstr("does not fit: ")) << format;
    EXPECT_THAT(outcome.out, Not(HasSubstr("does not fit"))) << format;
  }
  const std::string rows = shardscope(gpus({"--format", "csv"})).out;
  EXPECT_THAT(rows, StartsWith("moment,max_allocated_bytes,max_reserved_bytes,op\n"));
  const json last = asked(gpus({}), 0)["moments"].back();
  EXPECT_THAT(rows, HasSubstr("\n" + last["name"].get<std::string>() + "," +
                              std::to_string(last["max_allocated_bytes"].get<std::int64_t>()) + "," +
                              std::to_string(last["max_reserved_bytes"].get<std::int64_t>()) + ","));
}

TEST(Verdict, AutomaticPlacementLeavesRoomForWhatLiesOutside) {
  const json j = asked(gpus({"--placement", "auto", "--device-capacity", "5Gi", "--micro-batch", "4"}));
  EXPECT_EQ(j["verdict"], "fits");
  EXPECT_GE(j["headroom_bytes"], 0);
  const Outcome none = shardscope(gpus({"--placement", "auto", "--device-capacity", "1Gi"}));
  EXPECT_EQ(none.exit_code, 78);
  EXPECT_THAT(none.err, HasSubstr("--placement auto"));
}

TEST(Find, IsTheLargestThatFitsAndSaysWhetherTheNextIsTight) {
  const json j = asked(gpus({"--stage", "3", "--find", "max-micro-batch"}));
  EXPECT_EQ(j["verdict"], "fits");
  const auto found = j["found"]["value"].get<std::int64_t>();
  const json next =
      asked(gpus({"--stage", "3", "--micro-batch", std::to_string(found + 1)}), j["found"]["tight"].is_null() ? 3 : 0);
  EXPECT_EQ(next["verdict"], j["found"]["tight"].is_null() ? "does_not_fit" : "tight");
}

TEST(Sweep, CountsTightStrategies) {
  const json j =
      asked(with({"sweep"}, {"--model", "gpt2-medium", "--world-size", "4", "--cluster", "a100-40gb-x8", "--stage",
                             "0,1,2,3", "--micro-batch", "1,2,4,8,16", "--device-capacity", "12Gi"}));
  std::int64_t tight = 0, fits = 0;
  for (const json& row : j["rows"]) {
    tight += row["status"] == "tight" ? 1 : 0;
    fits += row["fits"] == true ? 1 : 0;
    EXPECT_EQ(row["reason"].is_null(), row["status"] == "fits");
  }
  EXPECT_GT(tight, 0);
  EXPECT_EQ(j["tight_count"], tight);
  EXPECT_EQ(j["fits_count"], fits);
}

}  // namespace
}  // namespace shard::test
