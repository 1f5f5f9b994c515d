// Do the recipes of Megatron-LM and torchtitan run their own scripts on the user's files, and refuse what makes no
// sense?
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A clone of Megatron-LM in so far as the recipe touches it: its script ends with what it was told.
class MegatronRecipe : public FakePyTorch {
 protected:
  void SetUp() override {
    FakePyTorch::SetUp();
    for (const char* package : {"", "core/", "core/datasets/", "core/tensor_parallel/", "training/"}) {
      std::filesystem::create_directories(scratch_.path() / "clone" / "megatron" / package);
      scratch_.write("clone/megatron/" + std::string(package) + "__init__.py", "");
    }
    scratch_.write("clone/megatron/core/parallel_state.py", "");
    scratch_.write("clone/megatron/core/datasets/helpers_cpp.py", "");
    scratch_.write("clone/megatron/core/datasets/utils.py", "");
    scratch_.write("clone/megatron/core/tensor_parallel/data.py", "def _build_key_size_numel_dictionaries(): pass\n");
    scratch_.write("clone/megatron/training/training.py", "def build_train_valid_test_data_loaders(): pass\n");
    for (const char* script : {"pretrain_gpt.py", "pretrain_t5.py"})
      scratch_.write("clone/" + std::string(script), R"(import os, sys
print("SAID", os.path.basename(sys.argv[0]), *sys.argv[1:], os.environ.get("NCCL_ALGO"))
import megatron.training.training as training
print("AS ROOT", hasattr(training.build_train_valid_test_data_loaders, "__wrapped__"))
)");
  }
  std::string said(const std::string& file, const std::string& content) {
    scratch_.write(file, content);
    const Outcome outcome = recipe({"--recipe", "megatron", "--megatron", "clone", "--megatron-args", file});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out + outcome.err;
  }
};

TEST_F(MegatronRecipe, RunsTheScriptOnWhatAFunctionalTestSays) {
  const std::string said = this->said("model_config.json", R"({"ENV_VARS": {"NCCL_ALGO": "Ring"}, "MODEL_ARGS": {
    "--num-layers": 12, "--bf16": true, "--swiglu": false, "--data-path": "${DATA}/x", "--seed": "${REPEAT}",
    "--vocab-file": "v.json", "--train-iters": 100, "--cp-comm-type": "p2p a2a", "--save": "/x"}})");
  EXPECT_THAT(said, HasSubstr("SAID pretrain_gpt.py --num-layers 12 --bf16 --cp-comm-type p2p a2a --vocab-size 50256 "
                              "--tokenizer-type NullTokenizer --train-iters 2 --eval-iters 0 --lr-decay-iters 1000 "
                              "--mock-data Ring"));
  EXPECT_THAT(said, HasSubstr("left out: --data-path --save --seed --train-iters --vocab-file"));
}

TEST_F(MegatronRecipe, FindsTheCloneThatItsFilesLieIn) {
  std::filesystem::create_directories(scratch_.path() / "clone" / "examples");
  scratch_.write("clone/examples/args.json", R"({"MODEL_ARGS": {"--bf16": true}})");
  scratch_.write("args.json", R"({"MODEL_ARGS": {"--bf16": true}})");
  for (const Words& words : {Words{"--megatron-args", "clone/examples/args.json"},
                             Words{"--megatron-args", "args.json", "--megatron-script", "clone/pretrain_t5.py"}}) {
    Words said{"--recipe", "megatron"};
    said.insert(said.end(), words.begin(), words.end());
    const Outcome outcome = recipe(said);
    EXPECT_THAT(outcome.out, HasSubstr("--bf16")) << outcome.err;
  }
}

