// Is every malformed or contradictory configuration refused with its exit code and the name of the key, before anything
// is allocated? Generated over every reader: what each value of a file may not be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "tests/daily.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// A file that is refused.
struct Refused {
  std::string what;    ///< names the case
  std::string option;  ///< by which the file is given
  std::string file;
  std::string text;
  int exit_code = 0;
  std::string key{};  ///< the error names it
  bool needs_model = true;
};

/// A text in which one part is another.
struct Change {
  const char* from;
  const char* to;
  int exit_code;
  const char* key;
};

constexpr int kMalformed = 65;
constexpr int kContradiction = 78;
constexpr int kUsage = 2;

void add_changes(std::vector<Refused>& all, const Refused& base, const std::vector<Change>& changes) {
  for (const Change& each : changes) {
    Refused one = base;
    const std::size_t at = one.text.find(each.from);
    ASSERT_NE(at, std::string::npos) << each.from;
    one.text.replace(at, std::string(each.from).size(), each.to);
    one.what = base.file + ": " + each.to;
    one.exit_code = each.exit_code;
    one.key = each.key;
    all.push_back(one);
  }
}

/// Values at JSON pointers of a document, each with its exit code.
struct Values {
  const char* pointer;
  std::vector<json> malformed;
  std::vector<json> contradictory;
};

void add_values(std::vector<Refused>& all, const Refused& base, const std::vector<Values>& table) {
  const json document = json::parse(base.text);
  for (const Values& each : table) {
    const std::string pointer = each.pointer;
    const auto add = [&](const json& value, int exit_code) {
      json changed = document;
      if (pointer.starts_with("/fp16/")) changed.erase("bf16");
      if (pointer.starts_with("/fp16/")) changed["fp16"]["enabled"] = true;
      changed[json::json_pointer(pointer)] = value;
      Refused one = base;
      one.text = changed.dump(1);
      one.what = base.file + ": " + pointer + " = " + value.dump();
      one.exit_code = exit_code;
      one.key = pointer;
      all.push_back(one);
    };
    for (const json& value : each.malformed) add(value, kMalformed);
    for (const json& value : each.contradictory) add(value, kContradiction);
  }
}

const json kList = json::array({1});
const json kObject = json::object();

/// DeepSpeed's JSON.
void add_deepspeed(std::vector<Refused>& all) {
  const Refused base{.what = "",
                     .option = "--ds-config",
                     .file = "ds_config.json",
                     .text = R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2},
                       "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}})"};
  add_values(all, base,
             {{"/train_batch_size", {"many", 1.5, kList, kObject}, {-1, 0}},
              {"/train_micro_batch_size_per_gpu", {"x", 2.5, kList, kObject}, {0, -2}},
              {"/gradient_accumulation_steps", {"x", kList, kObject}, {0, -1}},
              {"/zero_optimization/stage", {"three", 1.5}, {4, -1}},
              {"/zero_optimization/reduce_bucket_size", {"big", kList, kObject}, {-1}},
              {"/zero_optimization/offload_optimizer/device", {3, kList}, {}},
              {"/bf16/enabled", {7, "maybe", kList, kObject}, {}},
              {"/fp16/enabled", {3, "maybe", kList}, {}},
              {"/fp16/initial_scale_power", {"x", kList}, {-1}},
              {"/fp16/hysteresis", {"x", kList}, {}},
              {"/gradient_clipping", {"x", kList}, {-1}},
              {"/optimizer/type", {3, kList, kObject}, {}},
              {"/optimizer/params/lr", {"fast", kList}, {-1}},
              {"/optimizer/params/betas", {"x", json::array({0.9}), 3}, {}}});
  add_changes(all, base,
              {{"\"bf16\"", "\"fp16\": {\"enabled\": true}, \"bf16\"", kContradiction, "/bf16/enabled"},
               {"\"stage\": 2", "\"stage\": 2, \"stage\": 3", kMalformed, "stage"}});
}

