// Is every malformed or contradictory configuration refused, with its exit code, and the key or line named?
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/foreign/read_helpers.h"

namespace shard::foreign {
namespace {

struct RefusalCase {
  std::string option;
  std::string content;
  int exit_code;
  std::string names;  ///< what the error must say
};

using RefusalCases = std::vector<RefusalCase>;

constexpr int kMalformed = 65;
constexpr int kContradiction = 78;

/// {"zero_optimization": {"stage": VALUE}} of "/zero_optimization/stage".
std::string json_with(const std::string& pointer, const std::string& value, const std::string& beside = "") {
  std::string open, close;
  for (std::size_t at = 1; at <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', at), pointer.size());
    open += "{\"" + pointer.substr(at, end - at) + "\": ";
    close += "}";
    at = end + 1;
  }
  return "{\"steps_per_print\": 10,\n" + beside + open.substr(1) + value + close;
}

/// The same in YAML.
std::string yaml_of(const std::string& type, const std::string& pointer, const std::string& value) {
  std::string text = "distributed_type: " + type + "\n";
  const std::size_t slash = pointer.find('/', 1);
  if (slash == std::string::npos) return text + pointer.substr(1) + ": " + value + "\n";
  return text + pointer.substr(1, slash - 1) + ":\n  " + pointer.substr(slash + 1) + ": " + value + "\n";
}

RefusalCases values_of_the_wrong_kind() {
  RefusalCases cases;
  const std::string zero = "/zero_optimization/";
  const std::vector<std::string> numbers{"/train_batch_size",
                                         "/train_micro_batch_size_per_gpu",
                                         "/gradient_accumulation_steps",
                                         "/gradient_clipping",
                                         "/gradient_predivide_factor",
                                         "/fp16/initial_scale_power",
                                         "/fp16/loss_scale_window",
                                         "/fp16/hysteresis",
                                         "/fp16/min_loss_scale",
                                         "/fp16/loss_scale",
                                         "/optimizer/params/lr",
                                         "/optimizer/params/eps",
                                         "/optimizer/params/weight_decay",
                                         "/scheduler/params/warmup_num_steps",
                                         "/scheduler/params/warmup_max_lr",
                                         "/tensor_parallel/autotp_size",
                                         zero + "reduce_bucket_size",
                                         zero + "stage3_prefetch_bucket_size",
                                         zero + "mics_shard_size"};
  for (const std::string& key : numbers)
    for (const char* value : {"\"many\"", "[1, 2]", "true", "\"12x\""})
      cases.push_back({"ds-config", json_with(key, value), kMalformed, key});
  const std::vector<std::string> flags{"/fp16/enabled", "/bf16/enabled", "/prescale_gradients", zero + "cpu_offload",
                                       "/optimizer/params/adam_w_mode"};
  for (const std::string& key : flags)
    for (const char* value : {"\"perhaps\"", "[true]", "0.5"})
      cases.push_back({"ds-config", json_with(key, value), kMalformed, key});
  const std::vector<std::string> words{"/optimizer/type", "/scheduler/type", zero + "offload_optimizer/device",
                                       zero + "offload_param/device"};
  for (const std::string& key : words)
    for (const char* value : {"5", "[\"cpu\"]", "true"})
      cases.push_back({"ds-config", json_with(key, value), kMalformed, key});
  for (const char* section : {"/fp16", "/bf16", "/optimizer", "/scheduler"})
    for (const char* value : {"true", "\"on\""})
      cases.push_back({"ds-config", json_with(section, value), kMalformed, section});
  for (const char* value : {"\"three\"", "true", "1.5"})
    cases.push_back({"ds-config", json_with(zero + "stage", value), kMalformed, zero + "stage"});
  for (const char* value : {"0.9", "[0.9]", "[\"a\", \"b\"]"})
    cases.push_back({"ds-config", json_with("/optimizer/params/betas", value), kMalformed, "betas"});
  return cases;
}

RefusalCases values_that_are_refused() {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"/zero_optimization/stage", "4"},
      {"/zero_optimization/stage", "-1"},
      {"/zero_optimization/stage", "\"17\""},
      {"/train_batch_size", "0"},
      {"/train_batch_size", "-8"},
      {"/train_batch_size", "9000000000000000000"},
      {"/train_micro_batch_size_per_gpu", "0"},
      {"/train_micro_batch_size_per_gpu", "\"-3\""},
      {"/gradient_accumulation_steps", "0"},
      {"/gradient_clipping", "-1.0"},
      {"/gradient_predivide_factor", "0"},
      {"/fp16/initial_scale_power", "-1"},
      {"/fp16/loss_scale", "-128"},
      {"/fp16/hysteresis", "-2"},
      {"/fp16/min_loss_scale", "-1"},
      {"/optimizer/params/lr", "-1e-4"},
      {"/optimizer/params/eps", "-1e-8"},
      {"/optimizer/params/betas", "[2, 0.9]"},
      {"/optimizer/params/betas", "[0.9, -1]"},
      {"/scheduler/params/warmup_num_steps", "-5"},
      {"/tensor_parallel/autotp_size", "-2"},
      {"/zero_optimization/reduce_bucket_size", "-5e8"},
      {"/zero_optimization/stage3_prefetch_bucket_size", "-1"},
      {"/zero_optimization/offload_optimizer/device", "\"tpu\""},
      {"/zero_optimization/offload_param/device", "\"disk\""},
  };
  RefusalCases cases;
  for (const auto& [key, value] : refused) cases.push_back({"ds-config", json_with(key, value), kContradiction, key});
  for (const char* key : {"/bf16/enabled", "/bfloat16/enabled"})
    cases.push_back({"ds-config", json_with(key, "true", "\"fp16\": {\"enabled\": true}, "), kContradiction, key});
  cases.push_back(
      {"ds-config", json_with("/fp16/loss_scale_window", "0", ""), kContradiction, "/fp16/loss_scale_window"});
  cases.back().content = R"({"fp16": {"enabled": true, "loss_scale_window": 0}})";
  return cases;
}

