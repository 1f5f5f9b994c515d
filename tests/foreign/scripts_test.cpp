// Do Colossal-AI's, torchtitan's and Megatron-LM's files become what these would make of them?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "sim/foreign/script_document.h"
#include "tests/foreign/read_helpers.h"

namespace shard::foreign {
namespace {

using ::testing::HasSubstr;

std::string content_of(const std::string& name) {
  std::ifstream in(TEST_DATA "/data/foreign/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Result<ForeignConfig> read_script(const std::string& name, const Options& options = {}) {
  const std::string folder = name.substr(0, name.find('/'));
  const std::string option = folder == "megatron" ? "megatron-args" : folder + "-config";
  return read_as(*tool_of_option(option), text_of(name, content_of(name)), given_by(options));
}

TEST(ColossalAI, TheTemplateOfTheDocuments) {
  EXPECT_EQ(settings_of(read_script("colossalai/zero_template.py")),
            "backoff-factor=0.5 fp32-reduce-scatter=false gradient-predivide-factor=1 growth-factor=2 "
            "growth-interval=1000 hysteresis=2 initial-scale=32 max-scale=4294967296 min-scale=1 placement=device "
            "precision=fp16? reduce-scatter-bucket-size-mb=25 reuse-fp16-shard=false stage=3 unit=tensor");
  EXPECT_EQ(settings_of(read_script("colossalai/zero_auto.py")),
            "gpu-margin-mem-ratio=0.8 initial-scale=16384 placement=auto precision=fp16? reuse-fp16-shard=true stage=3 "
            "unit=bucket");
}

TEST(ColossalAI, ConfigurationFiles) {
  EXPECT_EQ(settings_of(read_script("colossalai/gpt2_pipeline.py")),
            "initial-scale=32 lr=1.5e-05 micro-batch=8 model=gpt2 optimizer=adamw placement=host precision=fp16? "
            "recompute=block sequence=1024 stage=3 tensor-parallel=2 unit=tensor weight-decay=0.01");
  const auto amp = read_script("colossalai/amp_2d.py");
  EXPECT_EQ(settings_of(amp), "clip-norm=1 global-batch=256 lr=0.00015 micro-batch=128");
  EXPECT_THAT(fate_of(amp, "/parallel/tensor/size"), HasSubstr("mode \"2d\" are not modelled"));
  EXPECT_THAT(fate_of(amp, "/fp16/mode"), HasSubstr("fp32 parameters"));
  EXPECT_THAT(fate_of(amp, "/LOG_PATH"), HasSubstr("made when it runs"));
}

TEST(ColossalAI, ProgramsAreLookedIntoForTheirPlugins) {
  const auto gemini = read_script("colossalai/gemini_program.py");
  EXPECT_EQ(settings_of(gemini),
            "lr=0.001 min-chunk=16777216 optimizer=adamw placement=host precision=fp16? search-interval=1024 "
            "search-range=33554432 stage=3 unit=chunk");
  EXPECT_EQ(fate_of(gemini, "/GeminiDDP/pin_memory"), "understood");
  EXPECT_THAT(fate_of(gemini, "/GeminiDDP/device"), HasSubstr("chunks are made before the run"));
  const auto fixed = read_script("colossalai/gemini_static.py");
  EXPECT_EQ(settings_of(fixed),
            "grad-placement=0 initial-scale=65536 optimizer-placement=0 param-placement=0.5 placement=static "
            "precision=bf16 stage=3 unit=chunk");
  EXPECT_THAT(fate_of(fixed, "/LowLevelZeroPlugin/stage"), HasSubstr("GeminiPlugin comes first"));
}

TEST(ColossalAI, TheTutorialsOwnCalls) {
  const std::string chunks =
      "chunk_size = ChunkManager.search_chunk_size(model, 64 * 1024**2, 32)\n"
      "chunk_manager = ChunkManager(chunk_size, pg, enable_distributed_storage=True,\n"
      "    init_device=GeminiManager.get_default_device(PLACEMENT_POLICY))\n"
      "gemini_manager = GeminiManager(PLACEMENT_POLICY, chunk_manager)\n"
      "model = ZeroDDP(model, gemini_manager)\n";
  const std::string found =
      "distributed-storage=true placement=host precision=fp16? search-interval=2097152 "
      "search-range=67108864 stage=3 unit=chunk";
  for (const char* imports : {"",
                              "from colossalai.gemini import ChunkManager, GeminiManager\n"
                              "from colossalai.nn.parallel import ZeroDDP\n"})
    EXPECT_EQ(settings_of(read_with("colossalai-config", std::string(imports) + "PLACEMENT_POLICY = 'cpu'\n" + chunks)),
              found);
  EXPECT_EQ(settings_of(read_with("colossalai-config",
                                  "def build(args):\n"
                                  "    manager = init_chunk_manager(model=model, init_device=get_current_device(),\n"
                                  "        hidden_dim=1024, search_range_mb=64, min_chunk_size_mb=32)\n"
                                  "    gemini = GeminiManager('cuda', manager)\n"
                                  "    return ZeroDDP(model, gemini)\n")),
            "min-chunk=33554432 placement=device precision=fp16? search-interval=1024 search-range=67108864 stage=3 "
            "unit=chunk");
  EXPECT_EQ(settings_of(read_with("colossalai-config", "model = ZeroDDP(model, gemini_manager)\n")),
            "precision=fp16? stage=3 unit=chunk");
  EXPECT_EQ(settings_of(read_with("colossalai-config", "booster = Booster(plugin=GeminiPlugin())\n")),
            "precision=fp16? stage=3 unit=chunk");
  EXPECT_EQ(settings_of(read_with("colossalai-config",
                                  "model = ShardedModelV2(model, TensorShardStrategy(), "
                                  "tensor_placement_policy='auto', reuse_fp16_shard=True)\n")),
            "placement=auto precision=fp16? reuse-fp16-shard=true stage=3 unit=tensor");
  EXPECT_EQ(
      settings_of(read_with("colossalai-config", "model = GeminiDDP(model, get_current_device(), 'cpu', True)\n")),
      "placement=host precision=fp16? stage=3 unit=chunk");
}

TEST(NothingUnderstood, IsRefusedWithWhatWasLookedFor) {
  const std::pair<const char*, const char*> files[] = {{"colossalai-config", "x = 1\n"},
                                                       {"ds-config", "{\"x\": 1}"},
                                                       {"ds-config", "{}"},
                                                       {"accelerate-config", "x: 1\n"},
                                                       {"torchtitan-config", "[x]\ny = 1\n"},
                                                       {"megatron-args", "python train.py --nothing 1\n"}};
  for (const auto& [option, content] : files) {
    const auto config = read_with(option, content);
    ASSERT_FALSE(config) << option << ": " << content;
    EXPECT_EQ(config.error().code, Errc::malformed) << to_string(config.error());
    EXPECT_FALSE(config.error().help.empty()) << option;
  }
  EXPECT_THAT(to_string(read_with("colossalai-config", "x = 1\n").error()),
              AllOf(HasSubstr("nothing in it is understood"), HasSubstr("looked for"), HasSubstr("ZeroDDP")));
}

TEST(NothingUnderstood, IsNoFaultOfAFileThatTheCommandLineOverrides) {
  EXPECT_TRUE(read_with("ds-config", R"({"train_micro_batch_size_per_gpu": 2})", {{"micro-batch", "4"}}));
}

TEST(ColossalAI, FractionsAreGeminisOwnWhereItIsEmulated) {
  EXPECT_EQ(settings_of(read_script("colossalai/gemini_static.py", {{"like", "colossalai-gemini@0.5.1"}})),
            "initial-scale=65536 offload-optim-frac=1 offload-param-frac=0.5 precision=bf16 shard-param-frac=1 stage=3 "
            "unit=chunk");
}

TEST(ColossalAI, InternEvosModelIsDescribed) {
  const auto config = read_script("colossalai/internevo.py", {{"model", "gpt2"}});
  EXPECT_EQ(settings_of(config),
            "beta1=0.9 beta2=0.95 clip-norm=1 global-batch=8 growth-factor=2 growth-interval=1000 initial-scale=65536 "
            "lr=1e-04 "
            "max-scale=16777216 micro-batch=2 min-scale=1 precision=bf16 recompute=none sequence=2048 stage=1 "
            "weight-decay=0.01");
  EXPECT_THAT(fate_of(config, "/parallel/pipeline/size"), HasSubstr("pipeline parallelism is not modelled"));
  EXPECT_EQ(fate_of(config, "/model/num_layers"), "--model gpt2 says it");
  EXPECT_THAT(settings_of(read_script("colossalai/internevo.py")), HasSubstr("\"intermediate_size\":14336"));
}

TEST(ColossalAI, LaunchScriptsAndYaml) {
  EXPECT_EQ(settings_of(read_script("colossalai/run_gemini.sh")),
            "micro-batch=16 model=gpt2-medium placement=host precision=fp16? stage=3 unit=chunk world-size=4");
  const auto sweep = read_script("colossalai/sweep.sh");
  EXPECT_EQ(settings_of(sweep), "micro-batch=2 model=gpt2-medium placement=auto precision=fp16? stage=2 world-size=2");
  EXPECT_THAT(fate_of(sweep, "/.~1run_gemini.sh"), HasSubstr("give it instead"));
  const auto yaml = read_script("colossalai/lightning.yaml");
  EXPECT_EQ(settings_of(yaml), "micro-batch=128 placement=device precision=fp16 stage=3 unit=chunk world-size=2");
  EXPECT_THAT(fate_of(yaml, "/model/params/image_size"), HasSubstr("diffusion"));
}

TEST(Torchtitan, OlderAndNewerSections) {
  const auto old = read_script("torchtitan/llama3_8b.toml", {{"model", "gpt2"}});
  EXPECT_EQ(settings_of(old),
            "clip-norm=1 lr=3e-04 micro-batch=1 optimizer=adamw precision=bf16? recompute=selective sequence=8192 "
            "stage=3 unit=module warmup-steps=200");
  EXPECT_EQ(settings_of(read_script("torchtitan/parallelism.toml", {{"model", "gpt2"}})),
            "clip-norm=1 epsilon=1e-08 fp32-reduce-scatter=true global-batch=512 lr=0.00015 micro-batch=8 "
            "optimizer=adamw precision=bf16 recompute=block reduce-dtype=fp32 sequence=8192 shard-group=8 "
            "stage=3 tensor-parallel=8 unit=module warmup-steps=200 world-size=128");
  EXPECT_THAT(settings_of(read_script("torchtitan/parallelism.toml")), HasSubstr("\"intermediate_size\":28672"));
}

TEST(Torchtitan, WhatIsNotModelledSaysSo) {
  const auto config = read_script("torchtitan/pipeline.toml", {{"model", "gpt2"}});
  EXPECT_EQ(settings_of(config),
            "micro-batch=2 placement=host precision=bf16? recompute=selective sequence=8192 stage=3 tensor-parallel=8 "
            "unit=module world-size=64");
  EXPECT_THAT(fate_of(config, "/parallelism/pipeline_parallel_degree"), HasSubstr("not modelled"));
  EXPECT_THAT(fate_of(config, "/activation_checkpoint/selective_ac_option"), HasSubstr("now and then"));
  const auto debug = read_script("torchtitan/debug.toml");
  EXPECT_EQ(settings_of(debug), "micro-batch=8 sequence=2048 stage=0 world-size=4");
  EXPECT_THAT(fate_of(debug, "/model/flavor"), HasSubstr("give --model"));
}

TEST(Megatron, ScriptsOfLists) {
  const auto config = read_script("megatron/gpt_175b.sh");
  EXPECT_EQ(settings_of(config),
            "beta1=0.9 clip-norm=1 global-batch=1536 lr=6e-05 micro-batch=1 "
            "model={\"model_type\":\"gpt2\",\"n_embd\":12288,\"n_layer\":96,\"n_head\":96,\"n_positions\":2048,"
            "\"vocab_size\":51200,\"n_inner\":49152}? precision=fp16 sequence=2048 tensor-parallel=8 weight-decay=0.1 "
            "world-size=32");
  EXPECT_THAT(fate_of(config, "/pipeline-model-parallel-size"), HasSubstr("not modelled"));
  EXPECT_EQ(fate_of(config, "/vocab-file"), "$3 is not set in the file");
}

TEST(Megatron, ALlamaIsOneByWhatMakesIt) {
  EXPECT_EQ(settings_of(read_script("megatron/llama.sh")),
            "dropout=0 global-batch=32 grad-placement=host micro-batch=4 "
            "model={\"model_type\":\"llama\",\"hidden_size\":2048,\"num_hidden_layers\":24,\"num_attention_heads\":16,"
            "\"vocab_size\":32000,\"max_position_embeddings\":2048,\"tie_word_embeddings\":false,"
            "\"intermediate_size\":5504,\"num_key_value_heads\":4}? optimizer-placement=host placement=static "
            "precision=bf16 recompute=block sequence=2048 stage=1 tensor-parallel=2 world-size=8");
}

TEST(Megatron, DashesThatNameNothingAreNoArguments) {
  const std::string train = "torchrun pretrain_gpt.py --num-layers 2 --micro-batch-size 4 --lr 1e-4\n";
  const std::string settings = settings_of(read_with("megatron-args", train));
  for (const char* heading : {"print_header \"-----------\"\n", "echo --\n", "show - -- --- --= ---=x\n"})
    EXPECT_EQ(settings_of(read_with("megatron-args", heading + train)), settings) << heading;
  EXPECT_EQ(settings_of(read_with("megatron-args",
                                  "torchrun --------- --=3 pretrain_gpt.py --num-layers 2 --micro-batch-size 4 --lr "
                                  "1e-4\n")),
            settings);
}

TEST(Megatron, MoreArgumentsThanAnyCommandTakesAreRefused) {
  for (const char* value : {" 1", " $UNSET"}) {
    std::string script = "a=1\ntorchrun pretrain_gpt.py --num-layers 2";
    for (int i = 0; i < 50'000; ++i) script += " --k" + std::to_string(i) + value;
    const auto config = read_with("megatron-args", script + "\n");
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().code, Errc::malformed);
    EXPECT_EQ(config.error().where, "file:2");
    EXPECT_THAT(config.error().what, HasSubstr("more than 4096 different arguments"));
  }
}

TEST(Megatron, SlurmEvalAndPlaceholders) {
  const auto slurm = read_script("megatron/slurm.sh");
  EXPECT_EQ(settings_of(slurm),
            "global-batch=128 micro-batch=1 precision=bf16 sequence=8192 stage=1 tensor-parallel=1 world-size=128");
  EXPECT_THAT(fate_of(slurm, "/num-layers"), HasSubstr("give --model"));
  const auto moe = read_script("megatron/eval_moe.sh", {{"model", "gpt2"}});
  EXPECT_EQ(settings_of(moe), "global-batch=512 micro-batch=8 precision=fp16 recompute=block sequence=2048");
  EXPECT_THAT(fate_of(moe, "/num-experts"), HasSubstr("mixture of experts"));
  const auto open = read_script("megatron/placeholders.sh");
  EXPECT_EQ(settings_of(open), "global-batch=64 precision=bf16 sequence=1024");
  EXPECT_EQ(fate_of(open, "/micro-batch-size"), "${MBS} is not set in the file: give --micro-batch");
  EXPECT_EQ(fate_of(open, "/tensor-model-parallel-size"), "$TP is not set in the file: give --tensor-parallel");
}

/// Every file of the test data: each leaf in one list or the other, and none in both.
TEST(Scripts, EveryLeafIsAccountedForOnce) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TEST_DATA "/data/foreign")) {
    if (!entry.is_regular_file()) continue;
    const std::string folder = entry.path().parent_path().filename().string();
    if (folder != "colossalai" && folder != "torchtitan" && folder != "megatron") continue;
    ++files;
    const auto config = read_script(folder + "/" + entry.path().filename().string());
    ASSERT_TRUE(config) << to_string(config.error());
    EXPECT_FALSE(config->left_out.empty() && config->understood.empty());
    std::multiset<std::string> all(config->understood.begin(), config->understood.end());
    for (const LeftOut& each : config->left_out) {
      all.insert(each.key);
      EXPECT_FALSE(each.reason.empty());
    }
    for (const std::string& each : all) EXPECT_EQ(all.count(each), 1u) << entry.path() << ' ' << each;
  }
  EXPECT_GE(files, 19);
}