/// A model's config.json.
void add_models(std::vector<Refused>& all) {
  const Refused base{.what = "",
                     .option = "--model",
                     .file = "config.json",
                     .text = R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
                       "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000})",
                     .needs_model = false};
  std::vector<Values> table;
  for (const char* key :
       {"/hidden_size", "/intermediate_size", "/num_hidden_layers", "/num_attention_heads", "/vocab_size"})
    table.push_back({key, {0, -1, "x", kList, 1.5}, {}});
  table.push_back({"/num_key_value_heads", {"x"}, {3}});
  table.push_back({"/max_position_embeddings", {-5, "x"}, {}});
  table.push_back({"/rms_norm_eps", {"x", 0}, {}});
  table.push_back({"/tie_word_embeddings", {3, "x"}, {}});
  table.push_back({"/hidden_act", {}, {"relu9"}});
  table.push_back({"/model_type", {}, {"llamma"}});
  add_values(all, base, table);
}

/// A machine's description: every key that the H100's has.
void add_clusters(std::vector<Refused>& all) {
  Refused base{.what = "", .option = "--cluster", .file = "cluster.json", .text = ""};
  base.text = read_file(std::filesystem::path(TEST_DATA).parent_path() / "examples/clusters/h100-80gb-x8.json");
  const json document = json::parse(base.text);
  std::vector<std::string> pointers;
  for (const auto& [key, value] : document.items())
    if (key != "name" && key != "source") pointers.push_back("/" + key);
  std::vector<Values> table;
  for (const std::string& pointer : pointers) table.push_back({pointer.c_str(), {"x", -1, json::array()}, {}});
  add_values(all, base, table);
  for (const char* key : {"devices_per_host", "device", "memory_bandwidth_bytes_per_second",
                          "peak_fp32_flops_per_second", "launch_seconds", "schema_version"}) {
    json changed = document;
    changed.erase(key);
    Refused one = base;
    one.what = std::string("cluster.json without ") + key;
    one.text = changed.dump();
    one.exit_code = kMalformed;
    one.key = key;
    all.push_back(one);
  }
}

