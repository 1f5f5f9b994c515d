// Whose run does a command line mean, and who answers where that framework's rules do not?
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Words line(Words more) {
  Words words{"simulate", "--model", "gpt2-nano", "--cluster", "h100-80gb-x8", "--world-size", "2", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(WhoseMemory, AConfigurationNamesItsFramework) {
  const ScratchDirectory scratch;
  const std::string file =
      scratch.write("z2.json", R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}})");
  const json answer = json_of(shardscope(line({"--ds-config", file})));
  EXPECT_EQ(answer["like"], "deepspeed@0.19");
  EXPECT_EQ(answer["assumed"]["memory_of"]["origin"], file);
  EXPECT_TRUE(answer["instead_of"].is_null());
}

TEST(WhoseMemory, OffloadThatTheRulesLackIsNotLeftOutOfTheAnswer) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("offload.json", R"({"bf16": {"enabled": true},
                          "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})");
  const json answer = json_of(shardscope(line({"--ds-config", file})));
  EXPECT_EQ(answer["assumed"]["memory_of"]["value"], "shardscope");
  EXPECT_EQ(answer["instead_of"]["framework"], "deepspeed@0.19");
  EXPECT_THAT(answer["instead_of"]["reason"].get<std::string>(), HasSubstr("placement host"));
  EXPECT_EQ(answer["strategy"]["optimizer_placement"], "host");
  EXPECT_GT(answer["peak_host_bytes"].get<std::int64_t>(), 0);
}

TEST(WhoseMemory, TensorParallelismThatTheRulesLackIsNotLeftOutEither) {
  const json answer = json_of(shardscope(line({"--stage", "3", "--tensor-parallel", "2"})));
  EXPECT_EQ(answer["assumed"]["memory_of"]["value"], "shardscope");
  EXPECT_EQ(answer["instead_of"]["framework"], "fsdp2@2.11");
}

TEST(WhoseMemory, ASearchSaysWhoAnsweredAsOneQuestionDoes) {
  const Words fsdp2 = line({"--stage", "3", "--find", "max-micro-batch", "--device-capacity", "4Gi"});
  const json found = json_of(shardscope(fsdp2));
  EXPECT_EQ(found["like"], "fsdp2@2.11");
  EXPECT_EQ(found["assumed"]["memory_of"]["origin"], "derived");
  EXPECT_GT(found["found"]["value"], 1);
  Words own = fsdp2;
  own.insert(own.end(), {"--unit", "tensor"});
  const json instead = json_of(shardscope(own));
  EXPECT_EQ(instead["assumed"]["memory_of"]["origin"], "derived");
  EXPECT_EQ(instead["instead_of"]["framework"], "fsdp2@2.11");
  EXPECT_GT(instead["found"]["value"], 1);
}

}  // namespace
}  // namespace shard::test
