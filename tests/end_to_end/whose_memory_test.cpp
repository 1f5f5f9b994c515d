// Whose run does a command line mean, and who answers where that framework's rules do not?
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>
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

TEST(WhoseMemory, KeysOfStage3AreTheOptionsOfTheirNames) {
  const ScratchDirectory scratch;
  const auto answer = [&](const std::string& key, const Words& options) {
    const std::string file =
        scratch.write("z3.json", R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 3, )" + key + "}}");
    Words words{"simulate", "--model", "gpt2", "--cluster", "h100-80gb-x8", "--world-size", "2", "--json"};
    words.insert(words.end(), {"--ds-config", file});
    words.insert(words.end(), options.begin(), options.end());
    return json_of(shardscope(words));
  };
  struct Key {
    std::string text, option, value;
    bool shows = true;  ///< of this model
  };
  const std::string no_size = R"("contiguous_gradients": true)";
  const json plain = answer(no_size, {});
  for (const Key& key :
       {Key{R"("stage3_param_persistence_threshold": 0)", "--stage3-param-persistence-threshold", "0"},
        Key{R"("param_persistence_threshold": "auto")", "--stage3-param-persistence-threshold", "7680", false},
        Key{R"("stage3_prefetch_bucket_size": "auto")", "--stage3-prefetch-bucket-size", "530841"},
        Key{R"("prefetch_bucket_size": 0)", "--stage3-prefetch-bucket-size", "0"},
        Key{R"("stage3_max_live_parameters": 1e4)", "--stage3-max-live-parameters", "10000"},
        Key{R"("stage3_max_reuse_distance": 0)", "--stage3-max-reuse-distance", "0", false},
        Key{R"("sub_group_size": 1e4)", "--sub-group-size", "10000"}}) {
    SCOPED_TRACE(key.text);
    const json said = answer(key.text, {});
    EXPECT_EQ(said["like"], "deepspeed@0.19");
    EXPECT_EQ(said["moments"], answer(no_size, {key.option, key.value})["moments"]);
    EXPECT_EQ(said["moments"] != plain["moments"], key.shows);
    EXPECT_TRUE(said["configurations"][0]["left_out"].empty());
  }
}

TEST(WhoseMemory, KeysOfStage3AreLeftOutOfOtherStages) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("z2.json", R"({"bf16": {"enabled": true},
                                         "zero_optimization": {"stage": 2, "stage3_max_live_parameters": 1e8}})");
  const json answer = json_of(shardscope(line({"--ds-config", file})));
  EXPECT_EQ(answer["configurations"][0]["left_out"][0]["key"], "/zero_optimization/stage3_max_live_parameters");
}

TEST(WhoseMemory, DeepSpeedsOffloadIsOfItsRules) {
  const ScratchDirectory scratch;
  const auto answer = [&](const std::string& zero) {
    const std::string file =
        scratch.write("offload.json", R"({"bf16": {"enabled": true}, "zero_optimization": {)" + zero + "}}");
    json of = json_of(shardscope(line({"--ds-config", file})));
    EXPECT_EQ(of["like"], "deepspeed@0.19");
    EXPECT_TRUE(of["configurations"][0]["left_out"].empty()) << of["configurations"][0]["left_out"];
    return of;
  };
  const json plain = answer(R"("stage": 2)");
  const json offloaded = answer(R"("stage": 2, "offload_optimizer": {"device": "cpu"})");
  const json pageable = answer(R"("stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": false})");
  const json pinned = answer(R"("stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": true})");
  EXPECT_LT(offloaded["peak_allocated_bytes"], plain["peak_allocated_bytes"]);
  EXPECT_GT(offloaded["peak_host_bytes"], plain["peak_host_bytes"]);
  EXPECT_EQ(offloaded["peak_pinned_bytes"], pinned["peak_pinned_bytes"]) << "DeepSpeed's default since 0.19.5";
  EXPECT_GT(pinned["peak_pinned_bytes"], pageable["peak_pinned_bytes"]);
  const json all = answer(R"("stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"})");
  const json optimizer = answer(R"("stage": 3, "offload_optimizer": {"device": "cpu"})");
  EXPECT_NE(all["moments"], optimizer["moments"]);
}

/// A host that is too small is told, also where the device is; and a lever that helps the one and not the other says
/// so.
TEST(WhoseMemory, BothMemoriesThatAreTooSmallAreTold) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("offload.json", R"({"bf16": {"enabled": true}, "zero_optimization":
    {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}})");
  Words words{"simulate",        "--model",    "llama-3.1-8b", "--ds-config",   file, "--world-size", "4", "--cluster",
              "rtx4090-24gb-x4", "--sequence", "4096",         "--micro-batch", "2"};
  const Outcome outcome = shardscope(words);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, HasSubstr(" device memory\ndoes not fit either: "));
  EXPECT_THAT(outcome.out, HasSubstr("GiB of 64.00 GiB host memory (4 ranks of a host)"));
  EXPECT_THAT(outcome.out, HasSubstr(", does not fit the host\n"));
  EXPECT_THAT(outcome.out, HasSubstr("no single option makes it fit"));
  words.insert(words.end(), {"--host-capacity", "1Ti", "--recompute", "block", "--device-capacity", "80Gi"});
  EXPECT_THAT(shardscope(words).out, HasSubstr(" device memory\nhost memory: "));
}

