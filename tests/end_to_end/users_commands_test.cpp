// Do the commands that five users typed answer for the run that each of them meant?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kZero2 =
    R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 2})";

/// As DeepSpeed's documents have it for ZeRO-Infinity.
constexpr const char* kZero3Nvme = R"({"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1,
  "zero_optimization": {"stage": 3,
    "offload_optimizer": {"device": "nvme", "nvme_path": "/local_nvme", "pin_memory": true, "buffer_count": 4},
    "offload_param": {"device": "nvme", "nvme_path": "/local_nvme", "pin_memory": true, "buffer_size": 1e8},
    "overlap_comm": true, "contiguous_gradients": true, "sub_group_size": 1e9, "reduce_bucket_size": 5e8,
    "stage3_prefetch_bucket_size": 5e8, "stage3_param_persistence_threshold": 1e6,
    "stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9},
  "aio": {"block_size": 1048576, "queue_depth": 8}, "gradient_clipping": 1.0})";

/// As accelerate config writes it.
constexpr const char* kFsdp2 = R"(compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_processes: 4
num_machines: 1
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_offload_params: false
)";

constexpr const char* kTutorialsImports =
    "from colossalai.gemini import ChunkManager, GeminiManager\nfrom colossalai.nn.parallel import ZeroDDP\n";
constexpr const char* kTutorial =
    "PLACEMENT_POLICY = 'cpu'\n"
    "chunk_size = ChunkManager.search_chunk_size(model, 64 * 1024**2, 32)\n"
    "chunk_manager = ChunkManager(chunk_size, pg, enable_distributed_storage=True,\n"
    "                             init_device=GeminiManager.get_default_device(PLACEMENT_POLICY))\n"
    "gemini_manager = GeminiManager(PLACEMENT_POLICY, chunk_manager)\n"
    "model = ZeroDDP(model, gemini_manager)\n";
constexpr const char* kInitChunkManager =
    "chunk_manager = init_chunk_manager(model=model, hidden_dim=1024, search_range_mb=64, min_chunk_size_mb=32)\n"
    "gemini_manager = GeminiManager('cuda', chunk_manager)\n"
    "model = ZeroDDP(model, gemini_manager)\n";

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// A llama of 8 billion parameters on four A100.
Words fine_tune(const Words& more) {
  return joined(
      {"simulate", "--model", "llama-3.1-8b", "--cluster", "a100-80gb-x4", "--world-size", "4", "--recompute", "block"},
      more);
}
Words at_4096(const Words& more) {
  return fine_tune(joined({"--sequence", "4096"}, more));
}
/// The same on eight cards of 24 GiB in a host of 64, and all that it can have on the host.
Words small_host(const Words& more) {
  return joined({"simulate", "--model", "llama-3.1-8b", "--cluster", "rtx4090-24gb-x8", "--world-size", "8",
                 "--sequence", "1024", "--recompute", "block", "--stage", "3"},
                more);
}
Words gemini(const std::string& file) {
  return {"simulate",     "--model", "gpt2-medium",         "--cluster", "a100-40gb-x8",
          "--world-size", "4",       "--colossalai-config", file};
}

json answer(const Words& words, int exit_code = 0) {
  return json_of(shardscope(joined(words, {"--json"})), exit_code);
}

std::string taken(const json& of, const char* what) {
  return of["assumed"][what]["value"].get<std::string>();
}

/// The first line of a text answer's verdict, and the next.
std::pair<std::string, std::string> verdict_lines(const Words& words) {
  const std::string out = "\n" + shardscope(words).out;
  for (const char* begin : {"\nfits: ", "\ntight: ", "\ndoes not fit: "})
    if (const std::size_t at = out.find(begin); at != std::string::npos) {
      const std::size_t next = out.find('\n', at + 1) + 1;
      return {out.substr(at + 1, next - at - 2), out.substr(next, out.find('\n', next) - next)};
    }
  return {out, ""};
}

TEST(UsersDeepSpeed, AStage2FileIsTheRunThatItsOptionsAreByHand) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("ds_z2.json", kZero2);
  const json hand =
      answer(at_4096({"--like", "deepspeed", "--stage", "2", "--precision", "bf16", "--micro-batch", "2"}));
  EXPECT_EQ(hand["verdict"], "fits");
  for (const Words& like : {Words{}, Words{"--like", "deepspeed"}}) {
    const json of = answer(at_4096(joined({"--ds-config", file}, like)));
    EXPECT_EQ(taken(of, "precision"), "bf16");
    EXPECT_EQ(of["like"], hand["like"]);
    EXPECT_EQ(of["moments"], hand["moments"]);
    EXPECT_EQ(of["verdict"], "fits");
  }
}

