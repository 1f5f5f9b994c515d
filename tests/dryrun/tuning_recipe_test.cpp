// Do the recipes of fine-tuning frameworks run them on the user's YAML, with a model's folder made of a config.json?
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// transformers and tokenizers in so far as a model's folder is made with them: a model of two tied weights and one
/// more, in bfloat16.
class TuningRecipe : public FakePyTorch {
 protected:
  void SetUp() override {
    FakePyTorch::SetUp();
    scratch_.write("packages/transformers.py", R"(import contextlib, json, os, torch
__version__ = "4.57"
class Kind:
    itemsize = 2
torch.bfloat16, torch.float16, torch.float32 = Kind(), Kind(), Kind()
torch.device = lambda name: contextlib.nullcontext()
class Weight:
    shape = (4, 3)
    numel = lambda self: 12
class Config:
    vocab_size, eos_token_id, dtype, architectures, tie_word_embeddings = 8, 2, "bfloat16", ["Made"], True
    get_text_config = lambda self: self
class AutoConfig:
    @staticmethod
    def from_pretrained(folder, **more):
        assert json.load(open(os.path.join(folder, "config.json")))["model_type"]
        return Config()
class Made:
    _tied_weights_keys = ["head"]
    forward = lambda self, input_ids, labels: None
    _from_config = classmethod(lambda kind, config: kind())
    state_dict = lambda self: {"inputs": Weight(), "head": Weight(), "norm": Weight()}
class PreTrainedTokenizerFast:
    def __init__(self, tokenizer_object, **more):
        self.words = tokenizer_object.words
    def save_pretrained(self, folder):
        json.dump(self.words, open(os.path.join(folder, "tokenizer.json"), "w"))
class Trainer:
    def save_model(self):
        raise SystemExit("it saves")
)");
    scratch_.write("packages/tokenizers.py", R"(class models:
    WordLevel = lambda words, unk_token: words
class pre_tokenizers:
    WhitespaceSplit = lambda: None
class decoders:
    WordPiece = lambda prefix: None
class Tokenizer:
    def __init__(self, words):
        self.words = words
)");
    scratch_.write("packages/datasets.py", "class Dataset:\n  from_dict = staticmethod(lambda columns: columns)\n");
    scratch_.write("config.json", R"({"model_type": "made"})");
  }
  void package(const std::string& name) {
    std::filesystem::create_directories(scratch_.path() / "packages" / name);
    scratch_.write("packages/" + name + "/__init__.py", "");
  }
};

/// LLaMA-Factory in so far as the recipe touches it; its run prints what it would train, and on what.
class LlamaFactory : public TuningRecipe {
 protected:
  void SetUp() override {
    TuningRecipe::SetUp();
    for (const char* name : {"llamafactory", "llamafactory/data", "llamafactory/train"}) package(name);
    scratch_.write("packages/omegaconf.py",
                   "import json\nclass OmegaConf:\n  load = staticmethod(lambda path: json.load(open(path)))\n"
                   "  to_container = staticmethod(lambda read: read)\n");
    scratch_.write("packages/llamafactory/data/loader.py", "def _get_merged_dataset(*a): raise SystemExit('reads')\n");
    scratch_.write("packages/llamafactory/data/template.py",
                   "class Template: stop_words = ['<stop>']\nTEMPLATES = {'short': Template}\n");
    scratch_.write("packages/llamafactory/train/tuner.py", R"(import json, os, types
import transformers
from llamafactory.data import loader
def create_modelcard_and_push(): raise SystemExit("it tells the hub")
def run_exp(said):
    model = said.pop("model_name_or_path")
    words = json.load(open(os.path.join(model, "tokenizer.json")))
    print("WORDS", len(words), words["<end>"], "<stop>" in words)
    with open(os.path.join(model, "model.safetensors"), "rb") as file:
        head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        print("WEIGHTS", {name: one["dtype"] for name, one in head.items() if "dtype" in one}, len(file.read()))
    print("SAID", {name: value for name, value in said.items() if name != "output_dir"})
    data = types.SimpleNamespace(packing=said.get("packing"), cutoff_len=16)
    training = types.SimpleNamespace(per_device_train_batch_size=3, gradient_accumulation_steps=2, world_size=2)
    rows = loader._get_merged_dataset(["random"], None, data, training, said["stage"])
    print("ROWS", len(rows["_prompt"]), [len(one["content"].split()) for one in rows["_response"][0]])
    transformers.Trainer().save_model()
    create_modelcard_and_push()
    print("ALLOCATOR", os.environ.get("PYTORCH_CUDA_ALLOC_CONF"))
)");
  }
  Outcome tuned(const std::string& content, const Words& more = {"--model", "config.json"}) {
    scratch_.write("run.yaml", content);
    Words words{"--recipe", "llama-factory", "--llama-factory-config", "run.yaml"};
    words.insert(words.end(), more.begin(), more.end());
    return recipe(words);
  }
};

