// Do the commands of `shardscope` answer as documented: help, one JSON object with the promised keys, files for others?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

const Words& commands() {
  static const Words kCommands{"search",  "simulate", "sweep", "plan",       "compare",
                               "inspect", "convert",  "train", "completion", "man"};
  return kCommands;
}

TEST(Help, ListsTheCommandsThatRun) {
  const Outcome help = shardscope({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.err, IsEmpty());
  for (const std::string& command : commands()) EXPECT_THAT(help.out, HasSubstr("\n  " + command + " "));
  EXPECT_THAT(shardscope({"help"}).out, HasSubstr("shardscope --help"));
}

TEST(Help, OfEachCommandIsOnStdoutAndExitsZero) {
  for (const std::string& command : commands()) {
    const Outcome help = shardscope({command, "--help"});
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_THAT(help.err, IsEmpty()) << command;
    EXPECT_THAT(help.out, HasSubstr("Usage: shardscope " + command)) << command;
    EXPECT_THAT(help.out, HasSubstr("Examples:")) << command;
    EXPECT_EQ(shardscope({"help", command}).out, help.out) << command;
    const Outcome all = shardscope({command, "--help", "all"});
    EXPECT_EQ(all.exit_code, 0) << command;
    EXPECT_GE(all.out.size(), help.out.size()) << command;
    EXPECT_EQ(shardscope({"help", command, "all"}).out, all.out) << command;
  }
}

/// Each key is a path: "a.b", or "a[].b" for the elements of a list that may not be empty.
void expect_keys(const json& document, const Words& paths) {
  for (const std::string& path : paths) {
    std::vector<json> level{document};
    std::string rest = path;
    while (!rest.empty()) {
      const std::size_t dot = rest.find('.');
      std::string key = rest.substr(0, dot);
      rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
      const bool list = key.ends_with("[]");
      if (list) key.resize(key.size() - 2);
      std::vector<json> next;
      for (const json& each : level) {
        if (!each.is_object() || !each.contains(key)) {
          ADD_FAILURE() << path << " is missing";
          break;
        }
        if (!list) {
          next.push_back(each[key]);
        } else {
          EXPECT_TRUE(each[key].is_array() && !each[key].empty()) << path;
          next.insert(next.end(), each[key].begin(), each[key].end());
        }
      }
      level = std::move(next);
    }
  }
}

TEST(Search, AnswersInJson) {
  const json j = json_of(shardscope({"search", "--model", "gpt2", "--world-size", "8", "--json"}));
  expect_keys(j,
              {"schema_version", "chunk.chunk_elements", "chunk.chunk_count", "chunk.waste_elements",
               "chunk.reported_waste_elements", "chunk.keep_gathered", "curve[].chunk_elements", "curve[].chunk_count",
               "curve[].waste_elements", "curve[].gather_working_set_elements", "rules.exact.chunk_elements",
               "rules.gemini.chunk_elements", "rules.variable.chunk_elements", "seconds"});
  EXPECT_TRUE(j["rules"].contains("gemini-v0.1.9"));
  const bool some_forecast = std::ranges::any_of(j["curve"], [](const json& point) {
    return point.contains("peak_device_bytes") && point.contains("step_seconds");
  });
  EXPECT_TRUE(some_forecast);
}

TEST(Search, OfVariableChunksListsThem) {
  const json j = json_of(
      shardscope({"search", "--model", "gpt2", "--world-size", "8", "--rule", "variable", "--no-forecast", "--json"}));
  ASSERT_TRUE(j["chunks"].is_array());
  EXPECT_EQ(j["chunks"].size(), j["chunk"]["chunk_count"].get<std::size_t>());
}

/// Words of a command line in which only single quotes are special.
Words words_of(const std::string& line) {
  Words words;
  std::string word;
  bool in_quotes = false;
  for (const char c : line + ' ') {
    if (c == '\'')
      in_quotes = !in_quotes;
    else if (c != ' ' || in_quotes)
      word += c;
    else if (!word.empty())
      words.push_back(std::exchange(word, ""));
  }
  return words;
}

// Every rule's answer says what a step takes, and the command to try says the same of the asked rule's.
TEST(Search, ForecastsWhatTheCommandToTrySimulates) {
  for (const char* rule : {"exact", "variable"}) {
    const json found = json_of(shardscope({"search", "--model", "gpt2-nano", "--world-size", "4", "--rule", rule,
                                           "--min-chunk", "64Ki", "--max-chunk", "256Ki", "--precision", "bf16",
                                           "--freeze", "*.wpe.*", "--freeze", "transformer.h.0.*", "--json"}));
    for (const char* each : {"exact", "gemini", "variable"}) {
      expect_keys(found["rules"][each], {"peak_device_bytes", "step_seconds"});
    }
    EXPECT_EQ(found["rules"][rule], found["chunk"]);
    Words words = words_of(found["try_command"]);
    ASSERT_GT(words.size(), 2U);
    EXPECT_EQ(words[0], "shardscope");
    EXPECT_EQ(words.back().starts_with("variable:"), std::string(rule) == "variable");
    words.erase(words.begin());
    words.push_back("--json");
    const json simulated = json_of(shardscope(words));
    EXPECT_EQ(simulated["peak_device_bytes"], found["chunk"]["peak_device_bytes"]) << rule;
    EXPECT_EQ(simulated["step_seconds"], found["chunk"]["step_seconds"]) << rule;
  }
}

TEST(Search, TakesABareParameterList) {
  const json j = json_of(
      shardscope({"search", "--parameters", std::string(TEST_DATA) + "/../examples/05_chunk_rules/parameters.json",
                  "--world-size", "4", "--min-chunk", "256Ki", "--json"}));
  expect_keys(j, {"chunk.chunk_elements", "chunk.waste_elements"});
  EXPECT_FALSE(j["curve"][0].contains("peak_device_bytes"));
}

// What search predicts of a size is what simulate predicts with it, frozen parameters without gradient and state.
TEST(Search, PredictsWhatSimulateDoesOfFrozenParameters) {
  const std::vector<std::string> options{"--model",       "gpt2-nano", "--world-size", "2",
                                         "--freeze",      "*.wte.*",   "--freeze",     "transformer.h.0.*,*.wpe.*",
                                         "--micro-batch", "2",         "--precision",  "bf16"};
  const auto with = [&](std::vector<std::string> command, const std::vector<std::string>& more) {
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), more.begin(), more.end());
    return json_of(shardscope(command));
  };
  const json found = with({"search"}, {"--min-chunk", "64Ki", "--max-chunk", "256Ki", "--json"});
  int compared = 0;
  for (const json& point : found["curve"]) {
    if (!point.contains("peak_device_bytes") || compared == 4) continue;
    const json simulated = with(
        {"simulate"}, {"--stage", "3", "--unit", "chunk", "--chunk-size", point["chunk_elements"].dump(), "--json"});
    EXPECT_EQ(point["peak_device_bytes"], simulated["peak_device_bytes"]) << point["chunk_elements"];
    EXPECT_EQ(point["step_seconds"], simulated["step_seconds"]) << point["chunk_elements"];
    ++compared;
  }
  EXPECT_GT(compared, 0);
  // The size is that of --chunk-size search.
  const json simulated = with({"simulate"}, {"--stage", "3", "--unit", "chunk", "--chunk-size", "search", "--json"});
  const json answer = with({"search"}, {"--json"});
  EXPECT_NE(simulated.dump().find(answer["chunk"]["chunk_elements"].dump()), std::string::npos);
}

