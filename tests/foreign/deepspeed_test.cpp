// Does a DeepSpeed configuration become what DeepSpeed would make of it?
#include <gtest/gtest.h>

#include "tests/foreign/read_helpers.h"

namespace shard::foreign {
namespace {

Result<ForeignConfig> read_deepspeed(std::string content, const Options& options = {}) {
  return read_with("ds-config", std::move(content), options);
}

TEST(DeepSpeed, SettingsOfAUsualFile) {
  const auto config = read_deepspeed(R"({
    "train_batch_size": 32, "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "reduce_bucket_size": 5e8},
    "bf16": {"enabled": "true"}, "gradient_clipping": 1.0,
    "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "betas": [0.9, 0.95]}}})",
                                     {{"world-size", "4"}});
  EXPECT_EQ(settings_of(config),
            "beta1=0.9 beta2=0.95 clip-norm=1 global-batch=32 lr=1e-04 micro-batch=2 optimizer=adamw "
            "param-placement=host precision=bf16 reduce-scatter-bucket-size-mb=954 stage=3");
  EXPECT_EQ(fate_of(config, "/optimizer/params/betas"), "understood");
}

TEST(DeepSpeed, AutoIsWhatTheTrainerWouldFillIn) {
  const auto config = read_deepspeed(R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "fp16": {"enabled": "auto"},
    "bf16": {"enabled": "auto"}})");
  EXPECT_EQ(settings_of(config), "clip-norm=1? micro-batch=8?");
  EXPECT_TRUE(config && config->left_out.empty());
  const auto given = read_deepspeed(R"({"train_micro_batch_size_per_gpu": "auto"})", {{"micro-batch", "3"}});
  EXPECT_EQ(settings_of(given), "");
  EXPECT_EQ(fate_of(given, "/train_micro_batch_size_per_gpu"), "understood");
}

TEST(DeepSpeed, TheCommandLineWins) {
  const auto config = read_deepspeed(R"({"train_batch_size": 30, "train_micro_batch_size_per_gpu": 5,
    "gradient_accumulation_steps": 3})",
                                     {{"micro-batch", "1"}, {"world-size", "8"}});
  EXPECT_EQ(fate_of(config, "/train_micro_batch_size_per_gpu"), "overridden by --micro-batch 1");
  EXPECT_EQ(fate_of(config, "/train_batch_size"), "disagrees with 1 x 3 micro-steps x 8 ranks, which counts");
  EXPECT_EQ(settings_of(config), "global-batch=24");
}

TEST(DeepSpeed, PlaceholdersAndListsToTuneAreLeftOut) {
  const auto config = read_deepspeed(R"({"train_batch_size": "${BATCH}", "train_micro_batch_size_per_gpu": [1, 2, 4],
    "autotuning": {"enabled": true}, "zero_optimization": {"stage": 2, "reduce_bucket_size": [5e7, 5e8]}})");
  EXPECT_EQ(settings_of(config), "stage=2");
  EXPECT_EQ(fate_of(config, "/train_batch_size"), "a placeholder that a script fills in, not a value");
  EXPECT_EQ(fate_of(config, "/zero_optimization/reduce_bucket_size"),
            "values for DeepSpeed's autotuner to try: simulate predicts one at a time");
  // A list without the tuner is a mistake.
  EXPECT_FALSE(read_deepspeed(R"({"train_micro_batch_size_per_gpu": [1, 2, 4]})"));
}

TEST(DeepSpeed, UnknownKeysNameTheClosest) {
  const auto config =
      read_deepspeed(R"({"zero_optimization": {"stage": 3, "stage3_param_persitance_threshold": 1e5}})");
  EXPECT_EQ(fate_of(config, "/zero_optimization/stage3_param_persitance_threshold"),
            "not a key of DeepSpeed that Shardscope knows; did you mean 'stage3_param_persistence_threshold'?");
}

}  // namespace
}  // namespace shard::foreign
