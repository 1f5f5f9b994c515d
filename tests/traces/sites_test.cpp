// Which frame of a stack is told as the place that asked for memory?
#include "traces/sites.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/traces/stacks_of.h"

namespace shard {
namespace {

using test::add_stack;
using test::Line;

/// Of a stack; `beside`: another of the same trace.
std::string site_of(const std::vector<Line>& stack, const std::vector<Line>& beside = {}) {
  Trace trace;
  add_stack(trace, beside);
  add_stack(trace, stack);
  return site_text(trace, sites(trace).back());
}

const std::string kPackages = "/venv/lib/python3.11/site-packages/";

TEST(Sites, TheUsersOwnLineStandsBeforeAPackages) {
  EXPECT_EQ(site_of({{kPackages + "torch/nn/functional.py", 1},
                     {kPackages + "transformers/llama.py", 2},
                     {"/home/me/train.py", 3}}),
            "train.py:3 f");
}

TEST(Sites, WithoutOneItIsThePackagesThatUsesPyTorch) {
  EXPECT_EQ(site_of({{kPackages + "torch/nn/functional.py", 1},
                     {kPackages + "transformers/llama.py", 2},
                     {kPackages + "transformers/trainer.py", 3},
                     {"/tmp/run/shardscope-recipe/recipe.py", 4}}),
            "llama.py:2 f");
}

TEST(Sites, WithoutThatPyTorchsOwn) {
  EXPECT_EQ(site_of({{"<frozen shardscope steps>", 1}, {kPackages + "torch/optim/adamw.py", 2}}), "adamw.py:2 f");
}

const Line kCall = {"module.py", 1751, "_call_impl"};

TEST(Sites, WithoutFoldersPyTorchsFilesAreKnownByName) {
  EXPECT_EQ(
      site_of({{"_device.py", 104, "__torch_function__"}, {"linear.py", 105, "__init__"}, {"net.py", 7, "__init__"}}),
      "net.py:7 __init__");
  EXPECT_EQ(site_of({{"linear.py", 116, "forward"}, kCall, {"net.py", 9, "forward"}}), "net.py:9 forward");
  EXPECT_EQ(
      site_of({{"functional.py", 1473, "relu"}, {"activation.py", 101, "forward"}, kCall, {"net.py", 9, "forward"}}),
      "net.py:9 forward");
  EXPECT_EQ(site_of({{"conv.py", 456, "_conv_forward"}, {"conv.py", 460, "forward"}, kCall, {"net.py", 9, "forward"}}),
            "net.py:9 forward");
}

TEST(Sites, WithoutFoldersFrameworksFilesAreTheirs) {
  const std::vector<Line> loop = {{"modeling_llama.py", 300, "forward"},
                                  {"trainer.py", 3700, "training_step"},
                                  {"trainer.py", 2236, "_inner_training_loop"},
                                  {"trainer.py", 2000, "train"}};
  EXPECT_EQ(site_of(loop), "modeling_llama.py:300 forward") << "a package's, where nothing is the user's";
  std::vector<Line> called = loop;
  called.push_back({"finetune.py", 40, "main"});
  EXPECT_EQ(site_of(called), "finetune.py:40 main");
}

TEST(Sites, AProgramsFileOfALibrarysNameIsTheProgramsOwn) {
  const Line main = {"train.py", 3, "main"};
  EXPECT_EQ(site_of({{"linear.py", 36, "forward"}, kCall, main}), "linear.py:36 forward");
  EXPECT_EQ(site_of({{"trainer.py", 80, "training_step"}, main}), "trainer.py:80 training_step");
  EXPECT_EQ(site_of({{"transformer.py", 300, "forward"}, kCall, main}, {{"transformer.py", 142, "softmax"}, main}),
            "transformer.py:300 forward")
      << "PyTorch's transformer.py has no softmax";
  EXPECT_EQ(site_of({{"optimizer.py", 51, "step"}, {"optimizer.py", 493, "wrapper"}, main}), "optimizer.py:51 step");
}

}  // namespace
}  // namespace shard
