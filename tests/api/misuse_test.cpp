// Are calls that a program must not make answered, whatever it asks, of whom, from which thread and process?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <shardscope/shardscope.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <optional>
#include <thread>
#include <vector>

#include "tests/api/trainings.h"

namespace shard::test {
namespace {

using shardscope::Model;
using shardscope::Options;
using shardscope::Plan;
using shardscope::Training;
using testing::HasSubstr;

const Options kTwoRanks{"--ranks", "2", "--stage", "3", "--sequence", "8"};

std::optional<Training> started(const Options& options) {
  return start(plan_of(options));
}

template <class T>
void expect_refused(const Result<T>& answer, const std::string& why) {
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::contradiction) << to_string(answer.error());
  EXPECT_THAT(to_string(answer.error()), HasSubstr(why));
}

TEST(Misuse, ARankThatIsNotThereIsNamed) {
  const Plan plan = plan_of(kTwoRanks);
  const auto training = started(kTwoRanks);
  for (const int rank : {-1, 2, 7, INT_MAX, INT_MIN}) {
    const std::string named = "no rank " + std::to_string(rank);
    expect_refused(plan.peak(rank), named);
    expect_refused(plan.created(rank), named);
    expect_refused(plan.first_step(rank), named);
    expect_refused(plan.steady_step(rank), named);
    expect_refused(plan.flops(rank), named);
    expect_refused(training->peak(rank), named);
  }
  EXPECT_THAT(plan.peak(2).error().help, HasSubstr("0 to 1"));
  EXPECT_TRUE(plan.peak(1));
  EXPECT_TRUE(training->peak(1));
}

// NOLINTBEGIN(bugprone-use-after-move): that is the question.
TEST(Misuse, WhatWasMovedFromAnswers) {
  Model model = *Model::open("gpt2-nano");
  const Model other_model = std::move(model);
  EXPECT_EQ(model.name(), other_model.name());
  Plan plan = plan_of(kTwoRanks);
  const Plan other_plan = std::move(plan);
  EXPECT_EQ(plan.hash(), other_plan.hash());
  EXPECT_TRUE(plan.fits());

  std::optional<Training> training = started(kTwoRanks);
  Training other = std::move(*training);
  expect_refused(training->step(), "moved from");
  expect_refused(training->step(std::vector<std::int32_t>{1}), "moved from");
  expect_refused(training->state_sha256(), "moved from");
  expect_refused(training->peak(0), "moved from");
  EXPECT_TRUE(training->created().empty());
  EXPECT_TRUE(other.step());
  *training = std::move(other);
  EXPECT_TRUE(training->step());
}
// NOLINTEND(bugprone-use-after-move)

TEST(Misuse, ASecondThreadIsRefusedAndTheStepsGoOn) {
  auto training = started(kTwoRanks);
  std::atomic<std::int64_t> done{0};
  std::atomic<int> refused{0};
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        while (refused == 0 && done < 1000) {
          const auto step = training->step();
          if (step) ++done;
          if (!step) ++(step.error().code == Errc::retryable ? refused : wrong);
        }
      });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(refused, 0);
  const auto next = training->step();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->number, done + 1);
}

TEST(Misuse, AForkedProcessIsRefusedAndEnds) {
  auto training = started(kTwoRanks);
  ASSERT_TRUE(training->step());
  const pid_t child = fork();
  if (child == 0) {
    const auto refused = [](const auto& answer) { return !answer && answer.error().code == Errc::contradiction; };
    const bool right = refused(training->step()) && refused(training->state_sha256()) && refused(training->peak(0)) &&
                       training->created().size() == 2;
    training.reset();
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(training->step());
}

TEST(Misuse, DestructionWaitsForTheStepThatRuns) {
  bool seen = false;
  for (int round = 0; round < 100 && !seen; ++round) {
    auto training = started({"--ranks", "2", "--sequence", "64", "--micro-batch", "4"});
    std::atomic<bool> ended{false};
    std::optional<Result<shardscope::Step>> step;
    std::jthread other([&] {
      do step.emplace(training->step());
      while (!*step && step->error().code == Errc::retryable);
      ended = true;
    });
    while (!seen && !ended) seen = !training->peak(0);
    if (!seen) continue;  // it was faster than this thread
    training.reset();
    other.join();
    EXPECT_TRUE(*step) << to_string(step->error());
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace shard::test
