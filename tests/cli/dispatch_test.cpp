// Is each command run here, handed over, or refused with the name that was meant?
#include "sim/cli/dispatch.h"

#include <gtest/gtest.h>

namespace shard::cli {
namespace {

Program shardscope() {
  Program program("shardscope", "0.1.0");
  program.add("search", [](std::span<const std::string> arguments) { return static_cast<int>(arguments.size()); });
  return program;
}

Result<Decision> decide(std::vector<std::string> arguments) {
  return shardscope().decide(arguments);
}

TEST(Dispatch, RunsWhatIsBoundHere) {
  const auto decision = decide({"search", "--model", "gpt2"});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->kind, Decision::Kind::run);
  EXPECT_EQ(decision->run(decision->arguments), 2);
}

TEST(Dispatch, HandsOverToTheProgramThatRunsIt) {
  const auto decision = decide({"train", "--ranks", "4"});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->kind, Decision::Kind::hand_over);
  EXPECT_EQ(decision->program, "shardscope-train");
  EXPECT_EQ(decision->command, "train");
  EXPECT_EQ(decision->arguments, (std::vector<std::string>{"--ranks", "4"}));
}

TEST(Dispatch, WhatThisVersionLacksIsRefusedAndNotAdvertised) {
  const auto decision = decide({"verify"});
  ASSERT_FALSE(decision);
  EXPECT_EQ(decision.error().code, Errc::unavailable);
  EXPECT_EQ(decision.error().what, "'verify' is not in this version");
  EXPECT_EQ(shardscope().help().find("\n  verify "), std::string::npos);
  EXPECT_NE(shardscope().help().find("\n  train "), std::string::npos);
}

TEST(Dispatch, HelpCommandIsThatCommandsHelp) {
  EXPECT_EQ(decide({"help", "train"})->arguments, std::vector<std::string>{"--help"});
  EXPECT_EQ(decide({"help"})->text, shardscope().help());
  EXPECT_EQ(decide({"--version"})->text, "shardscope 0.1.0\n");
}

TEST(Dispatch, AnUnknownCommandGetsTheClosestMatch) {
  const auto decision = decide({"simulat"});
  ASSERT_FALSE(decision);
  EXPECT_EQ(decision.error().code, Errc::usage);
  EXPECT_EQ(decision.error().help, "did you mean 'simulate'?");
  EXPECT_EQ(decide({}).error().code, Errc::usage);
  EXPECT_EQ(decide({"--model", "gpt2"}).error().what, "the command comes first, before '--model'");
}

TEST(Dispatch, HelpSaysHowTheAlikeDiffer) {
  const std::string help = shardscope().help();
  for (const char* part : {"simulate predicts", "train runs", "compare lines two traces up",
                           "verify proves a strategy equal", "validate checks predictions against published runs"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part;
  }
}

TEST(Dispatch, AProgramThatIsNotBuiltIsUnavailable) {
  const Error error = hand_over("shardscope-nowhere", "view", {});
  EXPECT_EQ(error.code, Errc::unavailable);
  EXPECT_EQ(error.what, "'view' is run by shardscope-nowhere, which is not built");
  EXPECT_TRUE(error.where.ends_with("/shardscope-nowhere"));
}

}  // namespace
}  // namespace shard::cli
