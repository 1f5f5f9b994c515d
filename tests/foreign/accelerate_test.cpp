// Does a configuration of accelerate become what accelerate would start?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/foreign/read_helpers.h"

namespace shard::foreign {
namespace {

Result<ForeignConfig> read_accelerate(std::string content, const Options& options = {}) {
  return read_with("accelerate-config", std::move(content), options);
}

TEST(Accelerate, FsdpStrategies) {
  const auto settings = [](const std::string& strategy) {
    return settings_of(
        read_accelerate("distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\nmixed_precision: bf16\n"
                        "fsdp_config:\n  fsdp_sharding_strategy: " +
                        strategy + "\n"));
  };
  EXPECT_EQ(settings("FULL_SHARD"), "precision=bf16 prefetch=0? stage=3 world-size=16");
  EXPECT_EQ(settings("1"), "precision=bf16 prefetch=0? stage=3 world-size=16");
  EXPECT_EQ(settings("SHARD_GRAD_OP"), "keep-gathered=true precision=bf16 prefetch=0? stage=3 world-size=16");
  EXPECT_EQ(settings("NO_SHARD"), "precision=bf16 stage=0 world-size=16");
  EXPECT_EQ(settings("HYBRID_SHARD"), "precision=bf16 prefetch=0? shard-group=8 stage=3 world-size=16");
}

TEST(Accelerate, FsdpOptions) {
  EXPECT_EQ(
      settings_of(read_accelerate("distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n  fsdp_version: 2\n"
                                  "  fsdp_reshard_after_forward: false\n  fsdp_offload_params: true\n"
                                  "  fsdp_activation_checkpointing: 'true'\n  fsdp_backward_prefetch: BACKWARD_POST\n"
                                  "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n")),
      "grad-placement=host keep-gathered=true optimizer-placement=host param-placement=host "
      "recompute=block stage=3 unit=module world-size=2");
}

/// What backward gathers ahead.
TEST(Accelerate, PrefetchIsFsdp1s) {
  const auto prefetch = [](const std::string& section) {
    const auto config = read_accelerate("distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n" + section);
    const std::string settings = settings_of(config);
    const std::size_t at = settings.find("prefetch");
    return at == std::string::npos ? "" : settings.substr(at, settings.find(' ', at) - at);
  };
  EXPECT_EQ(prefetch("  fsdp_version: 1\n  fsdp_sharding_strategy: FULL_SHARD\n"), "prefetch=0?");
  EXPECT_EQ(prefetch("  fsdp_backward_prefetch: NO_PREFETCH\n"), "prefetch=0");
  EXPECT_EQ(prefetch("  fsdp_backward_prefetch: BACKWARD_PRE\n"), "prefetch=1");
  EXPECT_EQ(prefetch("  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n"), "");
  EXPECT_EQ(prefetch("  fsdp_version: 2\n  fsdp_backward_prefetch: NO_PREFETCH\n"), "");
}

/// Which release of accelerate runs, no file says.
TEST(Accelerate, UnitsThatLaterReleasesMakeUnderFsdp2AreSaid) {
  const auto said = [](const std::string& section, const char* key) {
    return fate_of(read_accelerate("distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n" + section), key);
  };
  EXPECT_THAT(said("  fsdp_version: 2\n", "/fsdp_config/fsdp_version"), testing::HasSubstr("--fsdp-units ends"));
  EXPECT_THAT(said("  fsdp_version: 1\n  fsdp_sharding_strategy: FULL_SHARD\n", "/fsdp_config/fsdp_version"),
              testing::Not(testing::HasSubstr("--fsdp-units")));
}

TEST(Accelerate, DeepSpeedBySection) {
  const auto config = read_accelerate(
      "distributed_type: DEEPSPEED\nmixed_precision: fp16\nnum_processes: 8\ndeepspeed_config:\n"
      "  gradient_accumulation_steps: 4\n  gradient_clipping: 1.0\n  offload_optimizer_device: cpu\n"
      "  offload_param_device: none\n  zero_stage: 2\nfsdp_config:\n  fsdp_offload_params: true\n");
  EXPECT_EQ(settings_of(config),
            "clip-norm=1 global-batch=32 grad-placement=host optimizer-placement=host precision=fp16 stage=2 "
            "world-size=8");
  EXPECT_EQ(fate_of(config, "/fsdp_config/fsdp_offload_params"),
            "accelerate reads it with distributed_type FSDP alone");
  EXPECT_EQ(settings_of(read_accelerate("distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config: {}\n")),
            "stage=2? world-size=8");
}

TEST(Accelerate, AnAbsentFileOfDeepSpeedIsLeftOut) {
  const auto config =
      read_accelerate("distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: no/such.json\n");
  EXPECT_EQ(fate_of(config, "/deepspeed_config/deepspeed_config_file"),
            "there is no such file here, so what it says is not known: --ds-config FILE");
}

TEST(Accelerate, AFileOfDeepSpeedThatCannotBeReadIsNotAbsent) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "shardscope_unreadable_test";
  std::filesystem::create_directories(folder / "ds.json");
  std::filesystem::create_symlink("loop.json", folder / "loop.json");
  std::ofstream(folder / "large.json") << std::string((1U << 20U) + 1, ' ');
  for (const auto& [name, code, why] : std::vector<std::tuple<std::string, Errc, std::string>>{
           {"ds.json", Errc::no_input, "it is a directory"},
           {"loop.json", Errc::no_input, "Too many levels of symbolic links"},
           {"large.json", Errc::malformed, "is larger than 1 MiB"}}) {
    const Text text =
        text_of((folder / "acc.yaml").string(),
                "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: " + name + "\n");
    const auto config = read_as(*tool_of_option("accelerate-config"), text, Given{});
    ASSERT_FALSE(config) << name;
    EXPECT_EQ(config.error().code, code) << name;
    EXPECT_EQ(config.error().where, (folder / name).string());
    EXPECT_NE(config.error().what.find(why), std::string::npos) << config.error().what;
    EXPECT_NE(config.error().what.find("acc.yaml names at /deepspeed_config/deepspeed_config_file"), std::string::npos)
        << config.error().what;
  }
  std::filesystem::remove_all(folder);
}

TEST(Accelerate, AFileOfDeepSpeedIsRead) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "shardscope_accelerate_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "ds.json") << R"({"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"},
    "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3, "steps_per_print": 1})";
  std::ofstream(folder / "acc.yaml") << "distributed_type: DEEPSPEED\nnum_processes: 4\nmixed_precision: bf16\n"
                                        "deepspeed_config:\n  deepspeed_config_file: ds.json\n  zero_stage: 1\n";
  const Result<Text> text = read_text(folder / "acc.yaml");
  ASSERT_TRUE(text);
  const auto config = read_as(*tool_of_option("accelerate-config"), *text, Given{});
  std::filesystem::remove_all(folder);
  EXPECT_EQ(settings_of(config), "global-batch=24 micro-batch=2 precision=bf16 stage=3 world-size=4");
  EXPECT_EQ(fate_of(config, "/deepspeed_config/zero_stage"), "accelerate ignores it beside deepspeed_config_file");
  EXPECT_EQ(fate_of(config, "/deepspeed_config/deepspeed_config_file/steps_per_print"),
            "what is logged changes neither memory nor time");
}

TEST(Accelerate, MegatronBySection) {
  EXPECT_EQ(settings_of(
                read_accelerate("distributed_type: MEGATRON_LM\nnum_processes: 8\nmixed_precision: bf16\n"
                                "megatron_lm_config:\n  megatron_lm_tp_degree: 2\n  megatron_lm_num_micro_batches: 2\n"
                                "  megatron_lm_recompute_activations: true\n"
                                "  megatron_lm_use_distributed_optimizer: true\n")),
            "global-batch=8 precision=bf16 recompute=selective stage=1 tensor-parallel=2 world-size=8");
}

TEST(Accelerate, OtherToolsFilesAreNamed) {
  const auto fault = [](const char* option, const char* content) { return settings_of(read_with(option, content)); };
  EXPECT_EQ(fault("accelerate-config", R"({"zero_optimization": {"stage": 1}})"),
            "file: this is a configuration of DeepSpeed\n  try: --ds-config file");
  EXPECT_EQ(fault("ds-config", "distributed_type: FSDP\n"),
            "file: this is a configuration of accelerate\n  try: --accelerate-config file");
  EXPECT_TRUE(fault("ds-config", "model_name_or_path: x\nfinetuning_type: full\n").find("LLaMA-Factory") !=
              std::string::npos);
}

}  // namespace
}  // namespace shard::foreign