/// Not what was asked, and so the answer has it.
TEST_F(MegatronRecipe, WithoutFlashAttnCudnnsAttentionRunsAndTheAnswerSaysSo) {
  scratch_.write("args.json",
                 R"({"ENV_VARS": {"NVTE_FUSED_ATTN": 0}, "MODEL_ARGS": {"--attention-backend": "flash"}})");
  Words words{"--recipe", "megatron", "--megatron", "clone", "--megatron-args", "args.json"};
  const Outcome text = recipe(words);
  EXPECT_THAT(text.out + text.err, HasSubstr("SAID pretrain_gpt.py --attention-backend fused "));
  EXPECT_THAT(text.out,
              HasSubstr("replaced        --attention-backend flash by cuDNN's fused attention: flash-attn is"));
  words.emplace_back("--json");
  EXPECT_EQ(json_of(recipe(words), 0)["replaced"].size(), 1);
  scratch_.write("packages/flash_attn.py", "");
  const Outcome installed = recipe(words);
  EXPECT_THAT(installed.err, HasSubstr("SAID pretrain_gpt.py --attention-backend flash "));
  EXPECT_EQ(json_of(installed, 0)["replaced"].size(), 0);
}

/// apex's products for weights' gradients take nothing of the allocator; whoever asks for one is told what ran.
TEST_F(MegatronRecipe, WithoutApexWeightsGradientsAreAddedUpAndTheAnswerSaysSo) {
  scratch_.write("clone/pretrain_gpt.py", R"(import sys, types
import fused_weight_gradient_mlp_cuda as apex
import torch
torch.cuda.current_blas_handle = lambda: 7
torch.empty(4096)
class Matrix(types.SimpleNamespace):
    def numel(self): return self.shape[0] * self.shape[1]
    def data_ptr(self): return 4096
if "--bf16" in sys.argv:
    apex.wgrad_gemm_accum_fp32(*(Matrix(shape=s, dtype=d) for s, d in
        (((8, 4), "torch.bfloat16"), ((8, 6), "torch.bfloat16"), ((6, 4), "torch.float32"))))
print("SAID", getattr(apex, "OWN", False))
)");
  const auto asked = [&](const char* arguments) {
    scratch_.write("args.json", arguments);
    return recipe({"--recipe", "megatron", "--megatron", "clone", "--megatron-args", "args.json", "--json"});
  };
  const Outcome used = asked(R"({"--bf16": true})");
  EXPECT_THAT(used.err, HasSubstr("SAID False"));
  const auto replaced = json_of(used, 0)["replaced"];
  ASSERT_EQ(replaced.size(), 1);
  EXPECT_EQ(replaced[0]["what"], "apex's fused weight gradients");
  const auto software = json_of(used, 0)["software"];
  EXPECT_TRUE(software.contains("apex") && software["apex"].is_null()) << software;
  EXPECT_EQ(json_of(asked(R"({"--num-layers": 2})"), 0)["replaced"].size(), 0);
  // How many rows of scores a block of apex's softmax has, by which Megatron decides whether it takes it.
  scratch_.write("clone/pretrain_gpt.py", R"(import apex, scaled_masked_softmax_cuda as softmax
print("ROWS", *(softmax.get_batch_per_block(64, keys, 2, 4) for keys in (17, 64, 128, 129, 4096)))
try: from apex.optimizers import FusedAdam
except ImportError: print("NO OPTIMIZER")
)");
  const Outcome asks = asked(R"({"--bf16": true})");
  EXPECT_THAT(asks.err, HasSubstr("ROWS 8 8 8 4 4"));
  EXPECT_THAT(asks.err, HasSubstr("NO OPTIMIZER"));
  scratch_.write("clone/pretrain_gpt.py", R"(import fused_weight_gradient_mlp_cuda as apex
apex.wgrad_gemm_accum_fp32()
print("SAID", apex.OWN)
)");
  scratch_.write("packages/fused_weight_gradient_mlp_cuda.py", "OWN = True\ndef wgrad_gemm_accum_fp32(*_): pass\n");
  const Outcome installed = asked(R"({"--bf16": true})");
  EXPECT_THAT(installed.err, HasSubstr("SAID True"));
  EXPECT_EQ(json_of(installed, 0)["replaced"].size(), 0);
}