TEST(UsersDeepSpeed, OfAStage2FileWithLikeNothingIsLeftOut) {
  const ScratchDirectory scratch;
  const json of = answer(at_4096({"--ds-config", scratch.write("ds_z2.json", kZero2), "--like", "deepspeed"}));
  EXPECT_EQ(of["configurations"][0]["understood"],
            (json{"/bf16/enabled", "/zero_optimization/stage", "/train_micro_batch_size_per_gpu"}));
  EXPECT_TRUE(of["configurations"][0]["left_out"].empty());
}

TEST(UsersDeepSpeed, AnNvmeFileIsAnsweredForItsOffloadAndSaysForWhom) {
  const ScratchDirectory scratch;
  const json of = answer(at_4096({"--ds-config", scratch.write("ds_z3.json", kZero3Nvme)}));
  EXPECT_EQ(taken(of, "precision"), "bf16");
  EXPECT_EQ(taken(of, "memory_of"), "shardscope");
  EXPECT_EQ(of["strategy"]["optimizer_placement"], "disk");
  EXPECT_EQ(of["strategy"]["param_placement"], "host");
  EXPECT_GT(of["peak_disk_bytes"], 0);
  EXPECT_THAT(of["instead_of"]["framework"].get<std::string>(), StartsWith("deepspeed"));
  EXPECT_THAT(of["instead_of"]["reason"].get<std::string>(), HasSubstr("states on disk"));
}

TEST(UsersDeepSpeed, AnNvmeFileWithLikeIsRefusedForTheDiskAndNotForADirectoryThatItNames) {
  const ScratchDirectory scratch;
  const Outcome outcome =
      shardscope(at_4096({"--ds-config", scratch.write("ds_z3.json", kZero3Nvme), "--like", "deepspeed"}));
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.err, HasSubstr("states on disk"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("--disk-path")));
}

TEST(UsersAccelerate, AnFsdp2FileIsTheRunThatItsOptionsAreByHand) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("fsdp2.yaml", kFsdp2);
  const json hand = answer(at_4096({"--like", "fsdp2", "--stage", "3", "--precision", "bf16"}));
  for (const Words& like : {Words{}, Words{"--like", "fsdp2"}}) {
    const json of = answer(at_4096(joined({"--accelerate-config", file}, like)));
    EXPECT_EQ(of["assumed"]["precision"], (json{{"value", "bf16"}, {"origin", file + ":3"}}));
    EXPECT_EQ(of["like"], hand["like"]);
    EXPECT_EQ(of["moments"], hand["moments"]);
  }
}