TEST(Simulate, AnswersInJson) {
  const json j =
      json_of(shardscope({"simulate", "--model", "gpt2-nano", "--world-size", "2", "--stage", "3", "--json"}));
  expect_keys(j, {"schema_version", "plan_hash", "fits", "peak_device_bytes", "live_peak_device_bytes",
                  "largest_holders[].bytes", "rank_classes[].phases[].memory[].peak_bytes",
                  "arenas[].predicted_peak_bytes", "collectives[].predicted_count", "collectives[].predicted_bytes",
                  "step_seconds", "first_step_seconds", "tokens_per_second"});
  EXPECT_TRUE(j["fits"].get<bool>());
}

TEST(Simulate, WhatDoesNotFitIsStillAnswered) {
  const Outcome outcome = shardscope(
      {"simulate", "--model", "gpt2-nano", "--world-size", "2", "--stage", "1", "--device-capacity", "14Mi", "--json"});
  const json j = json_of(outcome, 3);
  EXPECT_FALSE(j["fits"].get<bool>());
  EXPECT_EQ(j["device_capacity_bytes"], 14 << 20);
  EXPECT_EQ(j["largest_holders"].size(), 5u);
  ASSERT_TRUE(j["smallest_change"].is_object());
  EXPECT_LE(j["smallest_change"]["peak_device_bytes"], 14 << 20);
}