TEST_F(MegatronRecipe, ReadsALaunchScript) {
  const std::string said = this->said("train.sh", R"(#!/bin/bash
export HIDDEN=512
TP=${TP:-2}
MODEL=(
  --decoder-num-layers 6   # of the decoder
  --hidden-size ${HIDDEN}
)
torchrun --nproc_per_node 8 pretrain_t5.py ${MODEL[@]} \
  --tensor-model-parallel-size $TP --lr=0.1 --save $NOWHERE 2>&1 | tee log
)");
  EXPECT_THAT(said, HasSubstr("SAID pretrain_t5.py --decoder-num-layers 6 --hidden-size 512 "
                              "--tensor-model-parallel-size 2 --lr 0.1 --vocab-size 30521"));
}

/// Where the ranks that tell others run, none does their part.
TEST_F(MegatronRecipe, OneRankAloneDoesWhatTheFirstWould) {
  scratch_.write("args.json", R"({"num_layers": 2})");
  Words words{"--recipe", "megatron", "--megatron", "clone", "--megatron-args", "args.json", "--world-size", "2"};
  const Outcome alone = recipe(words);
  EXPECT_THAT(alone.out + alone.err, HasSubstr("AS ROOT True"));
  words.insert(words.end(), {"--rank", "all"});
  const Outcome all = recipe(words);
  EXPECT_THAT(all.out + all.err, HasSubstr("AS ROOT False"));
}

/// JSON needs no library that a new machine lacks; of YAML without one it is said.
TEST_F(MegatronRecipe, YamlNeedsALibraryAndJsonDoesNot) {
  scratch_.write("packages/yaml.py", "raise ImportError('none here')\n");
  EXPECT_THAT(said("args.json", R"({"MODEL_ARGS": {"--num-layers": 5}})"),
              HasSubstr("SAID pretrain_gpt.py --num-layers 5 "));
  scratch_.write("args.yaml", "MODEL_ARGS:\n  --num-layers: 5\n");
  const Outcome outcome = recipe({"--recipe", "megatron", "--megatron", "clone", "--megatron-args", "args.yaml"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("install it, or give the same as JSON"));
}

std::vector<int> ranks_of(const nlohmann::json& answer) {
  std::vector<int> ranks;
  for (const nlohmann::json& each : answer["ranks"]) ranks.push_back(each["rank"]);
  return ranks;
}

/// The first rank of each, as if alone.
TEST_F(MegatronRecipe, OneRankOfEachStageRuns) {
  const auto ranks = [&](const char* content) {
    scratch_.write("args.json", content);
    const Outcome outcome = recipe({"--recipe", "megatron", "--megatron", "clone", "--megatron-args", "args.json",
                                    "--world-size", "128", "--rank", "stages", "--cluster", "h100-80gb-x8", "--json"});
    EXPECT_THAT(outcome.err, HasSubstr("AS ROOT True"));
    return ranks_of(json_of(outcome, 0));
  };
  using Ranks = std::vector<int>;
  EXPECT_EQ(ranks(R"({"num_layers": 2, "pipeline_model_parallel_size": 4, "tensor_model_parallel_size": 2})"),
            (Ranks{0, 32, 64, 96}));
  EXPECT_EQ(ranks(R"({"num_layers": 2, "pipeline_model_parallel_size": 2, "tensor_model_parallel_size": 4,
                      "use_tp_pp_dp_mapping": true})"),
            (Ranks{0, 4}));
  EXPECT_EQ(ranks(R"({"num_layers": 2})"), Ranks{0});
}