/// The figure is of a dry run of PyTorch's own fully_shard.
TEST(UsersQuestion, ABareModelOnGpusTakesWhatADryRunOfPyTorchDoes) {
  EXPECT_EQ(answer(at_4096({"--stage", "3"}))["peak_allocated_bytes"], 40'174'671'360);
}

TEST(UsersQuestion, TheLargestMicroBatchIsPyTorchsWhereNobodyIsNamed) {
  const Words question = at_4096({"--stage", "3", "--find", "max-micro-batch"});
  const json bare = answer(question);
  EXPECT_THAT(bare["like"].get<std::string>(), StartsWith("fsdp2"));
  EXPECT_EQ(bare["found"], answer(joined(question, {"--like", "fsdp2"}))["found"]);
  EXPECT_GT(answer(joined(question, {"--like", "shardscope"}))["found"]["value"], bare["found"]["value"]);
}

TEST(UsersQuestion, TokensThatOnlyOurOwnExecutorHasRoomForDoNotFit) {
  const Words question = fine_tune({"--stage", "3", "--sequence", "32768"});
  const json bare = answer(question, 3);
  EXPECT_EQ(bare["verdict"], "does_not_fit");
  EXPECT_THAT(bare["like"].get<std::string>(), StartsWith("fsdp2"));
  EXPECT_EQ(answer(joined(question, {"--like", "shardscope"}))["peak_device_bytes"],
            bare["own_executor"]["peak_device_bytes"]);
}

TEST(UsersVerdict, HasThreeValuesByWhatLiesOutsideOfTheAllocator) {
  const Words run = at_4096({"--stage", "3"});
  const json free = answer(run);
  const auto peak = free["peak_device_bytes"].get<std::int64_t>();
  const auto low = free["outside_allocator_bytes"]["low"].get<std::int64_t>();
  const auto of = [&](std::int64_t capacity, int exit_code) {
    return answer(joined(run, {"--device-capacity", std::to_string(capacity)}), exit_code)["verdict"];
  };
  EXPECT_GT(low, 0);
  EXPECT_EQ(free["verdict"], "fits");
  EXPECT_EQ(of(peak + low, 0), "tight");
  EXPECT_EQ(of(peak / 2, 3), "does_not_fit");
}

TEST(UsersVerdict, WhatLeavesLessThanAContextIsNotCalledAFit) {
  const Words run = at_4096({"--stage", "3", "--like", "shardscope"});
  const auto peak = answer(run)["peak_device_bytes"].get<std::int64_t>();
  EXPECT_EQ(answer(joined(run, {"--device-capacity", std::to_string(peak + (156 << 20))}), 3)["verdict"],
            "does_not_fit");
}

TEST(UsersColossalAi, TheTutorialsCallsAreUnderstoodWithAndWithoutTheirImports) {
  const ScratchDirectory scratch;
  const json with = answer(gemini(scratch.write("with.py", std::string(kTutorialsImports) + kTutorial)));
  const json without = answer(gemini(scratch.write("without.py", kTutorial)));
  EXPECT_EQ(with["like"], "colossalai-gemini@0.1.9");
  EXPECT_THAT(with["configurations"][0]["understood"], Contains("/GeminiManager/placement_policy"));
  EXPECT_THAT(with["configurations"][0]["understood"], Contains("/ZeroDDP"));
  for (const char* same : {"like", "peak_device_bytes", "verdict"}) EXPECT_EQ(with[same], without[same]) << same;
}

TEST(UsersColossalAi, ThePlacementOfTheTutorialLowersThePeak) {
  const ScratchDirectory scratch;
  std::string cuda = kTutorial;
  cuda.replace(cuda.find("'cpu'"), 5, "'cuda'");
  EXPECT_LT(answer(gemini(scratch.write("cpu.py", kTutorial)))["peak_device_bytes"],
            answer(gemini(scratch.write("cuda.py", cuda)))["peak_device_bytes"]);
}

TEST(UsersColossalAi, InitChunkManagerNeedsNoImport) {
  const ScratchDirectory scratch;
  const json without = answer(gemini(scratch.write("without.py", kInitChunkManager)));
  const json with = answer(gemini(scratch.write(
      "with.py", std::string("from colossalai.gemini.chunk import init_chunk_manager\n") + kInitChunkManager)));
  EXPECT_EQ(without["like"], "colossalai-gemini@0.1.9");
  EXPECT_EQ(without["peak_device_bytes"], with["peak_device_bytes"]);
}

TEST(UsersColossalAi, AKeyThatIsLeftOutHasAReason) {
  const ScratchDirectory scratch;
  for (const char* program : {kTutorial, kInitChunkManager}) {
    const json of = answer(gemini(scratch.write("train.py", program)));
    for (const json& left : of["configurations"][0]["left_out"]) {
      EXPECT_THAT(left["key"].get<std::string>(), StartsWith("/"));
      EXPECT_THAT(left["reason"].get<std::string>(), Not(testing::IsEmpty()));
    }
  }
}

TEST(UsersColossalAi, AProgramWithNothingOfItIsRefused) {
  const ScratchDirectory scratch;
  EXPECT_EQ(shardscope(gemini(scratch.write("other.py", "x = 1\n"))).exit_code, 65);
}

/// What is wrong with a name or an option, and the one that was meant.
struct Wanted {
  Words words;
  std::string help;
};

TEST(UsersNames, AreMetWithTheOneThatWasMeantOrWhoAnswersInstead) {
  const std::string dry = "'shardscope dryrun -- python3 train.py' asks your own program";
  for (const auto& [words, help] : std::vector<Wanted>{
           {{"--model", "meta-llama/Llama-3.1-8B-Instruct"}, "--model llama-3.1-8b is known here"},
           {{"--model", "gpt2", "--cluster", "rtx4090"}, "did you mean 'rtx4090-24gb-x1'?"},
           {{"--model", "gpt2", "--pipeline-parallel", "2"}, "pipeline parallelism is not modelled: " + dry},
           {{"--model", "gpt2", "--context-parallel", "2"}, "context parallelism is not modelled: " + dry},
           {{"--model", "gpt2", "--lora", "8"}, "adapters (LoRA) are not modelled: " + dry},
           {{"--model", "gpt2", "--cluster", "A100"}, "did you mean 'a100-40gb-x8' or 'a100-80gb-x8'?"},
           {{"--model", "Qwen/Qwen2-1.5B"}, "a hub's name? Nothing is downloaded: give the config.json"},
           {{"--model", "gpt2", "--like", "FSDP2"}, "did you mean 'fsdp2'?"},
           {{"--model", "gpt2", "--like", "zero3"}, "'deepspeed' with '--stage 3'"},
           {{"--model", "gpt2", "--offload_optimizer_device", "cpu"}, "here it is '--optimizer-placement host'"},
           {{"--model", "gpt2", "--gradient-accumulation", "4"}, "here it is '--global-batch'"},
           {{"--model", "gpt2", "--min-chunk-size-mb", "4"}, "'shardscope search' has it: --min-chunk"}}) {
    const Outcome outcome = shardscope(joined({"simulate"}, words));
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.err, HasSubstr(help));
  }
  EXPECT_THAT(shardscope({"search", "--model", "gpt2", "--min-chunk-size-mb", "1"}).err, HasSubstr("'--min-chunk'"));
}

