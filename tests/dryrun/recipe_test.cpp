// Does `shardscope dryrun --recipe` start the installed framework with what it was told, and refuse what makes no
// sense?
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

using ::testing::HasSubstr;

class Recipe : public FakePyTorch {
 protected:
  Outcome recipe(Words options) {
    options.insert(options.begin(), "dryrun");
    return shardscope(options, {.directory = scratch_.path(), .environment = environment()});
  }
};

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

TEST_F(Recipe, WhatMakesNoSenseIsRefused) {
  scratch_.write("program.py", "pass\n");
  scratch_.write("no.json", "{\"vocab_size\": 5}");
  const struct {
    Words words;
    int exit_code;
    const char* says;
  } kFaults[] = {
      {{"--recipe", "ddp"}, 78, "--model NAME|PATH"},
      {{"--recipe", "ddp", "--model", "gpt2", "--", "python3", "program.py"}, 2, "both a recipe and a program"},
      {{"--recipe", "ddp", "--model", "gpt3"}, 66, "no model of that name"},
      {{"--recipe", "ddp", "--model", "no.json"}, 65, "no model_type"},
      {{"--recipe", "ddp", "--model", "gpt2", "--precision", "int8"}, 2, "is no type"},
      {{"--recipe", "fsdp2", "--model", "gpt2", "--lora-rank", "8"}, 78, "--recipe hf-trainer"},
      {{"--recipe", "nothing", "--model", "gpt2"}, 2, "nothing"},
      {{"--model", "gpt2", "--", "python3", "program.py"}, 78, "has its own model"},
      {{"--sequence", "5", "--", "python3", "program.py"}, 78, "--sequence"},
      {{}, 2, "no program to run"}};
  for (const auto& each : kFaults) {
    const Outcome outcome = recipe(each.words);
    EXPECT_EQ(outcome.exit_code, each.exit_code) << ::testing::PrintToString(each.words) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(each.says)) << ::testing::PrintToString(each.words);
  }
}

}  // namespace
}  // namespace shard::test