TEST_F(LlamaFactory, RunsOnTheUsersSettingsAndNamesWhatItLeftOut) {
  const Outcome outcome = tuned(R"({"model_name_or_path": "some/hub", "stage": "sft", "template": "short",
    "lora_rank": 8, "dataset": "identity", "save_steps": 5, "num_train_epochs": 3.0})");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string said = outcome.out + outcome.err;
  for (const char* text :
       {"left out: dataset, num_train_epochs, save_steps, saving of the model", "tokenizer of model_name_or_path by",
        "WORDS 8 2 True", "WEIGHTS {'inputs': 'BF16', 'norm': 'BF16'} 48",
        "SAID {'stage': 'sft', 'template': 'short', 'lora_rank': 8, 'do_train': True, 'dataset': 'random', "
        "'max_steps': 2, 'report_to': 'none'",
        "ROWS 12 [32]", "ALLOCATOR None"})
    EXPECT_THAT(said, HasSubstr(text));
}

TEST_F(LlamaFactory, SamplesAreThoseOfTheStage) {
  const Outcome pairs = tuned(R"({"stage": "rm"})");
  EXPECT_THAT(pairs.out + pairs.err, HasSubstr("ROWS 12 [32, 32]"));
  const Outcome packed = tuned(R"({"stage": "sft", "packing": true})", {"--model", "config.json", "--steps", "5"});
  EXPECT_THAT(packed.out + packed.err, HasSubstr("ROWS 24 [4]"));
  EXPECT_THAT(packed.out + packed.err, HasSubstr("'max_steps': 5"));
}

/// Of several ranks each has what LLaMA-Factory's launcher would set.
TEST_F(LlamaFactory, ARankIsLaunchedAsTheFrameworkWould) {
  const Outcome outcome = tuned(R"({"stage": "sft"})", {"--model", "config.json", "--world-size", "2"});
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("ALLOCATOR expandable_segments:True"));
}

/// The folder that the settings name is one that has a config.json, with its own tokenizer if there is one.
TEST_F(LlamaFactory, TheModelIsThatOfAFolderOnThisMachine) {
  std::filesystem::create_directories(scratch_.path() / "here");
  scratch_.write("here/config.json", R"({"model_type": "made"})");
  scratch_.write("here/tokenizer.json", R"({"<end>": 7})");
  const Outcome outcome = tuned(R"({"model_name_or_path": "here", "stage": "sft"})", {});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("WORDS 1 7 False"));
}

TEST_F(LlamaFactory, WhatItCannotRunIsNamedWithWhatHelps) {
  scratch_.write("stored.json", R"({"model_type": "made", "quantization_config": {}})");
  const struct {
    const char* content;
    Words more;
    const char* says;
  } kFaults[] = {
      {R"({"model_name_or_path": "some/hub"})", {}, "model_name_or_path is some/hub, which is no folder here"},
      {R"({"stage": "ppo"})", {"--model", "config.json"}, "the stage ppo"},
      {R"({"deepspeed": "z9.json"})", {"--model", "config.json"}, "names z9.json"},
      {R"({"ref_model": "some/hub"})", {"--model", "config.json"}, "ref_model is some/hub"},
      {R"({"stage": "sft"})", {"--model", "stored.json"}, "stored quantized"},
      {"[]", {"--model", "config.json"}, "has no settings"},
      {"{", {"--model", "config.json"}, "is no YAML"}};
  for (const auto& each : kFaults) {
    const Outcome outcome = tuned(each.content, each.more);
    EXPECT_EQ(outcome.exit_code, 1) << each.content << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(each.says)) << each.content;
  }
  std::filesystem::remove_all(scratch_.path() / "packages" / "llamafactory");
  EXPECT_THAT(tuned("{}").err, HasSubstr("pip install llamafactory"));
}

