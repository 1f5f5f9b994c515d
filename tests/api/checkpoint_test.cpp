// Does a loop of one's own save and go on with the bits of a run that was never interrupted, and survive a disk?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <shardscope/shardscope.h>

#include <filesystem>

#include "tests/api/trainings.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using shardscope::Model;
using shardscope::Options;
using shardscope::Plan;
using shardscope::Resume;
using shardscope::Training;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

void step_to(Training& training, std::int64_t steps) {
  while (training.steps() < steps) {
    const auto step = training.step();
    ASSERT_TRUE(step) << to_string(step.error());
    EXPECT_EQ(step->number, training.steps());
    for (const auto& memory : step->memory) EXPECT_EQ(memory.measured, memory.predicted) << step->number;
  }
}

std::string saved(Training& training, const std::string& folder) {
  const auto saved = training.save(folder);
  EXPECT_TRUE(saved) << to_string(saved.error());
  return saved ? saved->path : "";
}

const Options kRun{"--sequence", "32", "--global-batch", "4", "--micro-batch", "1", "--steps", "4", "--seed", "5"};

struct Class {
  const char* name;
  Options numbers;
};

class Resumed : public testing::TestWithParam<Class> {};

TEST_P(Resumed, HasTheBitsOfTheRunThatWentOn) {
  const ScratchDirectory scratch;
  const Options numbers = with(kRun, GetParam().numbers);
  Training whole = start(plan_of(numbers));
  step_to(whole, 4);
  const std::string expected = state_of(whole);
  const std::vector<Options> strategies{{"--ranks", "2", "--stage", "3", "--unit", "chunk"},
                                        {"--ranks", "4", "--stage", "1"},
                                        {"--ranks", "2", "--stage", "2", "--placement", "host"}};
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    const std::string folder = scratch.file("saved" + std::to_string(i));
    Training first = start(plan_of(with(numbers, strategies[i])));
    step_to(first, 2);
    const std::string path = saved(first, folder);
    EXPECT_EQ(path, folder + "/step-00000002");
    step_to(first, 4);
    EXPECT_EQ(state_of(first), expected) << "saving changed the run " << i;
    Training second = must(Training::load(plan_of(with(numbers, strategies[(i + 1) % 3])), folder));
    EXPECT_EQ(second.steps(), 2);
    EXPECT_THAT(second.notes(), IsEmpty());
    step_to(second, 4);
    EXPECT_EQ(state_of(second), expected) << "going on from " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Classes, Resumed,
                         testing::Values(Class{"fp32", {"--lr", "2e-3", "--lr-schedule", "cosine"}},
                                         Class{"bf16", {"--precision", "bf16", "--optimizer", "adamw"}},
                                         Class{"fp16", {"--precision", "fp16", "--clip-norm", "1"}}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Checkpoints, AreThoseOfTheCommand) {
  const ScratchDirectory scratch;
  const Options train = with({"train", "--model", "gpt2-nano", "--data", "random", "--json"}, kRun);
  const std::string expected = json_of(shardscope(train)).at("state_sha256");
  {
    Training training = start(plan_of(with(kRun, {"--ranks", "2"})));
    step_to(training, 3);
    saved(training, scratch.file("own"));
  }
  EXPECT_EQ(json_of(shardscope(with(train, {"--resume", scratch.file("own")}))).at("state_sha256"), expected);
  static_cast<void>(
      json_of(shardscope(with(train, {"--save", scratch.file("command"), "--save-every", "3", "--ranks", "2"}))));
  Training training = must(Training::load(plan_of(with(kRun, {"--stage", "3"})), scratch.file("command")));
  EXPECT_EQ(training.steps(), 3);
  step_to(training, 4);
  EXPECT_EQ(state_of(training), expected);
}

TEST(Checkpoints, KeepsTheNewest) {
  const ScratchDirectory scratch;
  Training training = start(plan_of(kRun));
  for (std::int64_t n = 1; n <= 4; ++n) {
    step_to(training, n);
    const auto saved = training.save(scratch.file("kept"), 2);
    ASSERT_TRUE(saved) << to_string(saved.error());
    EXPECT_EQ(saved->steps, n);
    EXPECT_GT(saved->bytes.count(), 0);
  }
  std::vector<std::string> there;
  for (const auto& each : std::filesystem::directory_iterator(scratch.file("kept")))
    there.push_back(each.path().filename());
  EXPECT_THAT(there, testing::UnorderedElementsAre("step-00000003", "step-00000004"));
}

TEST(Checkpoints, ThatCannotBeSavedLeaveTheRunAsItWas) {
  const ScratchDirectory scratch;
  const Options strategy = with(kRun, {"--ranks", "2", "--stage", "3"});
  Training whole = start(plan_of(strategy));
  step_to(whole, 4);
  Training training = start(plan_of(strategy));
  step_to(training, 2);
  const auto failed = training.save(scratch.write("a_file", "text"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::cannot_create);
  EXPECT_THAT(to_string(failed.error()), HasSubstr("a_file"));
  step_to(training, 3);
  saved(training, scratch.file("folder"));
  step_to(training, 4);
  EXPECT_EQ(state_of(training), state_of(whole));
}

TEST(Checkpoints, WhatCannotBeDoneIsNamed) {
  const ScratchDirectory scratch;
  Training training = start(plan_of(kRun));
  const auto early = training.save(scratch.file("folder"));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Errc::contradiction);
  EXPECT_EQ(training.state_sha256().error().code, Errc::contradiction);
  EXPECT_FALSE(std::filesystem::exists(scratch.file("folder")));
  step_to(training, 1);
  EXPECT_EQ(training.save(scratch.file("folder"), -1).error().code, Errc::contradiction);
  saved(training, scratch.file("folder"));

  const auto nothing = Training::load(plan_of(kRun), scratch.file("nowhere"));
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Errc::no_input);

  const Plan other = plan_of(with(kRun, {"--weight-decay", "0.5"}));
  const auto refused = Training::load(other, scratch.file("folder"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::contradiction);
  EXPECT_THAT(to_string(refused.error()),
              testing::AllOf(HasSubstr("weight decay 0.01, now 0.5"), HasSubstr("Resume::inexact")));
  Training inexact = must(Training::load(other, scratch.file("folder"), Resume::inexact));
  EXPECT_THAT(inexact.notes(), SizeIs(1));
  step_to(inexact, 2);

  const Training moved = std::move(training);
  // NOLINTBEGIN(bugprone-use-after-move)
  EXPECT_EQ(training.steps(), 0);
  EXPECT_EQ(training.save(scratch.file("folder")).error().code, Errc::contradiction);
  // NOLINTEND(bugprone-use-after-move)
}

TEST(Checkpoints, OptionsOfTheCommandNameTheCallsHere) {
  for (const auto& [option, call] : std::vector<std::pair<Options, std::string>>{
           {{"--save", "/nowhere/at/all"}, "save()"}, {{"--resume", "/nowhere/at/all"}, "load()"}}) {
    const auto plan = shardscope::compile(*Model::open("gpt2-nano"), option);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Errc::contradiction);
    EXPECT_THAT(to_string(plan.error()), HasSubstr("Training::" + call));
  }
}

}  // namespace
}  // namespace shard::test
