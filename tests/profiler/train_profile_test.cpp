// `shardscope train --profile`: a full trace of the host and the ranks, and where the time went.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/program.h"
#include "traces/inspect.h"
#include "traces/reader.h"

namespace shard::profiler {
namespace {

using test::Outcome;
using test::Words;

class TrainProfile : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] nlohmann::json train(Words more) const {
    Words words{"train",   "--model", "gpt2-nano",  "--ranks", "2",        "--stage",  "3",         "--data", "random",
                "--steps", "4",       "--sequence", "32",      "--device", GetParam(), "--profile", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = test::shardscope(words, {.directory = scratch_.path()});
    return test::json_of(outcome);
  }
  [[nodiscard]] Trace trace(const std::string& name) const {
    Result<Trace> loaded = load(scratch_.path() / name);
    EXPECT_TRUE(loaded.has_value());
    return loaded ? std::move(*loaded) : Trace{};
  }

  test::ScratchDirectory scratch_;
};

TEST_P(TrainProfile, CoversTheStepsAndGivesTheArenasPeaks) {
  const nlohmann::json answer = train({"--trace", "run.sst"});
  const nlohmann::json& profile = answer.at("profile");
  ASSERT_EQ(profile.at("coverage").size(), 2u);
  for (const nlohmann::json& rank : profile.at("coverage")) {
    EXPECT_GT(rank.at("covered_seconds").get<double>(), 0);
    EXPECT_LE(rank.at("covered_seconds").get<double>(), rank.at("step_seconds").get<double>());
    EXPECT_GE(rank.at("named_seconds").get<double>(), 0.99 * rank.at("step_seconds").get<double>());
    EXPECT_LE(rank.at("named_seconds").get<double>(), rank.at("step_seconds").get<double>());
  }
  EXPECT_FALSE(profile.at("kernels").empty());
  EXPECT_FALSE(profile.at("residuals").empty());
  const Trace run = trace("run.sst");
  // Summed from the events, whatever the arena says of itself.
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    std::int64_t live = 0, peak = 0, told = 0;
    for (std::size_t i = 0; i < run.memory.size(); ++i) {
      const MemoryEvent event = run.memory[i];
      if (event.rank.value != rank || event.memory != Memory::device) continue;
      live += event.delta_bytes;
      peak = std::max(peak, live);
    }
    for (const ArenaSummary& arena : run.arenas)
      if (arena.rank.value == rank && arena.memory == Memory::device) told = std::max(told, arena.live_peak_bytes);
    EXPECT_EQ(peak, told) << rank;
    EXPECT_GT(told, 0);
  }
}

TEST_P(TrainProfile, HasASpanOfTheHostForEachStep) {
  (void)train({});
  const Trace run = trace("profile.sst");
  std::int64_t steps = 0;
  for (std::size_t i = 0; i < run.spans.size(); ++i)
    if (run.track_of(run.spans[i].track).kind == TrackKind::other && run.name_of(run.spans[i].name) == "step") ++steps;
  EXPECT_EQ(steps, 2 * 4);
}

TEST_P(TrainProfile, RecordsTheStepsThatItIsAskedFor) {
  (void)train({"--profile-steps", "2:3", "--trace", "run.sst"});
  const Trace run = trace("run.sst");
  for (std::size_t i = 0; i < run.spans.size(); ++i) {
    const Span span = run.spans[i];
    if (run.track_of(span.track).kind != TrackKind::stream) continue;
    EXPECT_TRUE(span.step == 1 || span.step == 2) << span.step;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, TrainProfile, ::testing::Values("cpu", "emulated-cuda"),
                         [](const auto& of) { return of.param == std::string("cpu") ? "Cpu" : "Emulated"; });

TEST(TrainProfileSteps, MustNotEndBeforeTheyBegin) {
  EXPECT_EQ(test::shardscope({"train", "--model", "gpt2-nano", "--data", "random", "--profile-steps", "3:2"}).exit_code,
            2);
}

}  // namespace
}  // namespace shard::profiler
