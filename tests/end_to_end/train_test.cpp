// Does `shardscope train` run as promised: started by itself or a launcher, with one answer, and as predicted?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <tuple>

#include "tests/end_to_end/program.h"
#include "traces/reader.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

Words train(const Words& more) {
  Words words{"train", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The contract on memory and communication: equal to the byte and to the call, on every rank.
void expect_as_predicted(const json& run, std::size_t ranks) {
  ASSERT_EQ(run["arenas"].size(), ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const json& arena = run["arenas"][rank];
    EXPECT_EQ(arena["rank"], rank);
    EXPECT_EQ(arena["memory"], "device");
    EXPECT_GT(arena["measured_peak_bytes"], 0);
    EXPECT_EQ(arena["predicted_peak_bytes"], arena["measured_peak_bytes"]);
  }
  for (const json& each : run["collectives"]) {
    EXPECT_EQ(each["predicted_count"], each["measured_count"]) << each;
    EXPECT_EQ(each["predicted_bytes"], each["measured_bytes"]) << each;
  }
}

/// The whole process, to 1 % or 8 MiB.
void expect_resident(const json& run) {
#ifdef SANITIZED
  return;  // shadow memory and quarantine are in no plan
#endif
  const double predicted = run["resident_bytes"]["predicted"];
  const double measured = run["resident_bytes"]["measured"];
  EXPECT_LE(std::abs(measured - predicted), std::max(0.01 * predicted, 8.0 * (1 << 20)))
      << "predicted " << predicted << ", measured " << measured;
}

TEST(Train, AnswersInJsonAndLeavesTheTracesItWasAskedFor) {
  const ScratchDirectory scratch;
  const Outcome outcome = shardscope(train({"--model",
                                            "gpt2-nano",
                                            "--data",
                                            kText,
                                            "--ranks",
                                            "2",
                                            "--stage",
                                            "3",
                                            "--unit",
                                            "chunk",
                                            "--chunk-size",
                                            "128Ki",
                                            "--sequence",
                                            "64",
                                            "--steps",
                                            "4",
                                            "--trace",
                                            "measured.sst",
                                            "--trace-predicted",
                                            "predicted.sst",
                                            "--log",
                                            "loss.jsonl"}),
                                     {.directory = scratch.path()});
  const json run = json_of(outcome);
  EXPECT_THAT(outcome.err, HasSubstr("step 4/4  loss "));
  EXPECT_EQ(run["schema_version"], 1);
  EXPECT_EQ(run["command"], "train");
  ASSERT_EQ(run["steps"].size(), 4u);
  EXPECT_LT(run["steps"][3]["loss"], run["steps"][0]["loss"]);
  EXPECT_EQ(run["state_sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(run["optimizer_state_bytes"].size(), 2u);
  for (const char* key : {"step_seconds", "tokens_per_second", "tflops", "resident_bytes"}) {
    EXPECT_GT(run[key]["predicted"], 0.0) << key;
    EXPECT_GT(run[key]["measured"], 0.0) << key;
  }
  EXPECT_FALSE(run["collectives"].empty());
  expect_as_predicted(run, 2);

  EXPECT_EQ(scratch.list(), (Words{"loss.jsonl", "measured.sst", "predicted.sst"}));
  const std::string log = read_file(scratch.file("loss.jsonl"));
  EXPECT_EQ(std::ranges::count(log, '\n'), 4);
  EXPECT_EQ(json::parse(log.substr(0, log.find('\n')))["loss"], run["steps"][0]["loss"]);
  const json compared = json_of(
      shardscope({"compare", "predicted.sst", "measured.sst", "--check", "--json"}, {.directory = scratch.path()}));
  EXPECT_EQ(compared["predicted_plan_hash"], compared["measured_plan_hash"]);
}

/// How often each unit of each rank enters each state.
std::map<std::tuple<std::int32_t, std::int32_t, UnitState>, int> states_of(const std::filesystem::path& path) {
  std::map<std::tuple<std::int32_t, std::int32_t, UnitState>, int> counts;
  const Result<Trace> trace = load(path);
  EXPECT_TRUE(trace) << path;
  if (trace)
    for (const ChunkState& s : trace->chunk_states) ++counts[{s.rank.value, s.unit.value, s.state}];
  return counts;
}

TEST(Train, UnitsAreGatheredAndReducedAsPredicted) {
  const ScratchDirectory scratch;
  const Words options{"--model", "gpt2-nano", "--data",     "random",       "--ranks",           "2",
                      "--stage", "3",         "--sequence", "32",           "--global-batch",    "4",
                      "--steps", "3",         "--trace",    "measured.sst", "--trace-predicted", "predicted.sst"};
  static_cast<void>(json_of(shardscope(train(options), {.directory = scratch.path()})));
  const auto measured = states_of(scratch.file("measured.sst"));
  EXPECT_FALSE(measured.empty());
  EXPECT_EQ(measured, states_of(scratch.file("predicted.sst")));
}

TEST(Train, IsTheSameStartedByItselfOrByALauncher) {
  const Words options{"--model", "gpt2-nano", "--data",     "random", "--stage",        "3",
                      "--steps", "2",         "--sequence", "64",     "--global-batch", "4"};
  Words words = options;
  words.insert(words.end(), {"--ranks", "2"});
  const json own = json_of(shardscope(train(words)));
  Words command{MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", shardscope_path()};
  for (const std::string& word : train(options)) command.push_back(word);
  const json joined = json_of(run(command));
  EXPECT_EQ(own["world_size"], 2);
  EXPECT_EQ(joined["world_size"], 2);
  EXPECT_EQ(own["plan_hash"], joined["plan_hash"]);
  EXPECT_EQ(own["state_sha256"], joined["state_sha256"]);
  expect_as_predicted(joined, 2);
}

TEST(Train, RanksThatContradictTheLauncherAreRefused) {
  Words command{MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", shardscope_path()};
  for (const std::string& word : train({"--model", "gpt2-nano", "--data", "random", "--ranks", "4", "--steps", "1"}))
    command.push_back(word);
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.err, HasSubstr("--world-size 4 (command line), but the launcher started 2 ranks"));
}

TEST(Train, WorksWithMoreRanksThanCores) {
  const json run = json_of(shardscope(train({"--model", "gpt2-nano", "--data", "random", "--ranks", "4", "--stage", "2",
                                             "--sequence", "32", "--steps", "2"})));
  EXPECT_EQ(run["world_size"], 4);
  expect_as_predicted(run, 4);
}

TEST(Train, OneRankNeedsNoLauncherAndMoreRanksSayThatTheyDo) {
  const Place without_mpirun{.environment = {{"PATH", "/nowhere"}}};
  const Words options{"--model", "gpt2-nano", "--data", "random", "--sequence", "32", "--steps", "1"};
  expect_as_predicted(json_of(shardscope(train(options), without_mpirun)), 1);
  Words words = options;
  words.insert(words.end(), {"--ranks", "2"});
  const Outcome outcome = shardscope(train(words), without_mpirun);
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.err, HasSubstr("mpirun"));
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST(Train, PrintsStepsAtTheDistanceAsked) {
  const Outcome outcome = shardscope(
      {"train", "--model", "gpt2-nano", "--data", "random", "--sequence", "16", "--steps", "7", "--print-every", "3"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::string steps;
  for (std::size_t at = outcome.out.find("step "); at != std::string::npos; at = outcome.out.find("\nstep ", at + 1))
    if (const std::size_t slash = outcome.out.find("/7", at); slash != std::string::npos && slash - at < 10)
      steps += outcome.out[slash - 1];
  EXPECT_EQ(steps, "1367");
}

TEST(Resident, MemoryOfASmallGptIsAsPredicted) {
  expect_resident(json_of(shardscope(train({"--model", "gpt2-nano", "--data", kText, "--ranks", "2", "--stage", "3",
                                            "--micro-batch", "2", "--steps", "3"}))));
}

/// PyTorch's ZeroRedundancyOptimizer recipe, run for real.
json recipe(const Words& more) {
  Words words = train({"--model", "mlp-20x2000", "--data", "random", "--ranks", "2", "--optimizer", "adam",
                       "--micro-batch", "20", "--steps", "2"});
  words.insert(words.end(), more.begin(), more.end());
  return json_of(shardscope(words));
}

TEST(Recipe, OptimizerStateIsHalvedAndTheParametersEndEqual) {
  const json sharded = recipe({"--stage", "1", "--partition", "parameter"});
  const json plain = recipe({"--stage", "0"});
  // 8 bytes an element, and a 4-byte step count for each parameter with state on the rank.
  EXPECT_EQ(sharded["optimizer_state_bytes"], json({320'160'080, 320'160'080}));
  EXPECT_EQ(plain["optimizer_state_bytes"], json({640'320'160, 640'320'160}));
  EXPECT_EQ(sharded["state_sha256"], plain["state_sha256"]);
  for (const json* run : {&sharded, &plain}) {
    expect_as_predicted(*run, 2);
    expect_resident(*run);
  }
}

}  // namespace
}  // namespace shard::test
