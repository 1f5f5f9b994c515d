// Does `shardscope dryrun --recipe` start the installed framework with what it was told, and refuse what makes no
// sense?
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Recipe = FakePyTorch;

/// The fake PyTorch has no transformers, and the recipe says so as Python does: it came so far.
TEST_F(Recipe, RunsTheInterpreterThatItIsTold) {
  const Outcome outcome = recipe({"--recipe", "ddp", "--model", "gpt2", "--world-size", "2"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("No module named 'transformers'"));
  EXPECT_EQ(recipe({"--recipe", "ddp", "--model", "gpt2", "--python", "/nowhere/python3"}).exit_code, 69);
}

TEST_F(Recipe, TellsTheProgramWhatItWasTold) {
  scratch_.write("packages/transformers.py", R"(import json, os, sys
spec = json.load(open(sys.argv[1]))
config = json.load(open(os.path.join(spec["model"], "config.json")))
assert config["model_type"] == "llama" and "_source" not in config, config
assert (spec["recipe"], spec["micro_batch"], spec["sequence"]) == ("hf-trainer", 3, 64), spec
assert spec["precision"] == "fp16" and spec["recompute"] and os.path.isabs(spec["ds_config"]), spec
sys.exit(17)
)");
  scratch_.write("z3.json", "{}");
  const Outcome outcome = recipe({"--recipe", "hf-trainer", "--model", "llama-3.1-8b", "--micro-batch", "3",
                                  "--sequence", "64", "--precision", "fp16", "--recompute", "--ds-config", "z3.json"});
  EXPECT_EQ(outcome.exit_code, 17) << outcome.err;
}

/// "auto" of DeepSpeed's file is what TrainingArguments say.
TEST_F(Recipe, TrainsInThePrecisionThatItSaysWhereDeepSpeedsFileLeavesItOpen) {
  scratch_.write("packages/transformers.py", R"(import sys, types
class AutoConfig:
    from_pretrained = staticmethod(lambda path: types.SimpleNamespace(vocab_size=7))
class TrainingArguments:
    def __init__(self, **said):
        sys.exit(20 + bool(said.get("bf16")) + 2 * bool(said.get("fp16")))
)");
  scratch_.write("auto.json", R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}})");
  scratch_.write("fp16.json", R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": true}})");
  scratch_.write("no.json", R"({"bf16": false})");
  const auto exit_code = [&](Words more) {
    Words words{"--recipe", "hf-trainer", "--model", "llama-3.1-8b"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = recipe(words);
    if (outcome.exit_code < 20) ADD_FAILURE() << outcome.err;
    return outcome.exit_code;
  };
  constexpr int kFp32 = 20, kBf16 = 21, kFp16 = 22;
  EXPECT_EQ(exit_code({"--ds-config", "auto.json"}), kBf16);  // the model's config.json
  EXPECT_EQ(exit_code({"--ds-config", "auto.json", "--precision", "fp16"}), kFp16);
  EXPECT_EQ(exit_code({"--ds-config", "auto.json", "--precision", "fp32"}), kFp32);
  EXPECT_EQ(exit_code({"--ds-config", "auto.json", "--training-args", "no.json"}), kFp32);
  EXPECT_EQ(exit_code({"--ds-config", "fp16.json"}), kFp16);
}