/// Three numbers whose whole is no multiple of the other two.
RefusalCases batches_that_agree_nowhere() {
  RefusalCases cases;
  for (int micro = 2; micro <= 9; ++micro)
    for (int steps = 1; steps <= 4; ++steps) {
      const int whole = micro * steps * 3 + 1;
      cases.push_back({"ds-config",
                       "{\"train_batch_size\": " + std::to_string(whole) + ", \"train_micro_batch_size_per_gpu\": " +
                           std::to_string(micro) + ", \"gradient_accumulation_steps\": " + std::to_string(steps) + "}",
                       kContradiction, "/train_batch_size"});
    }
  return cases;
}

RefusalCases grammar() {
  RefusalCases cases;
  const std::string good = "{\n  \"train_batch_size\": 8,\n  \"zero_optimization\": {\n    \"stage\": 3\n  }\n}\n";
  for (std::size_t cut = 22; cut < good.size() - 2; cut += 7)
    cases.push_back({"ds-config", good.substr(0, cut), kMalformed, "file:"});
  for (const char* text :
       {"{\"train_batch_size\": 8,,}", "{\"train_batch_size\": 8 /* eight\n}", "{train batch size: 8}",
        "{\"train_batch_size\": 08}", "{\"train_batch_size\": NaN}", "{\"train_batch_size\": 8}}",
        "{\"train_batch_size\": 8, \"train_batch_size\": 8}", "{\"zero_optimization\": [}", "[1, 2]",
        "{\"train_batch_size\" 8}", "{\"train_batch_size\": GBSIZE}", "{\"train_batch_size\": \"\x01\"}", "", "8",
        "{\"fp16\": {\"enabled\": true, \"enabled\": true}}"})
    cases.push_back({"ds-config", text, kMalformed, "file"});
  for (const char* text : {"distributed_type: [FSDP", "distributed_type: FSDP\n\tnum_processes: 2\n",
                           "distributed_type: *none\n", "distributed_type: {a: 1\n", "distributed_type: FSDP: 2\n",
                           "a: !!python/object:os.system x\n", "- FSDP\n- 8\n", "FSDP", "? [a]\n: b\n"})
    cases.push_back({"accelerate-config", text, kMalformed, "file"});
  return cases;
}

