// Is each command run here, handed over, or refused with the name that was meant?
#include "sim/cli/dispatch.h"

#include <gtest/gtest.h>

#include "sim/cli/questions.h"

namespace shard::cli {
namespace {

Program shardscope() {
  Program program("shardscope", "0.1.0");
  for (const char* command : {"search", "simulate", "plan", "compare"})
    program.add(command, [](std::span<const std::string> arguments) { return static_cast<int>(arguments.size()); });
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

TEST(Dispatch, AnOptionMovesACommandToAnotherProgram) {
  const auto bound = [](const char* name) {
    Program program(name, "0.1.0");
    program.add("inspect", [](std::span<const std::string>) { return 0; });
    return program;
  };
  using Arguments = std::vector<std::string>;
  for (const Arguments& line :
       {Arguments{"inspect", "--device", "cuda"}, Arguments{"inspect", "--json", "--device=cuda"}}) {
    const auto moved = bound("shardscope").decide(line);
    ASSERT_TRUE(moved);
    EXPECT_EQ(moved->kind, Decision::Kind::hand_over);
    EXPECT_EQ(moved->program, "shardscope-train");
    EXPECT_EQ(bound("shardscope-train").decide(line)->kind, Decision::Kind::run);
  }
  const Arguments file{"inspect", "a.sst"};
  EXPECT_EQ(bound("shardscope").decide(file)->kind, Decision::Kind::run);
  const auto back = bound("shardscope-train").decide(file);
  EXPECT_EQ(back->kind, Decision::Kind::hand_over);
  EXPECT_EQ(back->program, "shardscope");
}

TEST(Dispatch, WhatThisVersionLacksIsRefusedAndNotAdvertised) {
  const std::vector<KnownCommand> commands{{"search", "shardscope", "finds"},
                                           {"foretell", "shardscope", "foretells", "foretells", false}};
  Program program("shardscope", "0.1.0", commands);
  program.add("search", [](std::span<const std::string>) { return 0; });
  const std::vector<std::string> later{"foretell"};
  const auto decision = program.decide(later);
  ASSERT_FALSE(decision);
  EXPECT_EQ(decision.error().code, Errc::unavailable);
  EXPECT_EQ(decision.error().what, "'foretell' is not in this version");
  EXPECT_EQ(program.help().find("foretell"), std::string::npos);
  EXPECT_EQ(shardscope().help().find("inspect"), std::string::npos);
  // Nor suggested for a name that is nearly the same.
  const std::vector<std::string> nearly{"foretel"};
  EXPECT_EQ(program.decide(nearly).error().help.find("'foretell'"), std::string::npos);
  EXPECT_NE(decide({"profil"}).error().help.find("'profile'"), std::string::npos);
  EXPECT_NE(shardscope().help().find("\n  train "), std::string::npos);
}

TEST(Dispatch, HelpCommandIsThatCommandsHelp) {
  EXPECT_EQ(decide({"help", "train"})->arguments, std::vector<std::string>{"--help"});
  EXPECT_EQ(decide({"--help"})->text, shardscope().help());
  EXPECT_EQ(decide({"--version"})->text, "shardscope 0.1.0\n");
}

TEST(Dispatch, HelpAloneListsQuestions) {
  const std::string list = decide({"help"})->text;
  for (const Question& each : questions()) EXPECT_NE(list.find(each.question), std::string::npos) << each.topic;
  EXPECT_EQ(decide({"help", "fit"})->text, answered(*find_question("fit")));
}

TEST(Dispatch, HelpOfACommandCanShowAllOptions) {
  EXPECT_EQ(decide({"help", "train", "all"})->arguments, (std::vector<std::string>{"--help", "all"}));
}

TEST(Dispatch, HelpExplainsWords) {
  const std::string all = decide({"help", "words"})->text;
  for (const char* word : {"digest", "live peak", "extent", "gather set", "reported waste", "headroom"})
    EXPECT_NE(all.find("\n  " + std::string(word)), std::string::npos) << word;
  EXPECT_TRUE(decide({"help", "digest"})->text.starts_with("  digest: "));
  EXPECT_TRUE(decide({"help", "live", "peak"})->text.starts_with("  live peak: "));
  EXPECT_TRUE(decide({"help", "Live_Peak"})->text.starts_with("  live peak: "));
  // A command of that name is meant first.
  EXPECT_EQ(decide({"help", "plan"})->command, "plan");
  const auto unknown = decide({"help", "digset"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::usage);
  EXPECT_NE(unknown.error().help.find("did you mean 'digest'?"), std::string::npos);
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
  const std::string alike =
      "Easily confused: simulate predicts, compare lines two traces up, train runs, verify proves a "
      "strategy equal to unsharded training, dryrun runs your own PyTorch program on "
      "a "
      "stand-in GPU.";
  EXPECT_NE(help.find(alike), std::string::npos) << help;
}

TEST(Dispatch, AProgramThatIsNotBuiltIsUnavailable) {
  const Error error = hand_over("shardscope-nowhere", "view", {});
  EXPECT_EQ(error.code, Errc::unavailable);
  EXPECT_EQ(error.what, "'view' is run by shardscope-nowhere, which is not built");
  EXPECT_TRUE(error.where.ends_with("/shardscope-nowhere"));
}

}  // namespace
}  // namespace shard::cli