TEST(Simulate, ARunWithPipelinesIsNotPredictedAsOneWithout) {
  const ScratchDirectory scratch;
  const std::string script = scratch.write("pretrain.sh",
                                           "torchrun --nproc_per_node 8 pretrain_gpt.py \\\n  --micro-batch-size 1 \\\n"
                                           "  --pipeline-model-parallel-size 2 --tensor-model-parallel-size 1\n");
  const Outcome refused = shardscope({"simulate", "--model", "gpt2", "--megatron-args", script});
  EXPECT_EQ(refused.exit_code, 78) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("pretrain.sh:3: /pipeline-model-parallel-size: pipeline parallelism"));
  EXPECT_EQ(shardscope({"simulate", "--model", "gpt2", "--megatron-args", script, "--print-config"}).exit_code, 0);
}

TEST(Simulate, AnotherFrameworksAnswerHasOurOwnBesideIt) {
  const Words strategy{"--model", "gpt2-nano", "--world-size", "2",     "--stage",
                       "3",       "--cluster", "h100-80gb-x8", "--json"};
  Words words{"simulate"};
  words.insert(words.end(), strategy.begin(), strategy.end());
  const nlohmann::json other = json_of(shardscope(words));
  EXPECT_EQ(other["like"], "fsdp2@2.11");
  words.insert(words.end(), {"--like", "shardscope"});
  const nlohmann::json own = json_of(shardscope(words));
  EXPECT_EQ(other["own_executor"]["peak_device_bytes"], own["peak_device_bytes"]);
  EXPECT_EQ(other["own_executor"]["step_seconds"], own["step_seconds"]);
  EXPECT_TRUE(own["own_executor"].is_null());
  EXPECT_TRUE(other["reproducible_bytes"].is_null());
}

TEST(Simulate, ReproducibleSumsHaveAPrice) {
  const auto peak = [](const char* sums) {
    return json_of(shardscope({"simulate", "--model", "gpt2-nano", "--world-size", "2", "--stage", "2",
                               "--global-batch", "16", "--cluster", "h100-80gb-x8", sums, "--json"}));
  };
  const nlohmann::json with = peak("--reproducible");
  const nlohmann::json without = peak("--no-reproducible");
  const auto price = with["peak_device_bytes"].get<std::int64_t>() - without["peak_device_bytes"].get<std::int64_t>();
  EXPECT_GT(price, 0);
  EXPECT_EQ(with["reproducible_bytes"], price);
  EXPECT_TRUE(without["reproducible_bytes"].is_null());
}