/// accelerate's YAML, torchtitan's TOML.
void add_yaml_and_toml(std::vector<Refused>& all) {
  add_changes(all,
              {.what = "",
               .option = "--accelerate-config",
               .file = "fsdp.yaml",
               .text = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n"
                       "num_processes: 4\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"
                       "  fsdp_offload_params: false\n"},
              {{"processes: 4", "processes: many", kMalformed, "/num_processes"},
               {"processes: 4", "processes: [4]", kMalformed, "/num_processes"},
               {"processes: 4", "processes: 2.5", kMalformed, "/num_processes"},
               {"processes: 4", "processes: 0", kContradiction, "/num_processes"},
               {"processes: 4", "processes: -1", kContradiction, "/num_processes"},
               {"bf16", "bf17", kContradiction, "/mixed_precision"},
               {"bf16", "[1]", kMalformed, "/mixed_precision"},
               {"FULL_SHARD", "HALF_SHARD", kContradiction, "/fsdp_config/fsdp_sharding_strategy"},
               {"FULL_SHARD", "[]", kMalformed, "/fsdp_config/fsdp_sharding_strategy"},
               {"params: false", "params: maybe", kMalformed, "/fsdp_config/fsdp_offload_params"},
               {"params: false", "params: [1]", kMalformed, "/fsdp_config/fsdp_offload_params"},
               {"type: FSDP", "type: [", kMalformed, "fsdp.yaml:4"},
               {"  fsdp_sharding", "\tfsdp_sharding", kMalformed, "fsdp.yaml:6"}});
  add_changes(all,
              {.what = "",
               .option = "--torchtitan-config",
               .file = "run.toml",
               .text = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\n"
                       "seq_len = 2048\n[parallelism]\ndata_parallel_shard_degree = 4\n"
                       "tensor_parallel_degree = 1\n[activation_checkpoint]\nmode = \"full\"\n"
                       "[optimizer]\nname = \"AdamW\"\nlr = 3e-4\n"},
              {{"local_batch_size = 1", "local_batch_size = 0", kContradiction, "/training/local_batch_size"},
               {"local_batch_size = 1", "local_batch_size = 'x'", kMalformed, "/training/local_batch_size"},
               {"local_batch_size = 1", "local_batch_size = [1]", kMalformed, "/training/local_batch_size"},
               {"local_batch_size = 1", "local_batch_size = 1.5", kMalformed, "/training/local_batch_size"},
               {"seq_len = 2048", "seq_len = -1", kContradiction, "/training/seq_len"},
               {"seq_len = 2048", "seq_len = 'long'", kMalformed, "/training/seq_len"},
               {"seq_len = 2048", "seq_len = 2048\nseq_len = 1", kMalformed, "seq_len"},
               {"seq_len = 2048", "seq_len = ", kMalformed, "run.toml:6"},
               {"seq_len = 2048", "seq_len 2048", kMalformed, "run.toml:6"},
               {"[training]", "[training", kMalformed, "run.toml:4"},
               {"shard_degree = 4", "shard_degree = 0", kContradiction, "/parallelism/data_parallel_shard_degree"},
               {"shard_degree = 4", "shard_degree = 'x'", kMalformed, "/parallelism/data_parallel_shard_degree"},
               {"parallel_degree = 1", "parallel_degree = 0", kContradiction, "/parallelism/tensor_parallel_degree"},
               {"parallel_degree = 1", "parallel_degree = true", kMalformed, "/parallelism/tensor_parallel_degree"},
               {"tensor_parallel_degree = 1", "pipeline_parallel_degree = 2", kContradiction,
                "/parallelism/pipeline_parallel_degree"},
               {"\"full\"", "\"fuller\"", kContradiction, "/activation_checkpoint/mode"},
               {"\"full\"", "3", kMalformed, "/activation_checkpoint/mode"},
               {"lr = 3e-4", "lr = 'x'", kMalformed, "/optimizer/lr"},
               {"lr = 3e-4", "lr = -1", kContradiction, "/optimizer/lr"}});
}