/// transformers writes null for what is not set.
TEST_F(Recipe, AConfigurationMayHaveNullWhereTheQuickRuleLooks) {
  more_environment_["FAKE_TORCH_TRAINS"] = "1";
  scratch_.write("config.json",
                 R"({"model_type": "gpt2", "dtype": null, "n_positions": null, "max_position_embeddings": null,
    "time_step_limit": [0.0, Infinity]})");
  scratch_.write("packages/transformers.py",
                 "import sys, torch\nkept = torch.empty(1 << 20)\n"
                 "class Optimizer(torch.optim.Optimizer):\n    update = lambda self: None\n"
                 "Optimizer().step()\nsys.exit(0)\n");
  const Outcome outcome = recipe({"--recipe", "fsdp2", "--model", "config.json", "--world-size", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

/// A Trainer that takes so much, and what the rules say of one.
TEST_F(Recipe, SaysWhereTheQuickRuleDiffersByMoreThanItStates) {
  more_environment_["FAKE_TORCH_TRAINS"] = "1";
  scratch_.write("z2.json", R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}})");
  const Words said{"--ds-config", "z2.json", "--model", "gpt2", "--world-size", "2", "--cluster", "h100-80gb-x8"};
  const auto with = [&](Words begin, std::initializer_list<const char*> end) {
    begin.insert(begin.end(), said.begin(), said.end());
    begin.insert(begin.end(), end.begin(), end.end());
    return begin;
  };
  const nlohmann::json rule =
      json_of(shardscope(with({"simulate"}, {"--sequence", "1024", "--micro-batch", "1", "--use-cache", "false",
                                             "--dropout", "0.1", "--json"}),
                         {.directory = scratch_.path()}),
              0);
  const std::int64_t peak = rule["peak_allocated_bytes"];
  const auto take = [&](std::int64_t bytes) {
    scratch_.write("packages/transformers.py", "import sys, torch\nkept = torch.empty(" + std::to_string(bytes) +
                                                   ")\n" +
                                                   "class Optimizer(torch.optim.Optimizer):\n"
                                                   "    update = lambda self: None\n"
                                                   "Optimizer().step()\nsys.exit(0)\n");
  };
  const Words recipe_words{"--recipe", "hf-trainer"};
  take(peak);
  const nlohmann::json equal = json_of(recipe(with(recipe_words, {"--json"})), 0)["quick_rule"];
  EXPECT_EQ(equal["peak_bytes"], peak);
  EXPECT_EQ(equal["difference"], 0.0);
  EXPECT_EQ(equal["stated_error"], rule["peak_uncertainty"]);
  EXPECT_THAT(recipe(with(recipe_words, {})).out, Not(HasSubstr("quick rule")));
  take(peak / 2);
  const std::string text = recipe(with(recipe_words, {})).out;
  EXPECT_THAT(text, HasSubstr("quick rule      shardscope simulate --ds-config z2.json --model gpt2"));
  EXPECT_THAT(text, HasSubstr("100.0 % more"));
}

