// Does `shardscope train` run as promised: started by itself or a launcher, with one answer, and as predicted?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/daily.h"
#include "tests/end_to_end/as_predicted.h"
#include "tests/end_to_end/program.h"
#include "traces/reader.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

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
  EXPECT_EQ(run["schema_version"], 2);
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

// What was simulated before is what a run does, though only the run ends with a digest of its state.
TEST(Train, DoesWhatSimulateSaidOfTheSameOptions) {
  for (const char* precision : {"fp32", "fp16"}) {
    const ScratchDirectory scratch;
    const Words options{"--model", "gpt2-nano", "--sequence",  "16",      "--world-size", "3",     "--stage", "3",
                        "--steps", "3",         "--precision", precision, "--recompute",  "block", "--trace"};
    Words simulate{"simulate"};
    simulate.insert(simulate.end(), options.begin(), options.end());
    simulate.insert(simulate.end(), {"predicted.sst", "--json"});
    const json predicted = json_of(shardscope(simulate, {.directory = scratch.path()}));
    Words words = options;
    words.insert(words.end(), {"measured.sst", "--data", "random"});
    const json measured = json_of(shardscope(train(words), {.directory = scratch.path()}));
    ASSERT_EQ(predicted["collectives"].size(), measured["collectives"].size());
    for (std::size_t i = 0; i < measured["collectives"].size(); ++i)
      for (const char* key : {"rank", "kind", "predicted_count", "predicted_bytes"})
        EXPECT_EQ(predicted["collectives"][i][key], measured["collectives"][i][key]) << measured["collectives"][i];
    ASSERT_EQ(predicted["arenas"].size(), 3u);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(predicted["arenas"][i]["predicted_peak_bytes"], measured["arenas"][i]["measured_peak_bytes"]);
    expect_as_predicted(measured, 3);
    const Outcome compared =
        shardscope({"compare", "predicted.sst", "measured.sst", "--check"}, {.directory = scratch.path()});
    EXPECT_EQ(compared.exit_code, 0) << compared.out << compared.err;
  }
}

// The norm is over all parameters, however they are cut; a step says it, the schedule's rate and the log do too.
TEST(Train, ClipsByTheNormOfTheWholeGradient) {
  const ScratchDirectory scratch;
  json first;
  for (const Words& cut : {Words{"--ranks", "1"}, Words{"--ranks", "2", "--stage", "3"}}) {
    Words words{"--model",       "gpt2-nano", "--data",         "random",    "--sequence",     "16",
                "--steps",       "3",         "--log",          "run.jsonl", "--clip-norm",    "0.25",
                "--lr-schedule", "linear",    "--warmup-steps", "1",         "--global-batch", "2"};
    words.insert(words.end(), cut.begin(), cut.end());
    const Outcome outcome = shardscope(train(words), {.directory = scratch.path()});
    const json run = json_of(outcome);
    EXPECT_THAT(outcome.err, HasSubstr("  norm "));
    if (first.is_null()) first = run;
    EXPECT_EQ(run["state_sha256"], first["state_sha256"]);
    ASSERT_EQ(run["steps"].size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_GT(run["steps"][i]["gradient_norm"], 0.25);
      EXPECT_EQ(run["steps"][i]["gradient_norm"], first["steps"][i]["gradient_norm"]);
    }
    EXPECT_EQ(run["steps"][1]["learning_rate"], 1e-3);
    EXPECT_EQ(run["steps"][2]["learning_rate"], 0.5e-3);
    EXPECT_TRUE(run["skipped_steps"].empty());
    const std::string log = read_file(scratch.file("run.jsonl"));
    EXPECT_EQ(json::parse(log.substr(0, log.find('\n')))["gradient_norm"], run["steps"][0]["gradient_norm"]);
    expect_as_predicted(run, cut[1] == "1" ? 1 : 2);
  }
}