/// Colossal-AI's Python, Megatron's arguments in a launch script.
void add_python_and_shell(std::vector<Refused>& all) {
  Refused python{.what = "", .option = "--colossalai-config", .file = "zero_config.py", .text = ""};
  python.text = read_file(std::filesystem::path(TEST_DATA).parent_path() / "examples/07_gpt2_medium/zero_config.py");
  add_changes(all, python,
              {{"\"cuda\"", "3", kMalformed, "/tensor_placement_policy"},
               {"size_mb=25", "size_mb='x'", kMalformed, "/reduce_scatter_bucket_size_mb"},
               {"scatter=False", "scatter='x'", kMalformed, "/fp32_reduce_scatter"},
               {"scatter=False", "scatter=3", kMalformed, "/fp32_reduce_scatter"},
               {"factor=1.0", "factor=0", kContradiction, "/gradient_predivide_factor"},
               {"factor=1.0", "factor='x'", kMalformed, "/gradient_predivide_factor"},
               {"shard=False", "shard='x'", kMalformed, "/reuse_fp16_shard"},
               {"2**5", "2**", kMalformed, "zero_config.py:15"},
               {"2**5", "-1", kContradiction, "/initial_scale"},
               {"2**5", "'x'", kMalformed, "/initial_scale"},
               {"min_scale=1", "min_scale='x'", kMalformed, "/min_scale"},
               {"growth_factor=2", "growth_factor=0.5", kContradiction, "/growth_factor"},
               {"growth_factor=2", "growth_factor='x'", kMalformed, "/growth_factor"},
               {"backoff_factor=0.5", "backoff_factor=2", kContradiction, "/backoff_factor"},
               {"interval=1000", "interval=0", kContradiction, "/growth_interval"},
               {"interval=1000", "interval='x'", kMalformed, "/growth_interval"},
               {"hysteresis=2", "hysteresis='x'", kMalformed, "/hysteresis"},
               {"hysteresis=2", "hysteresis=2, hysteresis=3", kMalformed, "'hysteresis'"},
               {"2**32", "1", kContradiction, "--max-scale 1"},
               {"2**32", "'x'", kMalformed, "/max_scale"},
               {"zero = dict(", "zero = dict((", kMalformed, "zero_config.py:4"}});
  add_changes(all,
              {.what = "",
               .option = "--megatron-args",
               .file = "pretrain.sh",
               .text = "#!/bin/bash\ntorchrun --nproc_per_node 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
                       "--num-attention-heads 32 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 "
                       "--global-batch-size 4 --tensor-model-parallel-size 1 --lr 1e-4 --fp16 --vocab-size 1024\n",
               .needs_model = false},
              {{"--num-layers 32", "--num-layers two", kMalformed, "/num-layers"},
               {"--num-layers 32", "--num-layers 0", kContradiction, "/num-layers"},
               {"--hidden-size 4096", "--hidden-size -1", kContradiction, "/hidden-size"},
               {"--hidden-size 4096", "--hidden-size 6.5", kMalformed, "/hidden-size"},
               {"heads 32", "heads 5", kContradiction, "/num-attention-heads"},
               {"heads 32", "heads x", kMalformed, "/num-attention-heads"},
               {"micro-batch-size 1", "micro-batch-size 0", kContradiction, "/micro-batch-size"},
               {"micro-batch-size 1", "micro-batch-size x", kMalformed, "/micro-batch-size"},
               {"global-batch-size 4", "global-batch-size x", kMalformed, "/global-batch-size"},
               {"global-batch-size 4", "global-batch-size -4", kContradiction, "/global-batch-size"},
               {"parallel-size 1", "parallel-size 0", kContradiction, "/tensor-model-parallel-size"},
               {"parallel-size 1", "parallel-size x", kMalformed, "/tensor-model-parallel-size"},
               {"--lr 1e-4", "--pipeline-model-parallel-size 2", kContradiction, "/pipeline-model-parallel-size"},
               {"--lr 1e-4", "--lr fast", kMalformed, "/lr"},
               {"--lr 1e-4", "--lr -1", kContradiction, "/lr"},
               {"--lr 1e-4", "--lr '1e-4", kMalformed, "pretrain.sh:2"},
               {"--fp16", "--fp16 --bf16", kContradiction, "/bf16"},
               {"--seq-length 128", "--seq-length", kMalformed, "/seq-length"},
               {"--seq-length 128", "--seq-length 0", kContradiction, "/seq-length"},
               {"--seq-length 128", "--seq-length x", kMalformed, "/seq-length"}});
}