TEST_F(LlamaFactory, SettingsOfAnotherRecipeAreRefused) {
  expect_refused(
      {{{"--recipe", "llama-factory"}, 78, "--llama-factory-config FILE"},
       {{"--recipe", "llama-factory", "--llama-factory-config", "config.json", "--sequence", "5"},
        78,
        "the entry in the file"},
       {{"--recipe", "llama-factory", "--llama-factory-config", "config.json", "--megatron", "x"},
        78,
        "--recipe megatron"},
       {{"--recipe", "ddp", "--model", "gpt2", "--llama-factory-config", "config.json"}, 78, "--recipe llama-factory"},
       {{"--recipe", "llama-factory", "--llama-factory-config", "nowhere.yaml", "--model", "gpt2"},
        1,
        "nowhere.yaml: No such file"},
       {{"--recipe", "llama-factory", "--llama-factory-config", "config.json", "--model", "gpt9"},
        66,
        "no model of that name"}});
}

/// axolotl in so far as the recipe touches it; its run prints what it would train, and on what.
class Axolotl : public TuningRecipe {
 protected:
  void SetUp() override {
    TuningRecipe::SetUp();
    for (const char* name : {"axolotl", "axolotl/cli"}) package(name);
    scratch_.write("packages/yaml.py", "import json\nsafe_load, safe_dump = json.load, json.dump\n");
    scratch_.write("packages/axolotl/train.py", "def save_trained_model(*a): raise SystemExit('it saves')\n");
    scratch_.write("packages/axolotl/cli/train.py", R"(import json, os, sys
import axolotl.train
def do_cli(path):
    said = json.load(open(path))
    model, (data,) = said.pop("base_model"), said.pop("datasets")
    words = json.load(open(os.path.join(model, "tokenizer.json")))
    print("WORDS", len(words), "<pad>" in words, os.path.getsize(os.path.join(model, "model.safetensors")) > 48)
    rows = [json.loads(line) for line in open(data["path"])]
    print("ROWS", len(rows), {len(row["input_ids"]) for row in rows}, {len(row["labels"]) for row in rows}, data["type"])
    print("SAID", {name: each for name, each in said.items() if not str(each).startswith("/")}, sys.argv[1:])
    axolotl.train.save_trained_model(None)
)");
  }
  Outcome tuned(const std::string& content, const Words& more = {"--model", "config.json"}) {
    scratch_.write("run.yaml", content);
    Words words{"--recipe", "axolotl", "--axolotl-config", "run.yaml"};
    words.insert(words.end(), more.begin(), more.end());
    return recipe(words);
  }
};

TEST_F(Axolotl, RunsOnTheUsersSettingsAndNamesWhatItLeftOut) {
  const Outcome outcome = tuned(R"({"base_model": "some/hub", "tokenizer_type": "LlamaTokenizer", "adapter": "lora",
    "datasets": [{"path": "some/data", "type": "alpaca"}], "sequence_len": 64, "micro_batch_size": 2,
    "gradient_accumulation_steps": 3, "save_steps": 5, "num_epochs": 4, "wandb_project": "mine",
    "special_tokens": {"pad_token": "<pad>"}})");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string said = outcome.out + outcome.err;
  for (const char* text :
       {"left out: datasets, num_epochs, save_steps, wandb_project, saving of the model", "tokenizer of base_model by",
        "WORDS 8 True True", "ROWS 12 {64} {64} None",
        "SAID {'adapter': 'lora', 'sequence_len': 64, 'micro_batch_size': 2, 'gradient_accumulation_steps': 3, "
        "'special_tokens': {'pad_token': '<pad>'}, 'dataset_num_proc': 1, 'val_set_size': 0, 'max_steps': 2, "
        "'num_epochs': 1, 'save_strategy': 'no', 'logging_steps': 1} []"})
    EXPECT_THAT(said, HasSubstr(text));
}

TEST_F(Axolotl, PackedSamplesFillAPackTwoByTwo) {
  const Outcome outcome = tuned(R"({"sequence_len": 65, "sample_packing": true})",
                                {"--model", "config.json", "--world-size", "2", "--steps", "5"});
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("ROWS 20 {32, 33}"));
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("'max_steps': 5"));
}

/// The answer says so: it is not what was asked.
TEST_F(Axolotl, FlashAttentionThatIsNotInstalledIsPyTorchs) {
  for (const char* asked : {R"({"flash_attention": true, "flash_attn_rms_norm": true})",
                            R"({"attn_implementation": "flash_attention_2"})"}) {
    const Outcome outcome = tuned(asked);
    EXPECT_THAT(outcome.out, HasSubstr("scaled_dot_product_attention")) << outcome.err;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr("'attn_implementation': 'sdpa'"));
  }
  package("flash_attn");
  EXPECT_THAT(tuned(R"({"flash_attention": true})").out, Not(HasSubstr("scaled_dot_product_attention")));
}

