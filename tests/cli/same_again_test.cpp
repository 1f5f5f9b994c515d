// Is what a changed option leaves as it was taken from the figures that are known, and is no change told as none?
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/commands/simulate_strategy.h"

namespace shard::commands {
namespace {

/// What `words` are answered with, where `base` is known.
struct SameAgain : ::testing::Test {
  SimulateInputs inputs;

  Result<Simulated> ask(const std::vector<std::string>& words, const Simulated* base = nullptr) {
    cli::Command command("shardscope", "simulate", "", "");
    SimulateOptions options;
    add_simulate_options(command, options);
    if (const auto parsed = command.parse(words); !parsed) return parsed.error();
    return simulate_strategy(command, options,
                             {.inputs = inputs, .note = [](const std::vector<std::string>&) {}, .base = base});
  }
};

const std::vector<std::string> kEager{"--like", "fsdp2",        "--model", "gpt2",      "--sequence",
                                      "64",     "--world-size", "2",       "--cluster", "h100-80gb-x8"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const like::LikeResult& figures_of(const Simulated& simulated) {
  return std::get<like::LikeResult>(simulated.figures);
}

TEST_F(SameAgain, WhatIsTheDefaultAnywayChangesNothing) {
  const Result<Simulated> base = ask(kEager);
  ASSERT_TRUE(base) << base.error().what;
  for (const std::vector<std::string>& same : {std::vector<std::string>{"--stage", "3"}, {"--attention", "sdpa"}, {}})
    EXPECT_EQ(ask(with(kEager, same), &*base).error().code, Errc::contradiction);
}

TEST_F(SameAgain, AnotherAllocatorServesTheSameProgramWithTheSameAnswer) {
  const Result<Simulated> base = ask(kEager);
  ASSERT_TRUE(base) << base.error().what;
  const auto words = with(kEager, {"--allocator-conf", "expandable_segments:True"});
  const Result<Simulated> beside = ask(words, &*base);
  const Result<Simulated> alone = ask(words);
  ASSERT_TRUE(beside) << beside.error().what;
  EXPECT_EQ(figures_of(*beside).program, figures_of(*base).program);
  EXPECT_EQ(figures_of(*beside).peak_reserved(), figures_of(*alone).peak_reserved());
  EXPECT_NE(figures_of(*beside).peak_reserved(), figures_of(*base).peak_reserved());
}

TEST_F(SameAgain, AnotherStrategyOrRuleHasAProgramOfItsOwn) {
  const Result<Simulated> base = ask(kEager);
  ASSERT_TRUE(base) << base.error().what;
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"--stage", "2"}, {"--recompute", "block"}, {"--optimizer-implementation", "fused"}}) {
    const Result<Simulated> changed = ask(with(kEager, other), &*base);
    ASSERT_TRUE(changed) << changed.error().what;
    EXPECT_NE(figures_of(*changed).program, figures_of(*base).program);
  }
}

TEST_F(SameAgain, OurOwnExecutorsStrategyIsNotSimulatedTwice) {
  const std::vector<std::string> words{"--model", "gpt2-nano", "--world-size", "2", "--stage", "2"};
  const Result<Simulated> base = ask(words);
  ASSERT_TRUE(base) << base.error().what;
  EXPECT_EQ(ask(with(words, {"--recompute", "none"}), &*base).error().code, Errc::contradiction);
  EXPECT_TRUE(ask(with(words, {"--recompute", "block"}), &*base));
}

}  // namespace
}  // namespace shard::commands
