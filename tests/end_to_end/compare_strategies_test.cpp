// Does `shardscope compare` of two strategies' files say what `simulate` says of each, the largest difference first?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

double apart(const json& quantity) {
  const double a = quantity["a"];
  const double b = quantity["b"];
  return std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

const json* quantity(const json& answer, const std::string& name) {
  for (const json& each : answer["quantities"])
    if (each["quantity"] == name) return &each;
  return nullptr;
}

TEST(CompareStrategies, SaysWhatSimulateSaysOfEach) {
  const ScratchDirectory scratch;
  const std::string a = scratch.write("a.conf", "stage = 0\nmodel = gpt2\nworld-size = 4\n");
  const std::string b =
      scratch.write("b.conf", "model = gpt2\n[simulate]\nstage = 3\nworld-size = 4\n[search]\nworld-size = 9\n");
  const Words shared{"--cluster", "a100-40gb-x8", "--sequence", "128", "--json"};
  Words words{"compare", a, b};
  words.insert(words.end(), shared.begin(), shared.end());
  const json compared = json_of(shardscope(words));
  EXPECT_EQ(compared["command"], "compare");
  EXPECT_EQ(compared["kind"], "strategies");
  EXPECT_EQ(compared["equal"], false);
  for (const auto& [side, file] : {std::pair{"a", a}, {"b", b}}) {
    Words alone{"simulate", "--config", file, "--like", "shardscope"};
    alone.insert(alone.end(), shared.begin(), shared.end());
    const json simulated = json_of(shardscope(alone));
    EXPECT_EQ(compared[side]["file"], file);
    EXPECT_EQ(compared[side]["plan_hash"], simulated["plan_hash"]);
    EXPECT_EQ(compared[side]["strategy"], simulated["strategy"]);
    EXPECT_EQ(compared[side]["fits"], simulated["fits"]);
    for (const char* key : {"peak_device_bytes", "step_seconds", "tokens_per_second"}) {
      ASSERT_NE(quantity(compared, key), nullptr) << key;
      EXPECT_EQ((*quantity(compared, key))[side], simulated[key]) << key;
    }
  }
  const json choices = compared["choices"];
  ASSERT_EQ(choices.size(), 1U) << choices;
  EXPECT_EQ(choices[0], (json{{"field", "stage"}, {"a_value", "0"}, {"b_value", "3"}}));
  for (std::size_t i = 1; i < compared["quantities"].size(); ++i)
    EXPECT_GE(apart(compared["quantities"][i - 1]), apart(compared["quantities"][i])) << i;
}

TEST(CompareStrategies, ShowsBothSideBySide) {
  const ScratchDirectory scratch;
  const std::string a = scratch.write("a.conf", "stage = 1\n");
  const std::string b = scratch.write("b.conf", "stage = 2\n");
  const Words words{"compare", a, b, "--model", "gpt2-nano", "--world-size", "2"};
  const Outcome shown = shardscope(words);
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("stage     1  2\n"));
  EXPECT_THAT(shown.out, HasSubstr("a fits, b fits\n"));
  EXPECT_THAT(shown.out, HasSubstr("device memory, peak"));
  Words checked = words;
  checked.push_back("--check");
  EXPECT_EQ(shardscope(checked).exit_code, 1);
  checked[2] = a;
  const Outcome same = shardscope(checked);
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("one strategy\n"));
}

/// Another tool's configuration is one, too.
TEST(CompareStrategies, TakesADeepSpeedConfiguration) {
  const ScratchDirectory scratch;
  const std::string a = scratch.write("ds_config.json", R"({"train_micro_batch_size_per_gpu": 2,
      "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}})");
  const std::string b = scratch.write("b.conf", "stage = 3\nprecision = bf16\nmicro-batch = 2\n");
  const json compared = json_of(shardscope({"compare", a, b, "--model", "gpt2", "--world-size", "4", "--json"}));
  EXPECT_EQ(compared["a"]["strategy"]["stage"], 2);
  EXPECT_EQ(compared["a"]["strategy"]["precision"], "bf16");
  EXPECT_EQ(compared["a"]["configurations"][0]["tool"], "DeepSpeed");
  EXPECT_EQ(compared["b"]["strategy"]["stage"], 3);
}

}  // namespace
}  // namespace shard::test