// fp16: the rank, tensor and layer that overflowed are named, the scale follows, and simulate plans the same run.
TEST(Train, SkipsAStepThatOverflowedOnOneRankAndSaysWhere) {
  const Words strategy{"--model",         "gpt2-nano", "--ranks",      "2", "--stage",           "2",
                       "--sequence",      "16",        "--steps",      "5", "--precision",       "fp16",
                       "--initial-scale", "1024",      "--hysteresis", "1", "--growth-interval", "2",
                       "--clip-norm",     "0.5"};
  Words words = train(strategy);
  for (const char* word : {"--data", "random", "--inject-overflow", "1:2", "--inject-overflow", "0:5"})
    words.emplace_back(word);
  const Outcome outcome = shardscope(words);
  const json run = json_of(outcome);
  const std::string first = "step 2 skipped: the gradient of transformer.ln_f.bias overflowed first, on rank ";
  EXPECT_THAT(outcome.err, HasSubstr(first + "1; loss scale 1,024 -> 512"));
  ASSERT_EQ(run["skipped_steps"].size(), 2u);
  const json& skipped = run["skipped_steps"][0];
  EXPECT_EQ(skipped["step"], 2);
  EXPECT_EQ(skipped["rank"], 1);
  EXPECT_EQ(skipped["tensor"], "transformer.ln_f.bias");
  EXPECT_TRUE(skipped["layer"].is_null());
  EXPECT_EQ(run["skipped_steps"][1]["rank"], 0);
  const std::vector<double> scales{1024, 1024, 512, 512, 1024};
  for (std::size_t i = 0; i < scales.size(); ++i) {
    EXPECT_EQ(run["steps"][i]["loss_scale"], scales[i]);
    EXPECT_EQ(run["steps"][i]["skipped"], i == 1 || i == 4);
    EXPECT_EQ(run["steps"][i]["gradient_norm"].is_null(), i == 1 || i == 4);
  }
  expect_as_predicted(run, 2);

  Words simulate{"simulate", "--json"};
  simulate.insert(simulate.end(), strategy.begin(), strategy.end());
  EXPECT_EQ(json_of(shardscope(simulate))["plan_hash"], run["plan_hash"]);
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

/// What a trace says of its spans but for their times, each as often as it says so.
std::multiset<std::string> spans_of(const Trace& trace) {
  std::multiset<std::string> all;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const Span s = trace.spans[i];
    const Track& track = trace.track_of(s.track);
    std::string text(trace.name_of(s.name));
    for (const char* word : {to_string(track.stream), to_string(s.phase), to_string(s.part)})
      text += ' ' + std::string(word);
    for (const std::int64_t number : {std::int64_t{track.rank.value}, std::int64_t{s.op.value}, std::int64_t{s.step},
                                      std::int64_t{s.micro_step}, s.bytes, std::int64_t{s.unit.value}})
      text += ' ' + std::to_string(number);
    all.insert(text);
  }
  return all;
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

  const Result<Trace> predicted = load(std::filesystem::path(scratch.file("predicted.sst")));
  const Result<Trace> run = load(std::filesystem::path(scratch.file("measured.sst")));
  ASSERT_TRUE(predicted && run);
  EXPECT_EQ(predicted->header.units, run->header.units);
  EXPECT_EQ(predicted->header.strategy, run->header.strategy);
  EXPECT_EQ(predicted->header.capacities, run->header.capacities);
  EXPECT_FALSE(run->header.units.empty() || run->header.strategy.empty());
  EXPECT_EQ(spans_of(*predicted), spans_of(*run));
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

TEST(Train, OneStateHoweverUnitsLieAndAreReduced) {
  const ScratchDirectory scratch;
  const auto state_of = [](const Words& more) {
    Words words = train({"--model", "gpt2-nano", "--data", "random", "--ranks", "2", "--steps", "2", "--sequence", "16",
                         "--precision", "bf16", "--global-batch", "2"});
    words.insert(words.end(), more.begin(), more.end());
    const json run = json_of(shardscope(words));
    expect_as_predicted(run, 2);
    return run["state_sha256"];
  };
  const std::vector<Words> others{
      {"--stage", "3", "--unit", "chunk", "--chunk-size", "none", "--chunk-owner", "rank", "--transport", "messages",
       "--reuse-fp16-shard"},
      {"--stage", "3", "--unit", "tensor", "--keep-gathered", "--reuse-fp16-shard", "--reduce-scatter-bucket-size-mb",
       "1", "--transport", "messages"},
      {"--stage", "2", "--unit", "chunk", "--no-distributed-storage"},
      {"--stage", "3", "--unit", "chunk", "--chunk-size", "variable:100k"},
      {"--stage", "2", "--unit", "chunk", "--chunk-size", "variable:64Ki", "--chunk-owner", "rank", "--transport",
       "messages", "--placement", "host"},
      // The peers' chunk managers offload what they own, and reuse what they offload.
      {"--stage", "3", "--unit", "chunk", "--chunk-size", "100000", "--reuse-fp16-shard", "--placement", "host",
       "--transport", "messages"},
      {"--stage", "3", "--unit", "chunk", "--chunk-size", "none", "--chunk-owner", "rank", "--reuse-fp16-shard",
       "--param-placement", "host", "--optimizer-placement", "disk", "--disk-path", scratch.path().string()},
      {"--stage", "3", "--reuse-fp16-shard", "--placement", "auto", "--device-capacity", "4Mi"}};
  const json sha = state_of({});
  for (const Words& other : daily::part_of(others, 3)) EXPECT_EQ(state_of(other), sha) << json(other);
}

TEST(Train, RanksThatContradictTheLauncherAreRefused) {
  Words command{MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", shardscope_path()};
  for (const std::string& word : train({"--model", "gpt2-nano", "--data", "random", "--ranks", "4", "--steps", "1"}))
    command.push_back(word);
  const Outcome outcome = run(command, under_mpirun_here());
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.err,
              HasSubstr("--world-size 4 (command line), but mpirun started 2 ranks (OMPI_COMM_WORLD_SIZE)"));
}

TEST(Train, WorksWithMoreRanksThanCores) {
  const json run = json_of(shardscope(train({"--model", "gpt2-nano", "--data", "random", "--ranks", "4", "--stage", "2",
                                             "--sequence", "32", "--steps", "2"})));
  EXPECT_EQ(run["world_size"], 4);
  expect_as_predicted(run, 4);
}

TEST(Train, OneRankNeedsNoLauncherAndMoreRanksSayThatTheyDo) {
  const Surroundings without_mpirun{.environment = {{"PATH", "/nowhere"}}};
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

/// PyTorch's ZeroRedundancyOptimizer recipe, run for real: 20 layers, `width` wide.
json recipe(std::int64_t width, const Words& more) {
  const json model{
      {"model_type", "mlp"}, {"bias", true}, {"loss", "mse"}, {"sizes", std::vector<std::int64_t>(21, width)}};
  Words words = train({"--model", model.dump(), "--data", "random", "--ranks", "2", "--optimizer", "adam",
                       "--micro-batch", "20", "--steps", "2"});
  words.insert(words.end(), more.begin(), more.end());
  return json_of(shardscope(words));
}

TEST(Recipe, OptimizerStateIsHalvedAndTheParametersEndEqual) {
  // The recipe's own width takes gigabytes; the rule is the same in 5 million parameters.
  // 8 bytes an element, and a 4-byte step count for each parameter with state on the rank.
  const std::vector<std::pair<std::int64_t, std::int64_t>> halves{{500, 20'040'080}, {2000, 320'160'080}};
  for (const auto& [width, half] : daily::part_of(halves, 3)) {
    const json sharded = recipe(width, {"--stage", "1", "--partition", "parameter"});
    const json plain = recipe(width, {"--stage", "0"});
    EXPECT_EQ(sharded["optimizer_state_bytes"], json({half, half}));
    EXPECT_EQ(plain["optimizer_state_bytes"], json({2 * half, 2 * half}));
    EXPECT_EQ(sharded["state_sha256"], plain["state_sha256"]);
    for (const json* run : {&sharded, &plain}) {
      expect_as_predicted(*run, 2);
      expect_resident(*run);
    }
  }
}

TEST(Train, FrozenParametersCostNoState) {
  const auto run = [](const Words& more) {
    Words words = train({"--model", "gpt2-nano", "--data", "random", "--ranks", "2", "--stage", "2", "--steps", "2",
                         "--sequence", "32", "--precision", "bf16"});
    words.insert(words.end(), more.begin(), more.end());
    return json_of(shardscope(words));
  };
  const json all = run({});
  const json some = run({"--freeze", "transformer.w*,transformer.h.0.*"});
  expect_as_predicted(some, 2);
  EXPECT_EQ(some["steps"][0]["loss"], all["steps"][0]["loss"]);
  EXPECT_LT(some["arenas"][0]["measured_peak_bytes"], all["arenas"][0]["measured_peak_bytes"]);
  EXPECT_LT(some["optimizer_state_bytes"][0], all["optimizer_state_bytes"][0]);
}

}  // namespace
}  // namespace shard::test