TEST(UsersNames, FlagsWithAYesAreFlags) {
  const json said = answer({"simulate", "--model", "gpt2", "--bf16", "true", "--gradient_checkpointing", "True"});
  EXPECT_EQ(taken(said, "precision"), "bf16");
  EXPECT_EQ(said["strategy"]["recompute"], "block");
}

TEST(UsersDefaults, WithoutAClusterTheMachineIsSaidToBeOurChoice) {
  const json of = answer({"simulate", "--model", "gpt2-medium"});
  EXPECT_EQ(of["assumed"]["cluster"], (json{{"value", "cpu-local"}, {"origin", "default"}}));
  EXPECT_EQ(of["assumed"]["memory_of"], (json{{"value", "shardscope"}, {"origin", "default"}}));
  EXPECT_TRUE(of["device_capacity_bytes"].is_null());
}

TEST(UsersDefaults, WithoutAClusterTheModelsOwnPrecisionIsNamed) {
  const json of = answer({"simulate", "--model", "llama-3.2-1b"});
  EXPECT_EQ(taken(of, "precision"), "fp32");
  EXPECT_EQ(of["assumed"]["precision"]["config_value"], "bf16");
}

TEST(UsersDefaults, OnAGpuTheModelIsPyTorchsInItsOwnPrecision) {
  const json of = answer({"simulate", "--model", "gpt2-medium", "--cluster", "a100-40gb-x8"});
  EXPECT_THAT(of["like"].get<std::string>(), StartsWith("pytorch"));
  EXPECT_EQ(taken(of, "precision"), "fp32");
  EXPECT_LT(of["own_executor"]["step_seconds"], 1);
  const json llama = answer({"simulate", "--model", "llama-3.2-1b", "--cluster", "a100-40gb-x8"});
  EXPECT_EQ(taken(llama, "precision"), "bf16");
  EXPECT_EQ(llama["assumed"]["sequence"]["value"], 4096);
}

TEST(UsersHost, OurOwnVerdictIsAboutTheHostThatIsTooSmallAndSaysWhoseLimitThatIs) {
  const auto [first, second] = verdict_lines(small_host({"--placement", "host", "--like", "shardscope"}));
  EXPECT_THAT(first, StartsWith("does not fit: "));
  EXPECT_THAT(first, HasSubstr("of 64.00 GiB host memory (8 ranks of a host)"));
  EXPECT_THAT(first, HasSubstr("description of rtx4090-24gb-x8 assumes: --host-capacity"));
  EXPECT_THAT(second, StartsWith("device memory: "));
}

class OffloadOf : public testing::TestWithParam<const char*> {};

TEST_P(OffloadOf, FitsOnlyWhereAHostHoldsAllItsRanks) {
  const Words run = small_host({"--placement", "host", "--like", GetParam()});
  const json large = answer(joined(run, {"--host-capacity", "1Ti"}));
  const auto all = large["peak_host_of_all_bytes"].get<std::int64_t>();
  EXPECT_EQ(large["verdict"], "fits");
  EXPECT_GE(all,
            8 * std::max(large["peak_host_bytes"].get<std::int64_t>(), large["peak_pinned_bytes"].get<std::int64_t>()));
  EXPECT_LE(all, 8 * (large["peak_host_bytes"].get<std::int64_t>() + large["peak_pinned_bytes"].get<std::int64_t>()));
  EXPECT_EQ(answer(joined(run, {"--host-capacity", std::to_string(all)}))["verdict"], "fits");
  const json small = answer(joined(run, {"--host-capacity", std::to_string(all - 1)}), 3);
  EXPECT_EQ(small["verdict"], "does_not_fit");
  EXPECT_EQ(small["fits"], false);
  EXPECT_THAT((std::vector<std::string>{"host", "pinned"}), Contains(small["peak_memory"].get<std::string>()));
  EXPECT_EQ(small["host_capacity_bytes"], all - 1);
  EXPECT_EQ(small["assumed"]["host_capacity_bytes"]["origin"], "command line");
}

