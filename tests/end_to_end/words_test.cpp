// Do answers say what they rest on, in numbers, letters and words that a newcomer can read?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

/// What is printed says what was taken before all that explains it, and who chose it.
TEST(Assumed, StandsBehindTheVerdictAndSaysWhoChose) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("run.conf", "micro-batch = 2\n");
  const Outcome simulated = shardscope({"simulate", "--config", file, "--model", "gpt2-nano", "--world-size", "4"});
  EXPECT_THAT(simulated.out,
              HasSubstr("\n\nmodel     gpt2-nano (given), 858,880 parameters\n"
                        "precision fp32 (default)\n"
                        "batch     2 sequences per rank and micro-step (" +
                        file +
                        ":1), 8 per step (derived), 256 tokens each (default)\n"
                        "machine   cpu-local (default, a CPU: --cluster names your GPUs), no memory limit; "
                        "4 ranks (given)\n"
                        "memory    of Shardscope's own executor (default)\n\n"));
  const Outcome searched = shardscope({"search", "--model", "gpt2-nano", "--cluster", "a100-40gb-x8", "--min-chunk",
                                       "64Ki", "--max-chunk", "64Ki", "--precision", "bf16"});
  EXPECT_THAT(searched.out, StartsWith("model     gpt2-nano (given), 858,880 parameters\nprecision bf16 (given)\n"));
  EXPECT_THAT(searched.out,
              HasSubstr("machine   a100-40gb-x8 (given), 39.50 GiB per device (derived); 1 rank (default)\n"));
  const Outcome emulated = shardscope({"simulate", "--model", "mlp-20x2000", "--world-size", "2", "--stage", "1",
                                       "--partition", "parameter", "--like", "pytorch@1.8"});
  EXPECT_THAT(emulated.out, HasSubstr("batch     1 sample per rank and micro-step (default), 2 per step (derived)\n"));
  EXPECT_THAT(emulated.out, HasSubstr("memory    of pytorch@1.8 (given)\n"));
}

TEST(Assumed, IsInJsonWithTheOriginOfEveryValue) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("run.conf", "# a run\nsequence = 64\n");
  const json own = json_of(shardscope({"simulate", "--model", "gpt2-nano", "--config", file, "--json"}));
  EXPECT_EQ(own["assumed"], json::parse(R"({
      "model": {"value": "gpt2-nano", "origin": "command line"},
      "parameter_elements": {"value": 858880, "origin": "derived"},
      "precision": {"value": "fp32", "origin": "default"},
      "dropout": {"value": 0.0, "origin": "default"},
      "sequence": {"value": 64, "origin": ")" +
                                        file + R"(:2"},
      "micro_batch": {"value": 1, "origin": "default"},
      "global_batch": {"value": 1, "origin": "derived"},
      "world_size": {"value": 1, "origin": "default"},
      "cluster": {"value": "cpu-local", "origin": "default"},
      "device_capacity_bytes": {"value": null, "origin": "default"},
      "host_capacity_bytes": {"value": null, "origin": "default"},
      "memory_of": {"value": "shardscope", "origin": "default"}})"));
  const json listed = json_of(shardscope(
      {"simulate", "--parameters", std::string(TEST_DATA) + "/../examples/05_chunk_rules/parameters.json", "--like",
       "colossalai-gemini", "--world-size", "4", "--chunk-size", "256Ki", "--device-capacity", "1Gi", "--json"}));
  EXPECT_EQ(listed["assumed"]["precision"], (json{{"value", "fp16"}, {"origin", "derived"}}));
  EXPECT_EQ(listed["assumed"]["micro_batch"]["value"], nullptr);
  EXPECT_EQ(listed["assumed"]["memory_of"], (json{{"value", "colossalai-gemini@0.5.1"}, {"origin", "command line"}}));
  EXPECT_EQ(listed["assumed"]["device_capacity_bytes"], (json{{"value", 1 << 30}, {"origin", "command line"}}));
}

/// A config.json's own precision is not followed, and the answer says so.
TEST(Assumed, SaysThatTheConfigNamesAnotherPrecision) {
  const ScratchDirectory scratch;
  for (const char* key : {"torch_dtype", "dtype"}) {
    const std::string model =
        scratch.write("config.json", R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 64, "n_head": 2, ")" +
                                         std::string(key) + R"(": "bfloat16"})");
    const Outcome silent = shardscope({"simulate", "--model", model});
    EXPECT_THAT(silent.out,
                HasSubstr("precision fp32 (default); its config.json says bf16: --precision bf16 to follow it\n"))
        << key;
    EXPECT_EQ(json_of(shardscope({"simulate", "--model", model, "--json"}))["assumed"]["precision"],
              (json{{"value", "fp32"}, {"origin", "default"}, {"config_value", "bf16"}}));
    const Outcome asked = shardscope({"simulate", "--model", model, "--precision", "fp32"});
    EXPECT_THAT(asked.out, HasSubstr("precision fp32 (given)\n"));
  }
}

/// A config.json's own dropout is not followed, and the answer says so where it says what it rests on.
TEST(Assumed, SaysThatTheConfigNamesAnotherDropout) {
  const ScratchDirectory scratch;
  const std::string model =
      scratch.write("config.json", R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 64, "n_head": 2,
                                       "resid_pdrop": 0.2, "embd_pdrop": 0.2, "attn_pdrop": 0.0})");
  const Outcome silent = shardscope({"simulate", "--model", model});
  EXPECT_THAT(silent.out, HasSubstr("dropout   0 (default); its config.json says 0.2 (resid_pdrop, embd_pdrop): "
                                    "--dropout 0.2 to follow it\n"));
  EXPECT_EQ(silent.err, "");
  EXPECT_EQ(json_of(shardscope({"simulate", "--model", model, "--json"}))["assumed"]["dropout"],
            (json{{"value", 0}, {"origin", "default"}, {"config_value", 0.2}}));
  const Outcome asked = shardscope({"simulate", "--model", model, "--dropout", "0.1"});
  EXPECT_THAT(asked.out, HasSubstr("dropout   0.1 (given)\n"));
}