/// TRL and what it stands on, in so far as the recipe touches them; the trainer prints what it was given.
class TrlRecipe : public Recipe {
 protected:
  void SetUp() override {
    Recipe::SetUp();
    scratch_.write("packages/transformers.py", R"(import contextlib, torch
__version__ = "5.0"
torch.bfloat16, torch.float32 = "bfloat16", "float32"
torch.distributed.is_initialized = lambda: False
torch.device = lambda name: contextlib.nullcontext()
class Ids(list):
    tolist = lambda self: list(self)
torch.randint = lambda low, high, shape: Ids([7] * shape[0])
class AutoConfig:
    vocab_size, n_positions, eos_token_id, architectures, is_encoder_decoder = 100, 64, [5, 6], ["Made"], False
    from_pretrained = classmethod(lambda kind, path: kind())
    get_text_config = lambda self: self
class Made:
    config = AutoConfig()
    forward = lambda self, input_ids, labels: None
    to_empty = lambda self, device: None
    @classmethod
    def _from_config(kind, config, **more):
        print("MODEL", more)
        return kind()
class TrainingArguments:
    __init__ = lambda self, **said: None
class PreTrainedTokenizerFast:
    def __init__(self, tokenizer_object, **more):
        print("TOKENIZER", tokenizer_object)
)");
    scratch_.write("packages/tokenizers.py",
                   "class models:\n  WordLevel = lambda words, unk_token: words\n"
                   "Tokenizer = lambda words: words\n");
    scratch_.write("packages/datasets.py", "class Dataset:\n  from_dict = staticmethod(lambda columns: columns)\n");
    scratch_.write("packages/trl.py", R"(class SFTConfig:
    gradient_accumulation_steps, packing, max_length, model_init_kwargs = 1, False, 16, None
    def __init__(self, **said):
        self.__dict__.update(said)
        print("CONFIG", said.get("bf16"), said.get("max_length"), said["max_steps"])
class SFTTrainer:
    def __init__(self, model, args, train_dataset, processing_class):
        print("ROWS", [len(ids) for ids in train_dataset["input_ids"]], train_dataset["labels"][0][0])
    train = lambda self: None
)");
  }
  std::string said(const Words& more) {
    Words words{"--recipe", "trl-sft", "--model", "gpt2"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = recipe(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out + outcome.err;
  }
};

/// As TRL would load it where nothing is said: float32, samples as long as SFTConfig cuts them, a token that ends.
TEST_F(TrlRecipe, TrainsOnReadyTokensInTheTypeThatTrlLoads) {
  const std::string said = this->said({"--micro-batch", "2", "--world-size", "2"});
  for (const char* text :
       {"CONFIG True None 2", "MODEL {'dtype': 'float32'}", "TOKENIZER {'<end>': 5}", "ROWS [16, 16, 16, 16] 7"})
    EXPECT_THAT(said, HasSubstr(text));
}

/// A config.json may name a class that has no loss (BertModel): then it is the one of a task.
TEST_F(TrlRecipe, TrainsTheTaskOfAModelWhoseClassHasNoLoss) {
  const std::filesystem::path library = scratch_.path() / "packages" / "transformers.py";
  std::ofstream(library, std::ios::app) << R"(
class Bare(Made):
    forward = lambda self, input_ids: None
class Masked(Made):
    _from_config = classmethod(lambda kind, config, **more: print("MASKED") or kind())
AutoConfig.architectures = ["Bare"]
class AutoModelForCausalLM:
    _model_mapping = {AutoConfig: Made}
class AutoModelForMaskedLM:
    _model_mapping = {AutoConfig: Masked}
)";
  EXPECT_THAT(said({}), HasSubstr("MASKED"));
}

TEST_F(TrlRecipe, WhatIsSaidGoesIntoTheConfiguration) {
  scratch_.write("sft.json", R"({"packing": true, "model_init_kwargs": {"dtype": "bfloat16"}})");
  const std::string packed = said({"--training-args", "sft.json", "--sequence", "33", "--precision", "fp32"});
  for (const char* text : {"CONFIG False 33 2", "MODEL {'dtype': 'bfloat16'}", "ROWS [16, 17] 7"})
    EXPECT_THAT(packed, HasSubstr(text));
  scratch_.write("free.json", R"({"padding_free": true})");
  EXPECT_THAT(said({"--training-args", "free.json", "--sequence", "9"}), HasSubstr("CONFIG True None 2"));
}

TEST_F(TrlRecipe, APackageThatIsNotThereIsNamedWithWhatHelps) {
  scratch_.write("packages/bitsandbytes.py", "raise ImportError('none here')\n");
  const Outcome quantized =
      recipe({"--recipe", "hf-trainer", "--model", "gpt2", "--lora-rank", "4", "--quantize", "nf4"});
  EXPECT_EQ(quantized.exit_code, 1);
  EXPECT_THAT(quantized.err, HasSubstr("pip install bitsandbytes"));
  scratch_.write("packages/trl.py", "raise ImportError('none here')\n");
  const Outcome tuned = recipe({"--recipe", "trl-sft", "--model", "gpt2"});
  EXPECT_EQ(tuned.exit_code, 1);
  EXPECT_THAT(tuned.err, HasSubstr("pip install trl"));
}

/// A clone of Megatron-LM in so far as the recipe touches it: its script ends with what it was told.
class MegatronRecipe : public Recipe {
 protected:
  void SetUp() override {
    Recipe::SetUp();
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
class TorchtitanRecipe : public Recipe {
 protected:
  void SetUp() override {
    Recipe::SetUp();
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

TEST_F(Recipe, WhatMakesNoSenseIsRefused) {
  scratch_.write("program.py", "pass\n");
  scratch_.write("no.json", "{\"vocab_size\": 5}");
  expect_refused(
      {{{"--recipe", "ddp"}, 78, "--model NAME|PATH"},
       {{"--recipe", "ddp", "--model", "gpt2", "--", "python3", "program.py"}, 2, "both a recipe and a program"},
       {{"--recipe", "ddp", "--model", "gpt3"}, 66, "no model of that name"},
       {{"--recipe", "ddp", "--model", "no.json"}, 65, "no model_type"},
       {{"--recipe", "ddp", "--model", "gpt2", "--precision", "int8"}, 2, "is no type"},
       {{"--recipe", "fsdp2", "--model", "gpt2", "--lora-rank", "8"}, 78, "--recipe hf-trainer"},
       {{"--recipe", "ddp", "--model", "gpt2", "--quantize", "nf4"}, 78, "--recipe hf-trainer, or trl-sft"},
       {{"--recipe", "trl-sft", "--model", "gpt2", "--quantize", "nf4"}, 78, "--lora-rank R"},
       {{"--recipe", "trl-sft", "--model", "gpt2", "--lora-rank", "4", "--quantize", "int4"}, 2, "nf4, fp4 or int8"},
       {{"--recipe", "torchtitan"}, 78, "--torchtitan-config FILE"},
       {{"--recipe", "torchtitan", "--torchtitan-config", "no.json", "--model", "gpt2"}, 78, "the entry in the file"},
       {{"--recipe", "ddp", "--model", "gpt2", "--torchtitan-config", "no.json"}, 78, "--recipe torchtitan"},
       {{"--recipe", "nothing", "--model", "gpt2"}, 2, "nothing"},
       {{"--model", "gpt2", "--", "python3", "program.py"}, 78, "has its own model"},
       {{"--sequence", "5", "--", "python3", "program.py"}, 78, "--sequence"},
       {{}, 2, "no program to run"}});
}

}  // namespace
}  // namespace shard::test