TEST(Simulate, LikePyTorchGivesTheRecipesMomentsInOrder) {
  const Words recipe{"simulate", "--model",       "mlp-20x2000", "--world-size", "2",
                     "--like",   "pytorch@1.8",   "--precision", "fp32",         "--optimizer",
                     "adam",     "--micro-batch", "20",          "--json"};
  const auto moments = [&](const Words& more) {
    Words words = recipe;
    words.insert(words.end(), more.begin(), more.end());
    const json answer = json_of(shardscope(words));
    std::vector<std::int64_t> bytes;
    for (const json& moment : answer["moments"]) bytes.push_back(moment["max_allocated_bytes"]);
    return bytes;
  };
  // docs.pytorch.org, recipes/zero_redundancy_optimizer: 335, 656, 992, 1361 MB; without sharding 1697.
  EXPECT_EQ(moments({"--stage", "1", "--partition", "parameter"}),
            (std::vector<std::int64_t>{335'708'160, 656'572'416, 992'921'600, 1'361'863'680}));
  EXPECT_EQ(moments({"--stage", "0"}),
            (std::vector<std::int64_t>{335'708'160, 656'572'416, 992'921'600, 1'697'571'840}));
}

Words like_gemini(const Words& more) {
  Words words{"simulate", "--parameters", std::string(TEST_DATA) + "/data/chunk_oracle/models/mlp-20x2000.json",
              "--like", "colossalai-gemini"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Simulate, LikeGeminiGivesTheRecordedStepsInTheirKeys) {
  std::ifstream file(std::string(TEST_DATA) + "/data/gemini_oracle/gemini_traffic.json");
  const json row = json::parse(file)["rows"][7];
  const json answer =
      json_of(shardscope(like_gemini({"--world-size", "4", "--chunk-size", "40020992", "--shard-param-frac", "1",
                                      "--offload-optim-frac", "0.1", "--offload-param-frac", "0", "--json"})));
  ASSERT_EQ(row["offload_optim_frac"], 0.1);
  EXPECT_EQ(answer["iters"], row["iters"]);
  EXPECT_EQ(answer["chunk_sizes"], row["chunk_sizes"]);
  EXPECT_EQ(answer["rest_cuda"], row["rest_cuda"]);
  expect_keys(answer, {"schema_version", "like", "fits", "peak_device_bytes", "largest_holders[].bytes", "num_chunks"});
}

TEST(Simulate, LikeGeminiAsTextTableAndOldVersion) {
  const Outcome text = shardscope(like_gemini({"--world-size", "2", "--chunk-size", "8194304"}));
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("10 chunks of 8194304 elements"));
  EXPECT_THAT(text.out, HasSubstr("steady step"));
  const Outcome csv = shardscope(like_gemini({"--world-size", "2", "--steps", "5", "--format", "csv"}));
  EXPECT_EQ(std::ranges::count(csv.out, '\n'), 6);
  EXPECT_THAT(csv.err, HasSubstr("chunk size found by colossalai-gemini@0.5.1"));
  const json old = json_of(shardscope({"simulate", "--model", "gpt2-nano", "--sequence", "16", "--world-size", "2",
                                       "--chunk-size", "none", "--like", "colossalai-gemini@0.1.9", "--json"}));
  EXPECT_EQ(old["chunk_elements"], nullptr);
  expect_keys(old, {"model", "iters[].broadcast_total", "iters[].reduce_bytes_full"});
}

// An option that another framework does not have and that nobody refuses would promise what is not predicted.
TEST(Simulate, OptionsOfOursAreRefusedBesideLike) {
  const std::vector<Words> ours{{"--tensor-parallel", "2"},
                                {"--tensor-parallel-layout", "colossalai"},
                                {"--transport", "messages"},
                                {"--threads", "2"},
                                {"--shard-group", "2"},
                                {"--prefetch", "2"},
                                {"--unit", "tensor"},
                                {"--precision", "bf16"},
                                {"--fp32-reduce-scatter"},
                                {"--clip-norm", "1"},
                                {"--gradient-predivide-factor", "2"},
                                {"--initial-scale", "4"},
                                {"--min-scale", "2"},
                                {"--max-scale", "1024"},
                                {"--growth-factor", "4"},
                                {"--backoff-factor", "0.25"},
                                {"--growth-interval", "7"},
                                {"--hysteresis", "1"},
                                {"--freeze", "*.bias"},
                                {"--dropout", "0.1"},
                                {"--placement", "host"},
                                {"--param-placement", "host"},
                                {"--grad-placement", "0.5"},
                                {"--optimizer-placement", "disk"},
                                {"--gpu-margin-mem-ratio", "0.5"},
                                {"--from-trace", "run.sst"},
                                {"--host-capacity", "1Gi"},
                                {"--disk-path", "."},
                                {"--chunk-owner", "rank"},
                                {"--no-distributed-storage"},
                                {"--keep-gathered"},
                                {"--reuse-fp16-shard"},
                                {"--reduce-scatter-bucket-size-mb", "4"},
                                {"--trace", "like.sst"}};
  for (const char* framework : {"pytorch@1.8", "colossalai-gemini@0.5.1", "colossalai-gemini@0.1.9"})
    for (const Words& option : ours) {
      Words words{"simulate", "--model", "gpt2-nano", "--world-size", "4", "--like", framework};
      words.insert(words.end(), option.begin(), option.end());
      const Outcome outcome = shardscope(words);
      EXPECT_EQ(outcome.exit_code, 78) << framework << ' ' << option[0] << ": " << outcome.err;
      const std::string name = option[0].starts_with("--no-") ? option[0].substr(5) : option[0].substr(2);
      EXPECT_THAT(outcome.err, HasSubstr(name));
      EXPECT_THAT(outcome.err, HasSubstr(std::string("--like ") + framework));
    }
}

TEST(Simulate, LikeGeminiThatDoesNotFitIsStillAnswered) {
  const json j = json_of(
      shardscope(like_gemini({"--world-size", "2", "--chunk-size", "8194304", "--device-capacity", "1Mi", "--json"})),
      3);
  EXPECT_FALSE(j["fits"].get<bool>());
  EXPECT_EQ(j["iters"].size(), 3U);
}

TEST(Plan, PrintsEveryPass) {
  for (const char* pass :
       {"build", "differentiate", "recompute", "accumulate", "shard", "optimize", "schedule", "allocate"}) {
    const Outcome plan =
        shardscope({"plan", "--model", "gpt2-nano", "--world-size", "2", "--stage", "3", "--after", pass});
    EXPECT_EQ(plan.exit_code, 0) << pass << plan.err;
    EXPECT_GT(plan.out.size(), 1000u) << pass;
  }
  const json j = json_of(shardscope({"plan", "--model", "gpt2-nano", "--world-size", "2", "--stage", "3", "--json"}));
  expect_keys(j, {"plan_hash", "classes[].ranks", "classes[].text"});
}

TEST(Plan, VerifiesWhatItPrints) {
  const Outcome plan =
      shardscope({"plan", "--model", "gpt2-nano", "--world-size", "3", "--stage", "3", "--unit", "chunk", "--verify"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_TRUE(plan.out.starts_with("verified: every rule of a correct plan holds, in ")) << plan.out;
  const json j = json_of(shardscope({"plan", "--model", "mlp-20x2000", "--verify", "--json"}));
  EXPECT_EQ(j["verified"], true);
}

/// A predicted trace, and what the other commands make of it.
TEST(Traces, OfASimulationServeTheOtherCommands) {
  const ScratchDirectory scratch;
  const std::string trace = scratch.file("predicted.sst");
  ASSERT_EQ(
      shardscope({"simulate", "--model", "gpt2-nano", "--world-size", "2", "--stage", "3", "--trace", trace}).exit_code,
      0);

  const json inspected = json_of(shardscope({"inspect", trace, "--json"}));
  EXPECT_EQ(inspected["world_size"], 2);
  EXPECT_EQ(inspected["command"], "inspect");

  const json compared = json_of(shardscope({"compare", trace, trace, "--check", "--json"}));
  EXPECT_EQ(compared["command"], "compare");

  ASSERT_EQ(shardscope({"convert", trace, scratch.file("t.json")}).exit_code, 0);
  const json chrome = json::parse(read_file(scratch.file("t.json")), nullptr, false);
  EXPECT_GT(chrome["traceEvents"].size(), 100u);
  ASSERT_EQ(shardscope({"convert", trace, scratch.file("t.perfetto-trace")}).exit_code, 0);
  // A Perfetto trace is a sequence of field 1, length-delimited.
  EXPECT_TRUE(read_file(scratch.file("t.perfetto-trace")).starts_with('\x0a'));
  EXPECT_EQ(scratch.list(), (Words{"predicted.sst", "t.json", "t.perfetto-trace"}));
}

/// What torch.cuda._memory_viz does with a snapshot: blocks tile their segments, and the events lead to them.
constexpr const char* kReadSnapshot = R"(
import pickle, sys
snapshot = pickle.load(open(sys.argv[1], 'rb'))
peaks = []
for device, events in enumerate(snapshot['device_traces']):
    live, bytes, peak = {}, 0, 0
    for e in events:
        assert all(set(f) == {'name', 'filename', 'line'} for f in e['frames'])
        if e['action'] == 'alloc':
            assert e['addr'] not in live and e['time_us'] >= 0 and e['stream'] == 0
            live[e['addr']] = e['size']
            bytes += e['size']
            peak = max(peak, bytes)
        elif e['action'] == 'free_completed':
            bytes -= live.pop(e['addr'])
    peaks.append(peak)
    for s in (s for s in snapshot['segments'] if s['device'] == device):
        address = s['address']
        for b in s['blocks']:
            assert b['address'] == address
            address += b['size']
        assert address == s['address'] + s['total_size']
        used = {b['address']: b['size'] for b in s['blocks'] if b['state'] == 'active_allocated'}
        assert used == live and s['allocated_size'] == bytes
print(*peaks)
)";

TEST(Traces, AsAPyTorchSnapshotAreReadByPython) {
  if (run({"/bin/sh", "-c", "command -v python3"}).exit_code != 0) GTEST_SKIP() << "python3 is not installed";
  const ScratchDirectory scratch;
  const std::string trace = scratch.file("predicted.sst");
  const std::string snapshot = scratch.file("predicted.pickle");
  const json simulated = json_of(shardscope(
      {"simulate", "--model", "gpt2-nano", "--world-size", "2", "--stage", "3", "--trace", trace, "--json"}));
  ASSERT_EQ(shardscope({"convert", trace, snapshot}).exit_code, 0);
  const Outcome read = run({"python3", "-c", kReadSnapshot, snapshot});
  ASSERT_EQ(read.exit_code, 0) << read.err;
  // The peak of the events is the largest sum of live buffers, to the byte.
  const std::string peak = std::to_string(simulated["live_peak_device_bytes"].get<std::int64_t>());
  EXPECT_THAT(read.out, HasSubstr(peak));
  const json inspected = json_of(shardscope({"inspect", snapshot, "--json"}));
  EXPECT_EQ(inspected["format"], "pytorch-snapshot");
  EXPECT_GT(inspected["memory_event_count"], 100);
}

TEST(Traces, OfASimulationHaveItsStepTimeWhateverTheNumberOfSteps) {
  // Two ranks with shards of unequal work: the faster waits for the slower in every step.
  const ScratchDirectory scratch;
  const std::string trace = scratch.file("predicted.sst");
  const json simulated =
      json_of(shardscope({"simulate", "--model", "gpt2-nano", "--world-size", "2", "--stage", "3", "--unit", "chunk",
                          "--chunk-size", "128Ki", "--steps", "20", "--trace", trace, "--json"}));
  ASSERT_EQ(simulated["rank_classes"].size(), 2u);
  const json inspected = json_of(shardscope({"inspect", trace, "--json"}));
  EXPECT_NEAR(inspected["step_seconds"], simulated["step_seconds"], 2e-9);
  ASSERT_EQ(inspected["steps"].size(), 20u);
  for (std::size_t i = 2; i < 20; ++i)
    EXPECT_NEAR(inspected["steps"][i]["seconds"], simulated["step_seconds"], 2e-9) << i;
}

TEST(Json, IsAloneOnStdoutAndNotesAreOnStderr) {
  // What TF32 is on a CPU is noted.
  const Outcome outcome =
      shardscope({"simulate", "--model", "gpt2", "--precision", "tf32", "--sequence", "64", "--json"});
  EXPECT_TRUE(json_of(outcome)["fits"].get<bool>());
  EXPECT_THAT(outcome.err, HasSubstr("note: --precision tf32"));
}

TEST(Viewer, ThatIsNotBuiltIsNamedWithWhatHelps) {
  // A copy of the one program, beside which there is no other.
  const ScratchDirectory scratch;
  const std::string alone = scratch.file("shardscope");
  std::filesystem::copy_file(shardscope_path(), alone);
  for (const Words& words : {Words{"view", "a.sst"},
                             {"report", "a.sst", "-o", "a.html"},
                             {"convert", "a.sst", "a.png"},
                             {"convert", "a.sst", "a", "--to", "png"}}) {
    Words all{alone};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome outcome = run(all);
    EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("'" + words[0] + "' is run by shardscope-view, which is not built"));
    EXPECT_THAT(outcome.err, HasSubstr("make deps"));
  }
}

TEST(Output, ThatCannotBeWrittenExits74) {
  const Outcome outcome = run({"/bin/sh", "-c", "'" + shardscope_path() + "' --help >/dev/full"});
  EXPECT_EQ(outcome.exit_code, 74);
  EXPECT_THAT(outcome.err, HasSubstr("the result could not be written"));
}

}  // namespace
}  // namespace shard::test
