// Is every row of a sweep what simulate says, are all combinations there, and are those that cannot be named?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <sstream>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// "--stage 3 --freeze 'a b'" as words.
Words words_of(const std::string& options) {
  const Outcome outcome = run({"/bin/bash", "-c", "printf '%s\\n' " + options});
  Words words;
  std::istringstream in(outcome.out);
  for (std::string word; std::getline(in, word);) words.push_back(word);
  return words;
}

/// The row's figures are those that simulate answers with.
void expect_row_is(const json& row, const json& simulated) {
  for (const char* key : {"fits",
                          "plan_hash",
                          "model",
                          "cluster",
                          "peak_device_bytes",
                          "live_peak_device_bytes",
                          "device_capacity_bytes",
                          "headroom_bytes",
                          "peak_host_bytes",
                          "peak_pinned_bytes",
                          "host_capacity_bytes",
                          "peak_disk_bytes",
                          "step_seconds",
                          "first_step_seconds",
                          "creation_seconds",
                          "run_seconds",
                          "tokens_per_second",
                          "tflops_per_device",
                          "compute_share",
                          "communication_share",
                          "exposed_communication_share"})
    EXPECT_EQ(row[key], simulated[key]) << key;
  for (const auto& [key, value] : simulated["strategy"].items())
    // A swept option's own value stands in place of a field of its name.
    if (!value.is_array() && key != "device_capacity_bytes" && key != "clip_norm") {
      EXPECT_EQ(row[key], value) << key;
    }
  // What simulate lists for every rank and phase.
  const json& largest = simulated["rank_classes"][0];
  for (const json& phase : largest["phases"]) {
    if (phase["phase"] != "steady_step") continue;
    std::int64_t sent = 0;
    for (const json& kind : phase["collectives"]) {
      EXPECT_EQ(row[kind["kind"].get<std::string>() + "_bytes"], kind["bytes"]);
      sent += kind["bytes"].get<std::int64_t>();
    }
    EXPECT_EQ(row["sent_bytes"], sent);
  }
  if (simulated["peak_memory"] == "device") {
    EXPECT_EQ(row["largest_holder"], simulated["largest_holders"][0]["name"]);
    EXPECT_EQ(row["largest_holder_bytes"], simulated["largest_holders"][0]["bytes"]);
  }
}

/// A value or a list of some of them, in a random order.
std::string some_of(Words values, std::mt19937& random, std::size_t most) {
  std::ranges::shuffle(values, random);
  values.resize(1 + random() % std::min(most, values.size()));
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
  return text;
}

TEST(Sweep, EveryRowIsWhatSimulateSaysOfItsOptions) {
  std::mt19937 random(11);
  const std::vector<std::pair<std::string, Words>> options{{"stage", {"0", "1", "2", "3"}},
                                                           {"unit", {"tensor", "bucket", "module", "chunk"}},
                                                           {"micro-batch", {"1", "2", "4"}},
                                                           {"world-size", {"1", "2", "4"}},
                                                           {"precision", {"fp32", "bf16", "fp16"}},
                                                           {"recompute", {"none", "block", "selective"}},
                                                           {"placement", {"device", "host"}},
                                                           {"cluster", {"cpu-local", "a100-40gb-x8"}},
                                                           {"prefetch", {"0", "1", "2"}},
                                                           {"steps", {"1", "3"}},
                                                           {"clip-norm", {"1.5", "2"}},
                                                           {"device-capacity", {"8Mi", "12Mi", "1Gi"}},
                                                           {"keep-gathered", {"true", "false"}}};
  int compared = 0;
  for (int round = 0; round < 12; ++round) {
    Words sweep{"sweep", "--model", "gpt2-nano", "--sequence", "64"};
    std::size_t product = 1;
    for (const auto& [option, values] : options) {
      if (random() % 3 == 0 || product > 24) continue;
      const std::string list = some_of(values, random, 3);
      product *= static_cast<std::size_t>(std::ranges::count(list, ',')) + 1;
      sweep.push_back("--" + option + "=" + list);
    }
    // --keep-gathered=true alone is a list, too, and no option of simulate's that has a value.
    Words fixed;
    for (std::size_t i = 1; i < sweep.size(); ++i)
      if (sweep[i] == "--keep-gathered=true")
        fixed.emplace_back("--keep-gathered");
      else if (sweep[i] == "--keep-gathered=false")
        fixed.emplace_back("--no-keep-gathered");
      else if (sweep[i].find(',') == std::string::npos)
        fixed.push_back(sweep[i]);
    const Outcome outcome = shardscope(with(sweep, {"--json"}));
    if (outcome.exit_code == 78) continue;
    const json swept = json_of(outcome, outcome.exit_code == 3 ? 3 : 0);
    ASSERT_EQ(swept["rows"].size(), product);
    for (std::size_t tries = 0; tries < 4; ++tries) {
      const json& row = swept["rows"][random() % product];
      const Words words = with(with({"simulate"}, fixed), words_of(row["options"]));
      const Outcome simulated = shardscope(with(words, {"--json"}));
      if (row["status"] == "contradiction") {
        EXPECT_EQ(simulated.exit_code, 78) << testing::PrintToString(words);
        EXPECT_THAT(simulated.err, HasSubstr(row["reason"].get<std::string>()));
        EXPECT_TRUE(row["fits"].is_null());
        EXPECT_TRUE(row["peak_device_bytes"].is_null());
        continue;
      }
      SCOPED_TRACE(testing::PrintToString(words));
      expect_row_is(row, json_of(simulated, row["fits"] ? 0 : 3));
      ++compared;
    }
  }
  EXPECT_GE(compared, 20);
}