TEST_F(Axolotl, WhatItCannotRunIsNamedWithWhatHelps) {
  const struct {
    const char* content;
    Words more;
    const char* says;
  } kFaults[] = {
      {R"({"base_model": "some/hub"})", {}, "base_model is some/hub, which is no folder here"},
      {R"({"rl": "dpo"})", {"--model", "config.json"}, "runs as it is: shardscope dryrun -- axolotl train /"},
      {R"({"deepspeed": "z9.json"})", {"--model", "config.json"}, "names z9.json"}};
  for (const auto& each : kFaults) {
    const Outcome outcome = tuned(each.content, each.more);
    EXPECT_EQ(outcome.exit_code, 1) << each.content << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(each.says)) << each.content;
  }
  std::filesystem::remove_all(scratch_.path() / "packages" / "axolotl");
  EXPECT_THAT(tuned("{}").err, HasSubstr("pip install axolotl"));
}

constexpr const char* kEndsInTheScaler = R"(import sys
sys.path.insert(0, ")" PYTHON_FILES R"(")
from fine_tuning import of_the_scaler
with of_the_scaler():
    raise NotImplementedError("'_amp_foreach_non_finite_check_and_unscale_cuda' not implemented for ')";

/// What ends on a GPU, too, is named as that; another fault is as it was.
TEST_F(TuningRecipe, AdaptersThatAGradientScalerDoesNotTakeAreNamed) {
  for (const auto& [type, told] : {std::pair("BFloat16", true), std::pair("Bool", false)}) {
    const Outcome outcome = dryrun(std::string(kEndsInTheScaler) + type + "'\")\n");
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(std::string("not implemented for '") + type));
    EXPECT_EQ(outcome.err.find("a GPU would end so, too") != std::string::npos, told) << outcome.err;
  }
}

/// A weight's cast on the host is memory that nobody writes to, of the type asked for; what is small, of integers, on a
/// GPU or part of a graph is cast.
TEST_F(TuningRecipe, CastsOfWeightsOnTheHostAreNotWritten) {
  const Outcome outcome = dryrun(R"(import sys, torch
from types import SimpleNamespace as Kind
half, full, whole = (Kind(bits=bits, is_floating_point=bits < 64) for bits in (16, 32, 64))
torch.float32, torch.float16, torch.bfloat16 = full, half, half
class Tensor:
    def __init__(self, dtype=half, elements=1 << 20, device="cpu", requires_grad=False):
        self.dtype, self.elements, self.device, self.requires_grad = dtype, elements, Kind(type=device), requires_grad
    numel = lambda self: self.elements
    is_floating_point = lambda self: self.dtype.is_floating_point
    to = float = half = bfloat16 = cpu = clone = pin_memory = copy_ = lambda self, *asked: "cast"
    zero_ = mul_ = div_ = add_ = sub_ = copy_
class Made:
    __repr__ = lambda self: "unwritten"
    is_pinned = lambda self: False
    untyped_storage = lambda self: self
    data_ptr = nbytes = lambda self: 4096
torch.Tensor, torch.nn = Tensor, Kind(Parameter=type("Parameter", (Tensor,), {}))
torch.is_grad_enabled = lambda: True
torch.empty_like = lambda weight, dtype, requires_grad: Made()
torch.zeros = torch.zeros_like = torch.is_tensor = None
sys.modules["torch.optim.optimizer"] = Kind(register_optimizer_step_post_hook=lambda hook: None)
def parsed(asked):
    return (asked, None) if type(asked) is Kind and hasattr(asked, "type") else (None, asked)
torch._C = Kind(_nn=Kind(_parse_to=parsed))
site = sys.modules["sitecustomize"]
site.load("unwritten").prepare(torch, site.FOLDER)
print([Tensor().to(full), Tensor().float(), torch.nn.Parameter().to(full)])
print([Tensor().to(half), Tensor().half(), Tensor().to(whole), Tensor().to(Kind(type="cuda")),
       Tensor(elements=(1 << 20) - 1).float(), Tensor(dtype=whole).float(), Tensor(device="cuda").float(),
       Tensor(requires_grad=True).float()])
)",
                                 {});
  EXPECT_THAT(outcome.out, HasSubstr("[unwritten, unwritten, unwritten]")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("['cast', 'cast', 'cast', 'cast', 'cast', 'cast', 'cast', 'cast']"));
}

}  // namespace
}  // namespace shard::test