/// A strategy in lines of our own: what one line says, and what contradicts another or what stands by default.
void add_strategies(std::vector<Refused>& all) {
  const auto add = [&](const char* text, int exit_code, const char* key) {
    all.push_back({.what = std::string("run.conf: ") + text,
                   .option = "--config",
                   .file = "run.conf",
                   .text = std::string(text) + "\n",
                   .exit_code = exit_code,
                   .key = key});
  };
  for (const auto& [text, key] : std::vector<std::pair<const char*, const char*>>{
           {"stage = 4", "--stage"},
           {"stage = -1", "--stage"},
           {"stage = two", "--stage"},
           {"stage = 1\nstage = 2", "run.conf:2: --stage"},
           {"stage", "'stage'"},
           {"stagee = 1", "'stagee'"},
           {"unit = chunky", "--unit"},
           {"precision = fp17", "--precision"},
           {"micro-batch = 0", "--micro-batch"},
           {"micro-batch = x", "--micro-batch"},
           {"optimizer = lion", "--optimizer"},
           {"recompute = some", "--recompute"},
           {"world-size = 0", "--world-size"},
           {"placement = moon", "--placement"},
           {"dropout = x", "--dropout"},
           {"clip-norm = -1", "--clip-norm"},
           {"gpu-margin-mem-ratio = 2", "--gpu-margin-mem-ratio"},
           {"prefetch = -1", "--prefetch"},
           {"keep-gathered = perhaps", "--keep-gathered"},
           {"initial-scale = 0\nprecision = fp16", "--initial-scale"},
           {"sequence = 0", "--sequence"},
           {"param-placement = 1.5\nplacement = static", "--param-placement"},
           {"device-capacity = lots", "--device-capacity"},
           {"transport = pigeon", "--transport"},
           {"device = tpu", "--device"},
           {"threads = 0", "--threads"},
           {"reduce-scatter-bucket-size-mb = -1", "--reduce-scatter-bucket-size-mb"}})
    add(text, kUsage, key);
  add("= 3", kMalformed, "run.conf:1");
  for (const auto& [text, key] : std::vector<std::pair<const char*, const char*>>{
           {"chunk-size = 1024", "--chunk-size 1024 (run.conf:1)"},
           {"clip-norm = 0", "--clip-norm 0 (run.conf:1)"},
           {"dropout = 2", "--dropout 2 (run.conf:1)"},
           {"freeze = nothing.*", "--freeze nothing.* (run.conf:1)"},
           {"global-batch = 3\nmicro-batch = 2", "global batch 3"},
           {"keep-gathered = true", "--keep-gathered (run.conf:1)"},
           {"optimizer-placement = disk\nplacement = device", "--placement device (run.conf:2)"},
           {"partition = parameter\nstage = 3", "--partition parameter (run.conf:1)"},
           {"ranks = 3\nshard-group = 2", "--shard-group 2 (run.conf:2)"},
           {"shard-group = 2", "--shard-group 2 (run.conf:1)"},
           {"reuse-fp16-shard = true", "--reuse-fp16-shard (run.conf:1)"},
           {"sequence = 99999999", "--sequence"},
           {"tensor-parallel = 3\nworld-size = 3", "--tensor-parallel 3 (run.conf:1)"}})
    add(text, kContradiction, key);
}

std::vector<Refused> every_case() {
  std::vector<Refused> all;
  add_deepspeed(all);
  add_models(all);
  add_clusters(all);
  add_yaml_and_toml(all);
  add_python_and_shell(all);
  add_strategies(all);
  return all;
}

/// What the largest program that this test waited for had in memory.
std::int64_t largest_child_kib() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_maxrss;
}

TEST(RefusedConfigurations, AreRefusedBeforeAnythingIsAllocated) {
#ifdef WITH_RANKS
  const std::string command = "train";  // a model of 7 thousand million parameters: 100 GB, were it begun
#else
  const std::string command = "simulate";
#endif
  const std::vector<Refused> all = every_case();
  EXPECT_GE(all.size(), 200u);
  const ScratchDirectory scratch;
  for (const Refused& each : daily::part_of(all, 4)) {
    scratch.write(each.file, each.text);
    Words words{command, each.option, each.file};
    if (command == "train") words.insert(words.end(), {"--data", "random"});
    if (each.needs_model) words.insert(words.end(), {"--model", "llama-7b"});
    const Outcome outcome = shardscope(words, {.directory = scratch.path()});
    EXPECT_EQ(outcome.exit_code, each.exit_code) << each.what << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(each.key)) << each.what;
    EXPECT_EQ(outcome.out, "") << each.what;
  }
  RecordProperty("configurations", static_cast<int>(all.size()));
  EXPECT_LT(largest_child_kib(), 200 << 10);
}

}  // namespace
}  // namespace shard::test