TEST(Sweep, HasEveryCombinationOnceInOrder) {
  const json swept = json_of(shardscope({"sweep", "--model", "gpt2-nano", "--world-size", "2", "--stage", "3,1",
                                         "--micro-batch", "1,2,4", "--keep-gathered=false,true", "--json"}));
  EXPECT_EQ(swept["command"], "sweep");
  EXPECT_EQ(swept["row_count"], 12);
  ASSERT_EQ(swept["rows"].size(), 12U);
  EXPECT_EQ(swept["swept"][0], (json{{"option", "stage"}, {"values", {"3", "1"}}}));
  std::size_t i = 0;
  for (const int stage : {3, 1})
    for (const int batch : {1, 2, 4})
      for (const bool keep : {false, true}) {
        const json& row = swept["rows"][i++];
        EXPECT_EQ(row["row"], i);
        EXPECT_EQ(row["stage"], stage);
        EXPECT_EQ(row["micro_batch"], batch);
        EXPECT_EQ(row["keep_gathered"], keep);
        EXPECT_EQ(row["status"], keep && stage == 1 ? "contradiction" : "fits");
        EXPECT_EQ(row["options"], "--stage " + std::to_string(stage) + " --micro-batch " + std::to_string(batch) +
                                      (keep ? " --keep-gathered" : " --no-keep-gathered"));
      }
  EXPECT_EQ(swept["contradiction_count"], 3);
}

TEST(Sweep, TakesOneStrategyToo) {
  const json swept = json_of(shardscope({"sweep", "--model", "gpt2-nano", "--json"}));
  ASSERT_EQ(swept["rows"].size(), 1U);
  expect_row_is(swept["rows"][0], json_of(shardscope({"simulate", "--model", "gpt2-nano", "--json"})));
}

/// Results do not depend on which thread computed what.
TEST(Sweep, IsTheSameEveryTime) {
  const Words words{"sweep",   "--model",       "gpt2-nano",   "--world-size", "4",  "--stage",
                    "0,1,2,3", "--micro-batch", "1,2,3,4,5,6", "--format",     "csv"};
  const Outcome first = shardscope(words);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(shardscope(words).out, first.out);
}

/// RFC 4180.
std::vector<Words> csv_rows(const std::string& text) {
  std::vector<Words> rows(1, Words(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
      rows.back().back() += text[i++];
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && c == ',')
      rows.back().emplace_back();
    else if (!quoted && c == '\n')
      rows.emplace_back(1);
    else
      rows.back().back() += c;
  }
  EXPECT_EQ(rows.back(), Words(1)) << "the last line has no end";
  rows.pop_back();
  return rows;
}

