// What would a launcher's words start?
#include "profiler/commands/launch_line.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace shard::dryrun {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// "HOSTS x RANKS from FIRST: PROGRAM", or "not read".
std::string told(const std::string& text) {
  const auto line = read_torchrun(words_of(text), 4);
  if (!line) return "not read";
  std::string said = std::to_string(line->hosts) + " x " + std::to_string(line->ranks_per_host) + " from " +
                     std::to_string(line->first_rank) + ":";
  for (const std::string& word : line->program) said += " " + word;
  return said;
}

TEST(LaunchLine, TorchrunsOptionsSayHowManyRanks) {
  EXPECT_EQ(told("torchrun train.py"), "1 x 1 from 0: python3 train.py");
  EXPECT_EQ(told("torchrun --nproc-per-node 8 train.py --nnodes 3"), "1 x 8 from 0: python3 train.py --nnodes 3")
      << "what stands behind the program is the program's";
  EXPECT_EQ(told("torchrun --nproc_per_node=gpu --standalone train.py"), "1 x 4 from 0: python3 train.py");
  EXPECT_EQ(told("torchrun --nnodes=2:2 --nproc-per-node 8 --node-rank 1 --rdzv-end host:1 -t 3 train.py"),
            "2 x 8 from 8: python3 train.py");
  EXPECT_EQ(told("torchrun --nproc-per-node 2 -m pack.train -x"), "1 x 2 from 0: python3 -m pack.train -x");
  EXPECT_EQ(told("torchrun --nproc-per-node 2 --no-python ./train --x"), "1 x 2 from 0: ./train --x");
}

TEST(LaunchLine, ThePythonIsTheLaunchers) {
  EXPECT_EQ(told("env A=1 /opt/bin/python3.11 -u -m torch.distributed.run --nproc_per_node 2 train.py"),
            "1 x 2 from 0: env A=1 /opt/bin/python3.11 train.py");
}

TEST(LaunchLine, WhatTorchrunWouldNotTakeOrNobodyKnowsIsNotRead) {
  for (const char* line :
       {"torchrun", "torchrun --nproc-per-node 2", "torchrun --nproc-per-node",
        "torchrun --nproc-per-node two train.py", "torchrun --unheard-of 2 train.py", "torchrun --n 2 train.py",
        "torchrun --nnodes 1:4 train.py", "torchrun --nnodes 2 --node-rank 2 train.py",
        "torchrun --nproc-per-node 0 train.py", "torchrun --standalone=1 train.py", "accelerate launch train.py",
        "deepspeed --num_gpus 2 train.py", "python3 train.py"})
    EXPECT_EQ(told(line), "not read") << line;
}

TEST(LaunchLine, ALauncherIsTheFirstWordOrItsModule) {
  EXPECT_EQ(launcher_of(words_of("/venv/bin/accelerate launch train.py")), "accelerate");
  EXPECT_EQ(launcher_of(words_of("python3 -m accelerate.commands.launch train.py")), "accelerate.commands.launch");
  EXPECT_EQ(launcher_of(words_of("python3 train.py --strategy deepspeed")), "") << "an option of the program's";
  EXPECT_EQ(launcher_of(words_of("python3 -m pack torchrun")), "");
  EXPECT_EQ(launcher_of({}), "");
}

}  // namespace
}  // namespace shard::dryrun
