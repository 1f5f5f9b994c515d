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

TEST_F(Recipe, TakesAsManySamplesAsDeepSpeedsFileSays) {
  scratch_.write("packages/transformers.py", R"(import json, sys
sys.exit(20 + json.load(open(sys.argv[1]))["micro_batch"])
)");
  scratch_.write("ds.json", R"({"train_micro_batch_size_per_gpu": 3})");
  scratch_.write("auto.json", R"({"train_micro_batch_size_per_gpu": "auto"})");
  const auto samples = [&](const std::string& file, const Words& more) {
    Words words{"--recipe", "hf-trainer", "--model", "gpt2", "--ds-config", file};
    words.insert(words.end(), more.begin(), more.end());
    return recipe(words).exit_code - 20;
  };
  EXPECT_EQ(samples("ds.json", {}), 3);
  EXPECT_EQ(samples("ds.json", {"--micro-batch", "5"}), 5);
  EXPECT_EQ(samples("auto.json", {}), 1);
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