TEST_P(OffloadOf, IsHeadlinedByTheHostOfTheDescription) {
  const Words run = small_host({"--placement", "host", "--like", GetParam()});
  const auto [first, second] = verdict_lines(run);
  EXPECT_THAT(first, StartsWith("does not fit: "));
  EXPECT_THAT(first, HasSubstr("of 64.00 GiB host memory (8 ranks of a host)"));
  EXPECT_THAT(first, HasSubstr("description of rtx4090-24gb-x8 assumes: --host-capacity"));
  EXPECT_THAT(second, StartsWith("device memory: "));
  EXPECT_EQ(answer(run, 3)["assumed"]["host_capacity_bytes"],
            (json{{"value", std::int64_t{64} << 30}, {"origin", "derived"}}));
}

TEST_P(OffloadOf, HasLeversOfTheHostsMemory) {
  const json of = answer(small_host({"--placement", "host", "--like", GetParam(), "--what-if"}), 3);
  ASSERT_FALSE(of["levers"].empty());
  for (const json& lever : of["levers"]) {
    EXPECT_EQ(lever["memory"], "host");
    EXPECT_EQ(lever["peak_bytes"].get<std::int64_t>() + lever["saved_bytes"].get<std::int64_t>(),
              of["peak_host_of_all_bytes"]);
  }
  EXPECT_EQ(of["levers"][0]["option"], "--placement device");
}

INSTANTIATE_TEST_SUITE_P(All, OffloadOf, testing::Values("fsdp1", "fsdp2", "deepspeed"));

TEST(UsersHost, WhatIfFindsHowAHostsMemorySuffices) {
  const json of = answer(small_host({"--placement", "host", "--like", "shardscope", "--what-if"}), 3);
  const auto lever = std::ranges::find_if(of["levers"], [](const json& each) {
    return each["option"] == "--param-placement host --grad-placement host --optimizer-placement disk --disk-path DIR";
  });
  ASSERT_NE(lever, of["levers"].end());
  EXPECT_EQ((*lever)["verdict"], "fits");
  const json moved = answer(small_host({"--like", "shardscope", "--param-placement", "host", "--grad-placement", "host",
                                        "--optimizer-placement", "disk", "--disk-path", "."}));
  EXPECT_EQ((*lever)["peak_bytes"], moved["peak_host_bytes"]);
}

TEST(UsersHost, ASweepsRowSaysThatTheHostIsTooSmall) {
  Words run = small_host({"--placement", "device,host", "--like", "fsdp2", "--json"});
  run[0] = "sweep";
  const json of = json_of(shardscope(run));
  const auto row = std::ranges::find_if(of["rows"], [](const json& r) { return r["status"] == "does_not_fit"; });
  ASSERT_NE(row, of["rows"].end());
  EXPECT_THAT((*row)["reason"].get<std::string>(), HasSubstr("host memory"));
}

TEST(UsersScripts, AnErrorIsAnObjectWhereJsonWasAskedFor) {
  const Outcome outcome = shardscope({"simulate", "--model", "absent-model", "--json"});
  const json error = json_of(outcome, outcome.exit_code)["error"];
  EXPECT_EQ(error["exit_code"], outcome.exit_code);
  EXPECT_FALSE(error["what"].get<std::string>().empty());
  EXPECT_THAT(outcome.err, HasSubstr(error["what"].get<std::string>()));
  EXPECT_THAT(outcome.err, HasSubstr(error["help"].get<std::string>()));
  // Of what is only text there is none.
  EXPECT_EQ(shardscope({"simulate", "--model", "absent-model"}).out, "");
  const Outcome usage = shardscope({"sweep", "--stage", "9,", "--format", "json"});
  EXPECT_EQ(json_of(usage, 2)["error"]["code"], "usage");
}

}  // namespace
}  // namespace shard::test