TEST(Sweep, ItsCsvIsItsJson) {
  const Words words{"sweep",        "--model",   "gpt2-nano",
                    "--world-size", "2",         "--stage",
                    "0,3",          "--freeze",  "*.wte.*,*.wpe.*;transformer.h.0.*",
                    "--chunk-size", "64Ki,none", "--unit",
                    "chunk,module"};
  const json swept = json_of(shardscope(with(words, {"--json"})));
  const std::vector<Words> rows = csv_rows(shardscope(with(words, {"--format", "csv"})).out);
  ASSERT_EQ(rows.size(), swept["rows"].size() + 1);
  bool had_commas = false;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const json& row = swept["rows"][i - 1];
    ASSERT_EQ(rows[i].size(), row.size());
    for (std::size_t c = 0; c < rows[0].size(); ++c) {
      ASSERT_TRUE(row.contains(rows[0][c])) << rows[0][c];
      const json& value = row[rows[0][c]];
      const std::string& text = rows[i][c];
      had_commas = had_commas || text.find(',') != std::string::npos;
      const json read = value.is_string() ? json(text) : text.empty() ? json(nullptr) : json::parse(text);
      EXPECT_EQ(read, value) << rows[0][c];
    }
  }
  EXPECT_TRUE(had_commas);
}

TEST(Sweep, TheFrontIsWhatNoOtherThatFitsBeats) {
  const json swept = json_of(shardscope({"sweep", "--model", "gpt2-medium", "--world-size", "4", "--cluster",
                                         "a100-40gb-x8", "--stage", "0,1,2,3", "--micro-batch", "1,2,4,8,16",
                                         "--recompute", "none,block", "--device-capacity", "12Gi", "--json"}));
  const auto beats = [](const json& a, const json& b) {
    return a["peak_device_bytes"] <= b["peak_device_bytes"] && a["tokens_per_second"] >= b["tokens_per_second"] &&
           (a["peak_device_bytes"] < b["peak_device_bytes"] || a["tokens_per_second"] > b["tokens_per_second"]);
  };
  int on_front = 0;
  std::set<std::string> statuses;
  for (const json& row : swept["rows"]) {
    statuses.insert(row["status"]);
    const bool beaten = std::ranges::any_of(
        swept["rows"], [&](const json& other) { return other["fits"] == true && beats(other, row); });
    EXPECT_EQ(row["on_front"].get<bool>(), row["fits"] == true && !beaten) << row["options"];
    on_front += row["on_front"].get<bool>() ? 1 : 0;
  }
  EXPECT_THAT(statuses, ElementsAre("does_not_fit", "fits", "tight"));
  EXPECT_GE(on_front, 3);
  EXPECT_EQ(swept["front_count"], on_front);
}

TEST(Sweep, TheTableNamesReasonsAndIsSorted) {
  const Outcome outcome = shardscope({"sweep", "--model", "gpt2-nano", "--world-size", "2", "--device-capacity",
                                      "9Mi,1Gi", "--stage", "1,3", "--keep-gathered=true,false"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("model     gpt2-nano (given), 858,880 parameters\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\nmachine "))) << "the capacity is not the same in all rows";
  EXPECT_THAT(outcome.out, HasSubstr("8 strategies: "));
  EXPECT_THAT(outcome.out, HasSubstr("2 contradict themselves"));
  EXPECT_THAT(outcome.out, HasSubstr(" of 9.00 MiB device memory\n"));
  EXPECT_THAT(outcome.out, HasSubstr("contradiction [1]\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\n[1] "));
  EXPECT_LT(outcome.out.find("of 9.00 MiB"), outcome.out.find("contradiction [1]"));
  EXPECT_THAT(outcome.out, HasSubstr("\n*"));
  for (const char* heading : {"front", "sent", "peak", "largest"})
    EXPECT_EQ(shardscope({"help", heading}).exit_code, 0) << heading;
}

TEST(Sweep, ContradictionsAreRowsUnlessAllAre) {
  const Outcome all = shardscope({"sweep", "--model", "gpt2-nano", "--stage", "0,1", "--keep-gathered"});
  EXPECT_EQ(all.exit_code, 78);
  EXPECT_THAT(all.out, IsEmpty());
  EXPECT_THAT(all.err, HasSubstr("each of the 2 strategies contradicts itself; the first, --stage 0: --keep-gathered"));
  const Outcome one = shardscope({"sweep", "--model", "gpt2-nano", "--stage", "1", "--keep-gathered"});
  EXPECT_EQ(one.exit_code, 78);
  EXPECT_EQ(one.err, shardscope({"simulate", "--model", "gpt2-nano", "--stage", "1", "--keep-gathered"}).err);
  const json some =
      json_of(shardscope({"sweep", "--model", "gpt2-nano", "--stage", "1,3", "--keep-gathered", "--json"}));
  EXPECT_EQ(some["rows"][0]["status"], "contradiction");
  EXPECT_THAT(some["rows"][0]["reason"].get<std::string>(), HasSubstr("--stage 1 (command line)"));
}