struct Refused {
  const char* option;
  const char* content;
  Errc code;
  const char* names;  ///< in the message
};

// Each with the exit code and the key that the message must have.
TEST(Scripts, WhatIsMalformedOrContradictsItselfNamesTheKey) {
  const Refused all[] = {
      {"colossalai-config", "zero = dict(model_config=dict(shard_strategy='tensor'))\n", Errc::malformed,
       "/zero/model_config/shard_strategy"},
      {"colossalai-config", "zero = dict(model_config=dict(tensor_placement_policy='gpux'))\n", Errc::malformed,
       "/zero/model_config/tensor_placement_policy"},
      {"colossalai-config", "zero = dict(model_config=dict(reduce_scatter_bucket_size_mb='big'))\n", Errc::malformed,
       "/zero/model_config/reduce_scatter_bucket_size_mb"},
      {"colossalai-config", "zero = dict(optimizer_config=dict(initial_scale=-1))\n", Errc::contradiction,
       "/zero/optimizer_config/initial_scale"},
      {"colossalai-config", "p = GeminiPlugin(placement_policy='static', offload_optim_frac=2.0)\n",
       Errc::contradiction, "/GeminiPlugin/offload_optim_frac"},
      {"colossalai-config", "parallel = dict(tensor=dict(size=0, mode='1d'))\n", Errc::contradiction,
       "/parallel/tensor/size"},
      {"colossalai-config", "parallel = dict(pipeline='two')\n", Errc::malformed, "/parallel/pipeline"},
      {"colossalai-config", "BATCH_SIZE = 'eight'\n", Errc::malformed, "/BATCH_SIZE"},
      {"colossalai-config", "BATCH_SIZE = 0\n", Errc::contradiction, "/BATCH_SIZE"},
      {"colossalai-config", "SEQ_LEN = -1\n", Errc::contradiction, "/SEQ_LEN"},
      {"colossalai-config", "from colossalai.amp import AMP_TYPE\nfp16 = dict(mode=AMP_TYPE.FAST)\n", Errc::malformed,
       "/fp16/mode"},
      {"colossalai-config", "optimizer = dict(type=5)\n", Errc::malformed, "/optimizer/type"},
      {"colossalai-config", "localhost\n", Errc::malformed, "nothing is assigned"},
      {"torchtitan-config", "[training]\nbatch_size = 0\n", Errc::contradiction, "/training/batch_size"},
      {"torchtitan-config", "[training]\nseq_len = \"long\"\n", Errc::malformed, "/training/seq_len"},
      {"torchtitan-config", "[training]\nseq_len = SEQ\n", Errc::malformed, "file:2"},
      {"torchtitan-config", "[training]\nseq_len = 1\nseq_len = 2\n", Errc::malformed, "file:3"},
      {"torchtitan-config", "[training\n", Errc::malformed, "file:1"},
      {"torchtitan-config", "[activation_checkpoint]\nmode = \"some\"\n", Errc::contradiction,
       "/activation_checkpoint/mode"},
      {"torchtitan-config", "[parallelism]\ntensor_parallel_degree = 0\n", Errc::contradiction,
       "/parallelism/tensor_parallel_degree"},
      {"torchtitan-config", "[parallelism]\ndata_parallel_shard_degree = -2\n", Errc::contradiction,
       "/parallelism/data_parallel_shard_degree"},
      {"torchtitan-config", "[training]\nlocal_batch_size = 3\nglobal_batch_size = 8\n", Errc::contradiction,
       "/training/global_batch_size"},
      {"megatron-args", "torchrun x.py --num-layers a --hidden-size 64 --num-attention-heads 4\n", Errc::malformed,
       "/num-layers"},
      {"megatron-args", "torchrun x.py --num-layers 2 --hidden-size 65 --num-attention-heads 4\n", Errc::contradiction,
       "/num-attention-heads"},
      {"megatron-args", "torchrun x.py --micro-batch-size 3 --global-batch-size 8\n", Errc::contradiction,
       "/global-batch-size"},
      {"megatron-args", "torchrun x.py --fp16 --bf16\n", Errc::contradiction, "/bf16"},
      {"megatron-args", "torchrun x.py --recompute-granularity some\n", Errc::malformed, "/recompute-granularity"},
      {"megatron-args", "torchrun x.py --zero-stage 5\n", Errc::contradiction, "/zero-stage"},
      {"megatron-args", "torchrun x.py --clip-grad -1\n", Errc::contradiction, "/clip-grad"},
      {"megatron-args", "torchrun x.py --tensor-model-parallel-size two\n", Errc::malformed,
       "/tensor-model-parallel-size"},
      {"megatron-args", "echo nothing\n", Errc::malformed, "no command"},
      {"megatron-args", "torchrun x.py 'a\n", Errc::malformed, "file:1"},
  };
  for (const Refused& each : all) {
    const auto config = read_with(each.option, each.content);
    ASSERT_FALSE(config) << each.content;
    EXPECT_EQ(config.error().code, each.code) << each.content << to_string(config.error());
    EXPECT_THAT(to_string(config.error()), HasSubstr(each.names));
  }
}