/// Sizes in bytes are those of the elements that are stored.
TEST(Search, CountsBytesOfTheStoredType) {
  for (const auto& [precision, bytes, mib] : {std::tuple{"fp32", 4, "98.10 MiB"},
                                              {"tf32", 4, "98.10 MiB"},
                                              {"bf16", 2, "49.05 MiB"},
                                              {"fp16", 2, "49.05 MiB"}}) {
    const Words words{"search",      "--parameters", std::string(TEST_DATA) + "/data/chunk_oracle/models/gpt2.json",
                      "--precision", precision,      "--world-size",
                      "8",           "--max-chunk",  "25716224",
                      "--min-chunk", "25716224"};
    const Outcome text = shardscope(words);
    EXPECT_THAT(text.out, HasSubstr("chunk size 25,716,224 elements (" + std::string(mib) + ") by rule exact"));
    EXPECT_THAT(text.out, HasSubstr("MiB at " + std::to_string(bytes) + " bytes per element"));
    Words more = words;
    more.emplace_back("--json");
    EXPECT_EQ(json_of(shardscope(more))["bytes_per_element"], bytes);
  }
}

/// The parts of a line that two spaces or more set apart.
Words cells(const std::string& line) {
  Words parts;
  for (std::size_t at = line.find_first_not_of(' '); at < line.size();) {
    const std::size_t end = std::min(line.find("  ", at), line.size());
    parts.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(' ', end);
  }
  return parts;
}

/// Every heading of a column, and name of a row, is explained by `shardscope help WORD`; these say what they mean.
TEST(Words, OfHeadingsAreExplained) {
  const std::set<std::string> plain{"memory", "bytes", "difference", "a", "b", "predicted", "measured"};
  const ScratchDirectory scratch;
  const std::string trace = scratch.file("p.sst");
  const Words strategy{"simulate", "--model", "gpt2-nano", "--world-size", "2", "--stage", "3", "--precision", "bf16"};
  Words traced = strategy;
  traced.insert(traced.end(), {"--trace", trace});
  const std::string simulated = shardscope(traced).out;
  const std::string others =
      shardscope({"search", "--model", "gpt2-nano", "--min-chunk", "64Ki", "--max-chunk", "256Ki"}).out +
      shardscope({"compare", trace, trace}).out + shardscope({"inspect", trace}).out;
  std::set<std::string> headings;
  std::istringstream in(simulated + others);
  bool rows = false;
  for (std::string line; std::getline(in, line);) {
    const Words parts = cells(line);
    if (parts.empty()) {
      rows = false;
      continue;
    }
    for (const char* first : {"rule", "size", "rank", "stream", "op", "creation"})
      if (parts[0] == first && parts.size() > 1) headings.insert(parts.begin(), parts.end());
    if (parts[0] == "creation")
      rows = true;
    else if (rows && parts.size() > 3)
      headings.insert(parts[0]);
  }
  ASSERT_TRUE(headings.contains("reported waste") && headings.contains("peak (extent)") &&
              headings.contains("digest*") && headings.contains("gathered") && headings.contains("live peak"));
  for (std::string heading : headings) {
    for (const char* side : {"predicted ", "measured ", "a ", "b "})
      if (heading.starts_with(side)) heading.erase(0, std::string(side).size());
    if (heading.ends_with('*')) heading.pop_back();
    if (plain.contains(heading)) continue;
    EXPECT_EQ(shardscope({"help", heading}).exit_code, 0) << heading;
  }
}

TEST(Simulate, ALetterOfThePictureMeansOneThingInEveryStage) {
  std::map<std::string, std::string> letters;
  for (const char* stage : {"0", "1", "2", "3"})
    for (const char* precision : {"fp32", "bf16"}) {
      const Outcome outcome = shardscope(
          {"simulate", "--model", "gpt2-nano", "--world-size", "2", "--stage", stage, "--precision", precision});
      std::istringstream legend(outcome.out.substr(outcome.out.rfind("at the peak, ")));
      std::string line;
      for (std::getline(legend, line); std::getline(legend, line) && !line.empty();) {
        const std::string entry = line.substr(line.find_first_not_of(' '));
        const std::string name = entry.substr(2, entry.find(':') - 2);
        EXPECT_EQ(letters.emplace(name, entry.substr(0, 1)).first->second, entry.substr(0, 1)) << name;
      }
    }
  std::set<std::string> distinct;
  for (const auto& [name, letter] : letters) distinct.insert(letter);
  EXPECT_EQ(distinct.size(), letters.size());
  EXPECT_TRUE(letters.contains("gathered") && letters.contains("gradient") && letters.contains("master_parameter"));
}

TEST(Simulate, SaysSpeedWithoutExponents) {
  const Outcome outcome = shardscope({"simulate", "--model", "gpt2", "--world-size", "8", "--cluster", "h100-80gb-x8",
                                      "--micro-batch", "8", "--like", "shardscope"});
  EXPECT_THAT(outcome.out, ContainsRegex("\n[0-9]+,[0-9,]+ tokens/s, [0-9.]+ TFLOP/s per device\n"));
}

}  // namespace
}  // namespace shard::test