TEST(Sweep, ExitsThreeWhereNothingFits) {
  const Outcome outcome =
      shardscope({"sweep", "--model", "gpt2-nano", "--stage", "0,3", "--device-capacity", "1Mi", "--json"});
  const json swept = json_of(outcome, 3);
  EXPECT_EQ(swept["fits_count"], 0);
  EXPECT_EQ(swept["does_not_fit_count"], 2);
  EXPECT_THAT(swept["rows"][0]["reason"].get<std::string>(), HasSubstr(" of 1.00 MiB device memory"));
}

TEST(Sweep, WrongValuesEndItBeforeAnythingRuns) {
  const Words model{"sweep", "--model", "gpt2-nano"};
  const std::vector<std::tuple<Words, int, std::string>> cases{
      {{"--stage", "0,4"}, 2, "--stage"},
      {{"--stage", "0,,1"}, 2, "--stage"},
      {{"--unit", "module,chnk"}, 2, "did you mean 'chunk'?"},
      {{"--stage", "0,1", "--stage", "2"}, 2, "given twice"},
      {{"--freeze", "a;b", "--freeze", "c;d"}, 2, "--freeze holds two lists"},
      {{"--format", "csv,json"}, 2, "--format"},
      {{"--picture", "a.png"}, 2, "--picture FILE.svg"},
      {{"--cluster", "cpu-local,nosuch"}, 2, "nosuch"},
      {{"--chunk-size", "1,x", "--unit", "chunk"}, 2, "--chunk-size"},
      {{"--like", "pytorch@9"}, 2, "pytorch"},
      {{"--trace", "a.sst"}, 2, "--trace"}};
  for (const auto& [words, exit_code, message] : cases) {
    const Outcome outcome = shardscope(with(model, words));
    EXPECT_EQ(outcome.exit_code, exit_code) << testing::PrintToString(words) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  std::string many = "1";
  for (int i = 2; i <= 400; ++i) many += "," + std::to_string(i);
  const Outcome outcome = shardscope(with(model, {"--micro-batch", many, "--global-batch", many}));
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.err, HasSubstr("400 of --micro-batch x 400 of --global-batch are more than 100,000 strategies"));
  const Outcome absent = shardscope({"sweep", "--model", "gpt2-nano,nosuch.json"});
  EXPECT_EQ(absent.exit_code, 66);
  EXPECT_THAT(absent.err, HasSubstr("nosuch.json"));
}

TEST(Sweep, TakesFilesOfOptionsAndOfOtherTools) {
  const ScratchDirectory scratch;
  const std::string own = scratch.write("own.conf", "stage = 0,1\n[sweep]\nmicro-batch = 1,2\n");
  const json swept = json_of(shardscope({"sweep", "--model", "gpt2-nano", "--config", own, "--json"}));
  EXPECT_EQ(swept["rows"].size(), 4U);
  EXPECT_EQ(swept["rows"][3]["micro_batch"], 2);
  const std::string foreign =
      scratch.write("ds.json", R"({"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 2})");
  const json rows = json_of(shardscope({"sweep", "--model", "gpt2-nano", "--world-size", "2", "--config", foreign,
                                        "--recompute", "none,block", "--json"}));
  ASSERT_EQ(rows["rows"].size(), 2U);
  EXPECT_EQ(rows["rows"][1]["stage"], 2);
  EXPECT_EQ(rows["rows"][1]["micro_batch"], 2);
  EXPECT_EQ(rows["rows"][1]["recompute"], "block");
  EXPECT_EQ(rows["configurations"][0]["tool"], "DeepSpeed");
}