TEST(Scripts, FilesAreKnownByTheirContent) {
  for (const auto& [name, tool] :
       {std::pair("colossalai/zero_template.py", "Colossal-AI"), std::pair("colossalai/run_gemini.sh", "Colossal-AI"),
        std::pair("colossalai/lightning.yaml", "Colossal-AI"), std::pair("torchtitan/debug.toml", "torchtitan"),
        std::pair("megatron/gpt_175b.sh", "Megatron-LM"), std::pair("megatron/slurm.sh", "Megatron-LM")}) {
    const Tool* const known = recognise(text_of("file", content_of(name)));
    ASSERT_NE(known, nullptr) << name;
    EXPECT_EQ(known->name, tool) << name;
  }
  const auto wrong = read_with("colossalai-config", content_of("torchtitan/debug.toml"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::contradiction);
  EXPECT_THAT(to_string(wrong.error()), HasSubstr("torchtitan"));
}

TEST(NotPredicted, IsARunWithPipelinesSequencesOrExpertsOverRanks) {
  struct Case {
    const char* option;
    const char* before;
    const char* after;
    const char* key;
  };
  const Case cases[] = {
      {"megatron-args", "python pretrain_gpt.py --micro-batch-size 1 --pipeline-model-parallel-size ", "\n",
       "/pipeline-model-parallel-size"},
      {"megatron-args", "python pretrain_gpt.py --micro-batch-size 1 --context-parallel-size ", "\n",
       "/context-parallel-size"},
      {"torchtitan-config", "[model]\nname = \"llama3\"\n[parallelism]\npipeline_parallel_degree = ", "\n",
       "/parallelism/pipeline_parallel_degree"},
      {"accelerate-config",
       "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\nparallelism_config:\n  parallelism_config_cp_size: ",
       "\n", "/parallelism_config/parallelism_config_cp_size"},
  };
  for (const Case& each : cases) {
    const auto one = read_with(each.option, std::string(each.before) + "1" + each.after);
    ASSERT_TRUE(one) << to_string(one.error());
    EXPECT_TRUE(one->not_predicted.empty()) << each.key;
    EXPECT_EQ(fate_of(one, each.key), "understood");
    const auto two = read_with(each.option, std::string(each.before) + "2" + each.after);
    ASSERT_TRUE(two) << to_string(two.error());
    ASSERT_EQ(two->not_predicted.size(), 1U) << each.key;
    EXPECT_EQ(two->not_predicted.front().key, each.key);
    EXPECT_EQ(fate_of(two, each.key), two->not_predicted.front().reason);
  }
}

}  // namespace
}  // namespace shard::foreign