TEST_F(MegatronRecipe, StagesThatNobodyKnowsAreRefusedWithWhatRuns) {
  scratch_.write("args.json", R"({"num_layers": 2, "pipeline_model_parallel_size": "$NOBODY"})");
  scratch_.write("three.json", R"({"num_layers": 2, "pipeline_model_parallel_size": 3})");
  scratch_.write("program.py", "pass\n");
  const auto megatron = [](const char* file) {
    return Words{"--recipe", "megatron",     "--megatron", "clone",  "--megatron-args",
                 file,       "--world-size", "8",          "--rank", "stages"};
  };
  expect_refused({{megatron("args.json"), 78, "--pipeline-model-parallel-size is $NOBODY"},
                  {megatron("three.json"), 78, "8 ranks are not 3 stages"},
                  {{"--rank", "stages", "--world-size", "4", "--", "python3", "program.py"}, 78, "--rank 0,8,16"},
                  {{"--rank", "stages", "--recipe", "ddp", "--model", "gpt2"}, 78, "has no pipeline"}});
}

TEST_F(MegatronRecipe, WhatMakesNoSenseIsRefused) {
  scratch_.write("args.yaml", "MODEL_ARGS: {}\n");
  expect_refused({{{"--recipe", "megatron", "--megatron", "clone"}, 78, "--megatron-args FILE"},
                  {{"--recipe", "megatron", "--megatron", ".", "--megatron-args", "args.yaml"}, 66, "no clone"},
                  {{"--recipe", "megatron", "--megatron-args", "args.yaml", "--recompute"}, 78, "--recompute"},
                  {{"--recipe", "ddp", "--model", "gpt2", "--megatron", "clone"}, 78, "--recipe megatron"},
                  {{"--megatron-args", "args.yaml", "--", "python3", "x.py"}, 78, "--megatron-args"}});
}

/// torchtitan in so far as the recipe touches it; its entry point prints what it would train.
class TorchtitanRecipe : public FakePyTorch {
 protected:
  void SetUp() override {
    FakePyTorch::SetUp();
    for (const char* package : {"", "components/", "protocols/"}) {
      std::filesystem::create_directories(scratch_.path() / "packages" / "torchtitan" / package);
      scratch_.write("packages/torchtitan/" + std::string(package) + "__init__.py", "");
    }
    scratch_.write("packages/torchtitan/components/metrics.py", "class DeviceMemoryMonitor: pass\n");
    scratch_.write("packages/torchtitan/config.py", R"(from dataclasses import dataclass, field, make_dataclass
def section(**entries):
    return make_dataclass("Section", [(n, object, v) for n, v in entries.items()])
Job, Model = section(dump_folder=""), section(name="llama3", flavor="8B", converters=None)
Training, Parallelism = section(local_batch_size=8, seq_len=2048, steps=9), section(tensor_parallel_degree=1,
                                                                                   pipeline_parallel_degree=1)
@dataclass
class JobConfig:
    job: object = field(default_factory=Job)
    model: object = field(default_factory=Model)
    training: object = field(default_factory=Training)
    parallelism: object = field(default_factory=Parallelism)
    quantize: object = field(default_factory=section(linear=None))
class ConfigManager:
    pass
)");
    scratch_.write("packages/torchtitan/protocols/train_spec.py", R"(from dataclasses import dataclass
class Arguments:
    vocab_size = 77
@dataclass
class TrainSpec:
    model_args: dict
    build_dataloader_fn: object = None
    build_tokenizer_fn: object = None
    build_validator_fn: object = "validator"
def get_train_spec(name):
    return TrainSpec({"8B": Arguments})
)");
    scratch_.write("packages/torchtitan/train.py", R"(import os, types
from torchtitan.config import ConfigManager
import torchtitan.protocols.train_spec as specs
Trainer = None
def main(trainer):
    said = ConfigManager()._maybe_load_toml([])
    said = {n: v for n, v in said.items() if n != "job"}
    print(f"SAID {os.environ['RANK']} {said}")  # at once: ranks write beside each other
    job = types.SimpleNamespace(model=types.SimpleNamespace(**said.get("model", {"flavor": "8B"})))
    spec = specs.get_train_spec("llama3")
    print("TOKENS", spec.build_tokenizer_fn(job).get_vocab_size(), spec.build_validator_fn)
)");
  }
  Outcome titan(const std::string& content, const Words& more = {}) {
    scratch_.write("run.toml", content);
    Words words{"--recipe", "torchtitan", "--torchtitan-config", "run.toml"};
    words.insert(words.end(), more.begin(), more.end());
    return recipe(words);
  }
};