TEST(Sweep, PredictsOtherFrameworksToo) {
  const json eager = json_of(shardscope({"sweep", "--model", "gpt2-nano", "--like", "pytorch@2.11", "--micro-batch",
                                         "1,2", "--cluster", "a100-40gb-x8", "--json"}));
  const json simulated = json_of(shardscope({"simulate", "--model", "gpt2-nano", "--like", "pytorch@2.11",
                                             "--micro-batch", "2", "--cluster", "a100-40gb-x8", "--json"}));
  EXPECT_EQ(eager["rows"][1]["peak_device_bytes"], simulated["peak_device_bytes"]);
  EXPECT_EQ(eager["rows"][1]["largest_holder"], simulated["largest_holders"][0]["name"]);
  EXPECT_TRUE(eager["rows"][1]["step_seconds"].is_null());
  const json gemini = json_of(shardscope({"sweep", "--model", "gpt2-nano", "--like", "colossalai-gemini",
                                          "--world-size", "2,4", "--chunk-size", "64Ki", "--json"}));
  const json chunks = json_of(shardscope({"simulate", "--model", "gpt2-nano", "--like", "colossalai-gemini",
                                          "--world-size", "4", "--chunk-size", "64Ki", "--json"}));
  EXPECT_EQ(gemini["rows"][1]["peak_device_bytes"], chunks["peak_device_bytes"]);
  EXPECT_EQ(gemini["rows"][1]["all_gather_bytes"], chunks["iters"].back()["ag_bytes_full"]);
}

TEST(Sweep, DrawsAPointForEveryStrategyThatIsTimed) {
  const ScratchDirectory scratch;
  const std::string file = scratch.file("sweep.svg");
  const std::string model = scratch.write(
      "a<b&c.json",
      R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "n_positions": 64, "vocab_size": 256})");
  const json swept =
      json_of(shardscope({"sweep", "--model", model, "--world-size", "2", "--stage", "0,1,3", "--micro-batch", "1,2,8",
                          "--device-capacity", "4Mi", "--keep-gathered=false,true", "--picture", file, "--json"}));
  const std::string svg = read_file(file);
  const auto count = [&](const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++found;
    return found;
  };
  std::map<std::string, std::size_t> statuses;
  for (const json& row : swept["rows"]) ++statuses[row["on_front"] ? "on_front" : row["status"].get<std::string>()];
  for (const char* status : {"on_front", "fits", "does_not_fit"})
    EXPECT_EQ(count("<circle class=\"" + std::string(status) + "\""), statuses[status]) << status;
  EXPECT_GT(statuses["contradiction"], 0U);
  EXPECT_EQ(count("<path class=\"front\""), 1U);
  EXPECT_EQ(count("a<b"), 0U);
  EXPECT_GE(count("a&lt;b&amp;c.json"), 1U);
  EXPECT_EQ(count("nan"), 0U);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

/// Two points in twice the capacity, and one so far beyond that the others would be one.
TEST(Sweep, WhatIsFarTooLargeStandsAtThePicturesEdge) {
  const ScratchDirectory scratch;
  const std::string file = scratch.file("sweep.svg");
  const json swept = json_of(shardscope({"sweep", "--model", "gpt2-nano", "--micro-batch", "1,2,64",
                                         "--device-capacity", "32Mi", "--picture", file, "--json"}));
  EXPECT_GT(swept["rows"][2]["peak_device_bytes"], 2 * (32 << 20));
  const std::string svg = read_file(file);
  EXPECT_THAT(svg, HasSubstr("; at the right edge: more than fits here"));
  EXPECT_THAT(svg, HasSubstr(">60.00 MiB</text>"));
  EXPECT_THAT(svg, testing::Not(HasSubstr(">100.00 MiB</text>")));
}

/// An all-reduce sends what a reduce-scatter and an all-gather of its buffer do.
TEST(Sweep, SaysThatStagesSendWhatTheyHaveOnTheWire) {
  const Words sweep{"sweep",      "--model",     "gpt2", "--cluster", "a100-40gb-x8", "--world-size",  "4", "--like",
                    "shardscope", "--precision", "bf16", "--stage",   "0,1",          "--micro-batch", "8"};
  Words markdown = sweep;
  markdown.insert(markdown.end(), {"--format", "markdown"});
  std::istringstream in(shardscope(markdown).out);
  std::set<std::string> sent;
  std::size_t column = 0;
  int rows = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('|') || line.find("--") != std::string::npos) continue;
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, '|');) cells.push_back(cell);
    if (column == 0) {
      while (column < cells.size() && cells[column].find("sent") == std::string::npos) ++column;
      continue;
    }
    ASSERT_LT(column, cells.size()) << line;
    sent.insert(cells[column].substr(0, cells[column].find_last_not_of(' ') + 1));
    ++rows;
  }
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(sent.size(), 1U) << *sent.begin();
}

}  // namespace
}  // namespace shard::test