TEST(WhoseMemory, OffloadThatTheRulesLackIsNotLeftOutOfTheAnswer) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("offload.json", R"({"bf16": {"enabled": true},
                          "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}})");
  const json answer = json_of(shardscope(line({"--ds-config", file})));
  EXPECT_EQ(answer["assumed"]["memory_of"]["value"], "shardscope");
  EXPECT_EQ(answer["instead_of"]["framework"], "deepspeed@0.19");
  EXPECT_THAT(answer["instead_of"]["reason"].get<std::string>(), HasSubstr("disk"));
  EXPECT_EQ(answer["strategy"]["optimizer_placement"], "disk");
  EXPECT_GT(answer["peak_host_bytes"].get<std::int64_t>(), 0);
}

/// fsdp1 pins all that it offloads before the first step, fsdp2 gradients as they come.
TEST(WhoseMemory, OffloadOfAnFsdpConfigurationReachesItsRules) {
  const ScratchDirectory scratch;
  for (const char* version : {"1", "2"}) {
    const auto of = [&](const std::string& offload) {
      const std::string file =
          scratch.write("fsdp.yaml",
                        "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 2\nfsdp_config:\n"
                        "  fsdp_version: " +
                            std::string(version) + "\n  fsdp_offload_params: " + offload + "\n");
      return json_of(shardscope(line({"--accelerate-config", file})));
    };
    const json offloaded = of("true"), kept = of("false");
    EXPECT_THAT(offloaded["like"].get<std::string>(), testing::StartsWith("fsdp" + std::string(version)));
    EXPECT_TRUE(offloaded["instead_of"].is_null()) << offloaded["instead_of"];
    EXPECT_GT(offloaded["peak_pinned_bytes"].get<std::int64_t>(), 0);
    EXPECT_GT(offloaded["peak_host_bytes"].get<std::int64_t>(), 0);
    EXPECT_LT(offloaded["peak_allocated_bytes"], kept["peak_allocated_bytes"]);
    EXPECT_EQ(kept["peak_pinned_bytes"], 0);
  }
}

TEST(WhoseMemory, TheModelsCodeIsTheOneThatIsNamed) {
  const auto answer = [](const Words& more) {
    Words words{"simulate", "--model", "llama-3-8b", "--cluster", "h100-80gb-x8", "--world-size", "8",
                "--stage",  "3",       "--json",     "--like",    "fsdp2",        "--precision",  "bf16"};
    words.insert(words.end(), more.begin(), more.end());
    return json_of(shardscope(words));
  };
  const json titan = answer({"--model-code", "torchtitan", "--recompute", "block"});
  EXPECT_NE(titan["moments"], answer({"--recompute", "block"})["moments"]);
  EXPECT_NE(titan["moments"], answer({"--model-code", "torchtitan", "--recompute", "selective"})["moments"]);
  EXPECT_THAT(titan["moments"].dump(), HasSubstr("layers.*"));
  const Outcome refused = shardscope(line({"--like", "fsdp2", "--stage", "3", "--model-code", "torchtitan"}));
  EXPECT_EQ(refused.exit_code, 78);
  EXPECT_THAT(refused.err, HasSubstr("--model-code"));
}

TEST(WhoseMemory, AnOlderReleaseIsAskedForByItsVersion) {
  const json newest = json_of(shardscope(line({"--like", "fsdp2", "--stage", "3"})));
  const json older = json_of(shardscope(line({"--like", "fsdp2@2.8.0", "--stage", "3"})));
  EXPECT_EQ(newest["like"], "fsdp2@2.11");
  EXPECT_EQ(older["like"], "fsdp2@2.8");
  EXPECT_LT(older["peak_allocated_bytes"], newest["peak_allocated_bytes"]);
  const Outcome unknown = shardscope(line({"--like", "fsdp2@2.7"}));
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("fsdp2@2.11 (and 2.8 to 2.10)"));
  EXPECT_THAT(unknown.err, HasSubstr("deepspeed@0.19 (and 0.18.9)"));
}

/// The line of an answer, without the program's own name.
Words words_of(const json& line) {
  Words words;
  std::istringstream text(line.get<std::string>());
  for (std::string word; text >> word;) words.push_back(word);
  words.erase(words.begin());
  return words;
}

TEST(WhoseMemory, AnAnswerNamesTheDryRunThatCanBeRunAsItStands) {
  const ScratchDirectory scratch;
  const std::string ds = scratch.write("z2.json", R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}})");
  const struct {
    Words more;
    const char* says;
  } kAnswers[] = {{{"--stage", "3", "--micro-batch", "4"},
                   "--recipe fsdp2 --model gpt2-nano --sequence 256 --micro-batch 4 --precision fp32 --weights fp32"},
                  {{"--stage", "0", "--recompute", "block"},
                   "--recipe ddp --model gpt2-nano --sequence 256 --precision fp32 --recompute"},
                  {{"--ds-config", ds}, "--recipe hf-trainer --ds-config"}};
  for (const auto& each : kAnswers) {
    const json answer = json_of(shardscope(line(each.more)));
    EXPECT_THAT(answer["dry_run"].get<std::string>(), HasSubstr(each.says));
    const Outcome ran =
        shardscope(words_of(answer["dry_run"]), {.directory = scratch.path(), .environment = {{"PYTHONPATH", ""}}});
    EXPECT_EQ(ran.exit_code, 69) << "no PyTorch, which is all that is wrong: " << ran.err;
  }
}

TEST(WhoseMemory, NoRecipeIsNamedThatIsNotToldOfAnOption) {
  for (const Words& more : {Words{"--stage", "3", "--clip-norm", "1"}, Words{"--stage", "2", "--like", "fsdp2"},
                            Words{"--stage", "3", "--global-batch", "8"}})
    EXPECT_TRUE(json_of(shardscope(line(more)))["dry_run"].is_null()) << testing::PrintToString(more);
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