RefusalCases accelerate() {
  RefusalCases cases;
  struct Bad {
    const char *type, *key, *value;
    int code;
  };
  const Bad bad[] = {
      {"FSDP", "/num_processes", "0", kContradiction},
      {"FSDP", "/num_processes", "-4", kContradiction},
      {"FSDP", "/num_processes", "many", kMalformed},
      {"FSDP", "/num_processes", "[8]", kMalformed},
      {"FSDP", "/num_processes", "2.5", kMalformed},
      {"FSDP", "/mixed_precision", "fp7", kContradiction},
      {"FSDP", "/mixed_precision", "16", kMalformed},
      {"FSDP", "/mixed_precision", "[bf16]", kMalformed},
      {"FSDP", "/fsdp_config/fsdp_sharding_strategy", "HALF_SHARD", kContradiction},
      {"FSDP", "/fsdp_config/fsdp_sharding_strategy", "9", kContradiction},
      {"FSDP", "/fsdp_config/fsdp_sharding_strategy", "[FULL_SHARD]", kMalformed},
      {"FSDP", "/fsdp_config/fsdp_reshard_after_forward", "PERHAPS", kContradiction},
      {"FSDP", "/fsdp_config/fsdp_reshard_after_forward", "[true]", kMalformed},
      {"FSDP", "/fsdp_config/fsdp_offload_params", "maybe", kMalformed},
      {"FSDP", "/fsdp_config/fsdp_activation_checkpointing", "7", kMalformed},
      {"FSDP", "/fsdp_config/fsdp_auto_wrap_policy", "EVERY_WRAP", kContradiction},
      {"FSDP", "/fsdp_config/fsdp_auto_wrap_policy", "[NO_WRAP]", kMalformed},
      {"FSDP", "/fsdp_config/fsdp_backward_prefetch", "BACKWARD_NOW", kContradiction},
      {"FSDP", "/fsdp_config/fsdp_backward_prefetch", "[1]", kMalformed},
      {"FSDP", "/fsdp_config/fsdp_transformer_layer_cls_to_wrap", "5", kMalformed},
      {"FSDP", "/fsdp_config", "true", kMalformed},
      {"FSDP", "/parallelism_config/parallelism_config_tp_size", "two", kMalformed},
      {"DEEPSPEED", "/deepspeed_config", "file.json", kMalformed},
      {"DEEPSPEED", "/deepspeed_config/zero_stage", "5", kContradiction},
      {"DEEPSPEED", "/deepspeed_config/zero_stage", "three", kMalformed},
      {"DEEPSPEED", "/deepspeed_config/gradient_accumulation_steps", "0", kContradiction},
      {"DEEPSPEED", "/deepspeed_config/gradient_accumulation_steps", "some", kMalformed},
      {"DEEPSPEED", "/deepspeed_config/gradient_clipping", "-1", kContradiction},
      {"DEEPSPEED", "/deepspeed_config/gradient_clipping", "strong", kMalformed},
      {"DEEPSPEED", "/deepspeed_config/offload_optimizer_device", "tpu", kContradiction},
      {"DEEPSPEED", "/deepspeed_config/offload_optimizer_device", "1", kMalformed},
      {"DEEPSPEED", "/deepspeed_config/offload_param_device", "moon", kContradiction},
      {"DEEPSPEED", "/deepspeed_config/deepspeed_config_file", "7", kMalformed},
      {"MEGATRON_LM", "/megatron_lm_config/megatron_lm_tp_degree", "two", kMalformed},
      {"MEGATRON_LM", "/megatron_lm_config/megatron_lm_num_micro_batches", "0", kContradiction},
      {"MEGATRON_LM", "/megatron_lm_config/megatron_lm_recompute_activations", "some", kMalformed},
      {"[FSDP]", "/num_processes", "8", kMalformed},
  };
  for (const Bad& each : bad)
    cases.push_back({"accelerate-config", yaml_of(each.type, each.key, each.value), each.code,
                     each.type[0] == '[' ? "/distributed_type" : each.key});
  return cases;
}

RefusalCases files_of_other_tools() {
  const std::string llama = "model_name_or_path: x\nfinetuning_type: full\n";
  return {
      {"ds-config", "distributed_type: FSDP\n", kContradiction, "accelerate"},
      {"ds-config", "{\"distributed_type\": \"FSDP\"}", kContradiction, "accelerate"},
      {"ds-config", "{\"model_type\": \"gpt2\", \"n_embd\": 768}", kContradiction, "transformers"},
      {"ds-config", "{\"fsdp_transformer_layer_cls_to_wrap\": \"X\"}", kContradiction, "accelerate"},
      {"ds-config", llama, kContradiction, "LLaMA-Factory"},
      {"ds-config", "base_model: x\ndatasets: []\n", kContradiction, "axolotl"},
      {"accelerate-config", "{\"zero_optimization\": {\"stage\": 3}}", kContradiction, "DeepSpeed"},
      {"accelerate-config", "{\"model_type\": \"gpt2\", \"n_embd\": 768}", kContradiction, "transformers"},
      {"accelerate-config", llama, kContradiction, "LLaMA-Factory"},
      {"accelerate-config", "base_model: x\ndatasets: []\n", kContradiction, "axolotl"},
      {"accelerate-config", "model:\n  _component_: torchtune.models.llama2\n", kContradiction, "torchtune"},
      {"accelerate-config", "model_name_or_path: x\nbf16: true\n", kContradiction, "Trainer"},
      {"accelerate-config", "\"num-layers\": 12\n\"pipe-parallel-size\": 1\n", kContradiction, "GPT-NeoX"},
  };
}

TEST(Refusals, EveryOneHasItsCodeAndNamesItsKey) {
  std::size_t count = 0;
  for (const RefusalCases& cases : {values_of_the_wrong_kind(), values_that_are_refused(), batches_that_agree_nowhere(),
                                    grammar(), accelerate(), files_of_other_tools()})
    for (const RefusalCase& each : cases) {
      ++count;
      const auto config = read_with(each.option, each.content);
      ASSERT_FALSE(config) << each.content << "\nbecame " << settings_of(config);
      EXPECT_EQ(exit_code(config.error().code), each.exit_code) << each.content << "\n" << to_string(config.error());
      EXPECT_NE(to_string(config.error()).find(each.names), std::string::npos) << each.content << "\n"
                                                                               << to_string(config.error());
      EXPECT_FALSE(config.error().help.empty()) << each.content;
    }
  EXPECT_GE(count, 200u);
}

}  // namespace
}  // namespace shard::foreign
