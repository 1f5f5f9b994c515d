// `shardscope profile` end to end, with a CUPTI that is played behind a program of our own.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/program.h"
#include "traces/reader.h"

namespace shard::profiler {
namespace {

using test::Outcome;
using test::Words;
using ::testing::HasSubstr;

class ProfileCommand : public ::testing::Test {
 protected:
  [[nodiscard]] Outcome profile(Words options, const Words& program) const {
    options.insert(options.begin(), "profile");
    options.emplace_back("--");
    options.insert(options.end(), program.begin(), program.end());
    return test::shardscope(options, {.directory = scratch_.path(), .environment = {{"SHARDSCOPE_CUPTI", FAKE_CUPTI}}});
  }
  [[nodiscard]] nlohmann::json answer_of(Words options, const std::string& how, int code) const {
    options.emplace_back("--json");
    const Outcome outcome = profile(options, {CUDA_PROGRAM, how});
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }

  test::ScratchDirectory scratch_;
};

TEST_F(ProfileCommand, RecordsAProgramAndReturnsItsExitCode) {
  const std::string file = scratch_.path() / "run.sst";
  const nlohmann::json answer = answer_of({"-o", file}, "exit", 3);
  EXPECT_EQ(answer.at("device_spans"), 100);
  EXPECT_EQ(answer.at("exit_code"), 3);
  EXPECT_EQ(answer.at("idle").at(0).at("gaps"), 99);
  EXPECT_EQ(answer.at("peak").at("allocated_bytes"), 1 << 20);
  EXPECT_LT(answer.at("peak").at("time_seconds").get<double>(), 1);
  EXPECT_EQ(answer.at("memory").at("peak_bytes"), 1 << 20);
  EXPECT_EQ(answer.at("memory").at("held").at(0).at("block_bytes"), 1 << 20);
  EXPECT_EQ(answer.at("memory").at("series").size(), 72u);
  EXPECT_EQ(answer.at("idle").at(0).at("longest_gaps").size(), 5u);
  const Result<Trace> trace = load(file);
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->spans.size(), 200u);
  EXPECT_TRUE(trace->complete());
}

TEST_F(ProfileCommand, ShowsMemoryAndGapsInTheTerminal) {
  const Outcome outcome = profile({}, {CUDA_PROGRAM, "exit"});
  EXPECT_THAT(outcome.out, HasSubstr("1,048,576 bytes (1.00 MiB) at the peak"));
  EXPECT_THAT(outcome.out, HasSubstr("########"));
  EXPECT_THAT(outcome.out, HasSubstr("held at the peak by"));
  EXPECT_THAT(outcome.out, HasSubstr("in 99 gaps"));
}

TEST_F(ProfileCommand, LosesNothingHoweverTheProgramEnds) {
  EXPECT_EQ(answer_of({}, "_exit", 5).at("device_spans"), 100);
  EXPECT_EQ(answer_of({}, "kill", 137).at("device_spans"), 100);
  EXPECT_EQ(answer_of({}, "abort", 134).at("device_spans"), 100);
}

TEST_F(ProfileCommand, PutsTheRanksOfALauncherIntoOneTrace) {
  const nlohmann::json answer = answer_of({}, "two", 0);
  EXPECT_EQ(answer.at("processes"), 2);
  EXPECT_EQ(answer.at("device_spans"), 200);
  EXPECT_EQ(answer.at("idle").at(1).at("rank"), 1);
}

TEST_F(ProfileCommand, RunsTheProgramWhereThereIsNoGpuAndSaysSo) {
  const nlohmann::json answer = answer_of({}, "without-cuda", 7);
  EXPECT_EQ(answer.at("recorded"), false);
  EXPECT_NE(answer.at("why_not").get<std::string>().find("no GPU"), std::string::npos);
}

TEST_F(ProfileCommand, SaysThatAnotherProfilerIsThereAndLetsTheProgramRun) {
  const nlohmann::json answer = answer_of({}, "refused", 3);
  EXPECT_NE(answer.at("why_not").get<std::string>().find("another profiler"), std::string::npos);
}

TEST_F(ProfileCommand, BeginsWhenItIsTold) {
  EXPECT_EQ(answer_of({"--start-after", "0.2"}, "late", 3).at("device_spans"), 100);
  EXPECT_EQ(answer_of({"--start-after", "1000"}, "exit", 3).at("device_spans"), 0);
}

TEST_F(ProfileCommand, LetsAForkedChildExit) {
  EXPECT_EQ(answer_of({}, "fork", 3).at("device_spans"), 100);
}

TEST_F(ProfileCommand, PausesAtASignalUntilTheNext) {
  EXPECT_EQ(answer_of({}, "paused", 3).at("device_spans"), 100);
}

TEST_F(ProfileCommand, KeepsTheLastOfSoManyBytes) {
  const std::string file = scratch_.path() / "run.sst";
  const nlohmann::json answer = answer_of({"--max-bytes", "2Mi", "-o", file}, "many", 3);
  const Result<Trace> trace = load(file);
  ASSERT_TRUE(trace.has_value());
  // 80,000 calls and kernels, one allocation and some looks at the clocks came; 2 MiB are eight blocks.
  const auto kept = static_cast<std::int64_t>(trace->spans.size()),
             dropped = answer.at("dropped_events").get<std::int64_t>();
  EXPECT_GE(kept, 20'000);
  EXPECT_LE(kept, 8 * 4'095);
  EXPECT_GE(dropped, 80'001 - kept);
  EXPECT_LE(dropped, 80'101 - kept);
  std::int64_t kernels = 0;
  for (std::size_t i = 0; i < trace->spans.size(); ++i) kernels += trace->spans.activity[i] == Activity::kernel ? 1 : 0;
  EXPECT_EQ(answer.at("device_spans"), kernels);
  EXPECT_EQ(answer.at("idle").at(0).at("gaps"), kernels - 1);  // the last ones, in a row
}

TEST_F(ProfileCommand, RecordsTheStepsThatItIsAskedFor) {
  const std::string file = scratch_.path() / "run.sst";
  const nlohmann::json answer = answer_of({"--steps", "2:3", "-o", file}, "train step", 3);
  EXPECT_EQ(answer.at("device_spans"), 20);
  EXPECT_EQ(answer.at("peak").at("allocated_bytes"), 1 << 20);
  const Result<Trace> trace = load(file);
  ASSERT_TRUE(trace.has_value());
  std::map<std::int32_t, int> kernels;
  for (std::size_t i = 0; i < trace->spans.size(); ++i)
    if (trace->spans[i].activity == Activity::kernel) ++kernels[trace->spans[i].step];
  EXPECT_EQ(kernels, (std::map<std::int32_t, int>{{2, 10}, {3, 10}}));
}

TEST_F(ProfileCommand, RecordsStepsOfAnyName) {
  EXPECT_EQ(answer_of({"--steps", "2:3", "--step-range", "batch"}, "train batch", 3).at("device_spans"), 20);
}

TEST_F(ProfileCommand, RefusesRangesThatSayTwoThingsOrNothing) {
  EXPECT_EQ(profile({"--steps", "2", "--range", "step"}, {CUDA_PROGRAM}).exit_code, 2);
  EXPECT_EQ(profile({"--step-range", "step"}, {CUDA_PROGRAM}).exit_code, 2);
  EXPECT_EQ(profile({"--steps", "3:2"}, {CUDA_PROGRAM}).exit_code, 2);
}

TEST_F(ProfileCommand, WantsAProgram) {
  EXPECT_EQ(test::shardscope({"profile"}).exit_code, 2);
  EXPECT_EQ(profile({}, {"/absent/program"}).exit_code, 69);
}

}  // namespace
}  // namespace shard::profiler