TEST_F(TorchtitanRecipe, RunsTheEntryPointOnRandomTokensAndNamesWhatItLeftOut) {
  const Outcome outcome = titan(
      "[training]\nbatch_size = 3\ntensor_parallel_degree = 2\nsteps = 1000\ndataset = 'c4'\n"
      "[checkpoint]\nenable_checkpoint = true\n[model]\nflavor = '8B'\n[float8]\nenable_float8_linear = true\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string said = outcome.out + outcome.err;
  for (const char* text :
       {"left out: checkpoint.enable_checkpoint training.dataset training.steps",
        "training.batch_size as training.local_batch_size", "SAID 0 {'training': ", "'local_batch_size': 3",
        "'steps': 2", "'parallelism': {'tensor_parallel_degree': 2}", "'converters': ['float8']", "TOKENS 77 None"})
    EXPECT_THAT(said, HasSubstr(text));
}

TEST_F(TorchtitanRecipe, ConvertersOfOlderFilesAreReadAsWhatTheyAreCalledNow) {
  scratch_.write("packages/torchtitan/protocols/model_converter.py",
                 "_registry_model_converter_cls = {'quantize.linear.float8': None}\n");
  const Outcome outcome =
      titan("[model]\nflavor = '8B'\nconverters = ['float8']\n[float8]\nenable_fsdp_float8_all_gather = true\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string said = outcome.out + outcome.err;
  for (const char* text :
       {"float8.enable_fsdp_float8_all_gather as quantize.linear.float8.enable_fsdp_float8_all_gather",
        "model.converters float8 as quantize.linear.float8", "'converters': ['quantize.linear.float8']",
        "'quantize': {'linear': {'float8': {'enable_fsdp_float8_all_gather': True}}}"})
    EXPECT_THAT(said, HasSubstr(text));
  const Outcome unknown = titan("[model]\nflavor = '8B'\nconverters = ['float9']\n");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("has float9, and this torchtitan has quantize.linear.float8"));
}

/// Later ones are told by the first, so that all run.
TEST_F(TorchtitanRecipe, OneRankOfEachStageIsToldOf) {
  const Outcome outcome =
      titan("[experimental]\npipeline_parallel_degree = 2\n", {"--world-size", "4", "--rank", "stages", "--json"});
  EXPECT_EQ(ranks_of(json_of(outcome, 0)), (std::vector<int>{0, 2}));
  for (const char* rank : {"SAID 0", "SAID 1", "SAID 2", "SAID 3"}) EXPECT_THAT(outcome.err, HasSubstr(rank));
}

TEST_F(TorchtitanRecipe, WhatItCannotRunIsNamedWithWhatHelps) {
  const struct {
    const char* content;
    Words more;
    const char* says;
  } kFaults[] = {{"[training]\nnothing = 1\n", {}, "has no training.nothing: take that out"},
                 {"[model]\nnorm_type = 'layernorm'\n", {}, "say rmsnorm"},
                 {"[model]\nflavor = '9B'\n", {}, "has no flavor 9B: it has 8B"},
                 {"[parallelism]\npipeline_parallel_degree = 2\n", {"--world-size", "4", "--rank", "2"}, "--rank all"},
                 {"no toml", {}, "is no TOML"}};
  for (const auto& each : kFaults) {
    const Outcome outcome = titan(each.content, each.more);
    EXPECT_EQ(outcome.exit_code, 1) << each.content << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(each.says)) << each.content;
  }
  scratch_.write("packages/torchtitan/config.py", "class ConfigManager: pass\n");
  EXPECT_THAT(titan("").err, HasSubstr("pip install 'torchtitan==0.2.*'"));
  std::filesystem::remove_all(scratch_.path() / "packages" / "torchtitan");
  EXPECT_THAT(titan("").err, HasSubstr("pip install torchtitan"));
}

}  // namespace
}  // namespace shard::test
