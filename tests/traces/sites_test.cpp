// Which frame of a stack is told as the place that asked for memory?
#include "traces/sites.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shard {
namespace {

/// Of a stack, files and lines beginning with the innermost.
std::string site_of(const std::vector<std::pair<std::string, int>>& stack) {
  Trace trace;
  StackId caller;
  for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) {
    trace.names.push_back(frame->first);
    trace.names.emplace_back("f");
    const auto last = static_cast<std::int32_t>(trace.names.size()) - 1;
    trace.frames.push_back({.function = NameId{last}, .file = NameId{last - 1}, .line = frame->second});
    trace.stacks.push_back({FrameId{static_cast<std::int32_t>(trace.frames.size()) - 1}, caller});
    caller = StackId{static_cast<std::int32_t>(trace.stacks.size()) - 1};
  }
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

}  // namespace
}  // namespace shard
