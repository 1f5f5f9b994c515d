// Is a run that gets a signal with --save-at-exit saved behind its step, ended by that signal, and gone on with to the
// bits of one that nobody stopped; and does a second signal end it as ever?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// What is the same in every run of these tests.
Words stopped_command(int ranks, const Words& more) {
  Words words{shardscope_path(), "train", "--model", "gpt2-nano",           "--data",  kText,
              "--sequence",      "32",    "--ranks", std::to_string(ranks), "--stage", ranks == 1 ? "0" : "3",
              "--global-batch",  "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// A run that would take hours, and whoever it starts.
class RunToStop {
 public:
  explicit RunToStop(int ranks, const Words& more = {"--save-at-exit"})
      : program_(stopped_command(ranks, with(more)),
                 {.directory = scratch_.path(), .environment = {{"SHARDSCOPE_TEST_RUN", scratch_.path().string()}}}) {}

  Program& program() { return program_; }
  [[nodiscard]] std::string folder() const { return scratch_.file("saved"); }
  [[nodiscard]] std::vector<pid_t> processes() const {
    return processes_with("SHARDSCOPE_TEST_RUN=" + scratch_.path().string());
  }
  [[nodiscard]] pid_t rank(int number) const {
    const std::vector<pid_t> found = processes_with("OMPI_COMM_WORLD_RANK=" + std::to_string(number));
    for (const pid_t each : processes())
      if (std::ranges::find(found, each) != found.end()) return each;
    return -1;
  }
  [[nodiscard]] const ScratchDirectory& scratch() const { return scratch_; }
  /// Names of what was saved.
  [[nodiscard]] Words saved() const {
    Words names;
    if (fs::exists(folder()))
      for (const auto& entry : fs::directory_iterator(folder())) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }

 private:
  static Words with(Words more) {
    more.insert(more.end(), {"--steps", "1000000", "--save", "saved", "--trace", "measured.sst"});
    return more;
  }

  ScratchDirectory scratch_;
  Program program_;
};

std::string state_of(int ranks, const Words& more) {
  Words words = more;
  words.emplace_back("--json");
  return json_of(run(stopped_command(ranks, words)))["state_sha256"];
}

/// The one checkpoint that the run left is whole: who goes on from it ends where who was never stopped does.
void expect_goes_on(const RunToStop& run, const Outcome& outcome, int signal) {
  EXPECT_EQ(outcome.signal, signal) << outcome.exit_code << outcome.err;
  EXPECT_THAT(run.processes(), IsEmpty());
  const Words saved = run.saved();
  ASSERT_EQ(saved.size(), 1u) << outcome.err;
  const std::string number = saved.front().substr(std::string("step-").size());
  const int steps = std::stoi(number);
  EXPECT_GE(steps, 3);
  EXPECT_THAT(outcome.err, HasSubstr("step " + std::to_string(steps) + ": stopped by signal: " + strsignal(signal) +
                                     "; saved saved/" + saved.front() + "\n  try: --resume saved, to go on\n"));
  EXPECT_EQ(run.scratch().list().front(), "saved");
  EXPECT_THAT(run.scratch().list(), Not(testing::Contains(HasSubstr("measured"))));
  const std::string all = std::to_string(steps + 2);
  EXPECT_EQ(state_of(2, {"--steps", all, "--resume", run.folder()}), state_of(1, {"--steps", all}));
}

TEST(StoppedRun, ASignalToTheLauncherIsSavedAndGoneOnFrom) {
  for (const int ranks : {1, 2})
    for (const int signal : {SIGTERM, SIGINT}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + strsignal(signal));
      RunToStop run(ranks);
      ASSERT_TRUE(run.program().read_line("step 3/")) << run.program().wait().err;
      ASSERT_EQ(kill(run.program().process(), signal), 0);
      const Outcome outcome = run.program().wait();
      EXPECT_THAT(outcome.err, HasSubstr("the run is saved behind this step"));
      EXPECT_THAT(outcome.out, Not(HasSubstr("predicted = measured")));
      expect_goes_on(run, outcome, signal);
    }
}

TEST(StoppedRun, ASignalToOneRankIsAllRanks) {
  for (const int rank : {0, 1}) {
    RunToStop run(2);
    ASSERT_TRUE(run.program().read_line("step 3/")) << run.program().wait().err;
    ASSERT_EQ(kill(run.rank(rank), SIGTERM), 0);
    expect_goes_on(run, run.program().wait(), SIGTERM);
  }
}

TEST(StoppedRun, ASignalToTheGroupOrToEachProcessIsOne) {
  RunToStop run(2);
  ASSERT_TRUE(run.program().read_line("step 3/")) << run.program().wait().err;
  for (const pid_t each : {run.rank(0), run.rank(1), -run.program().process()}) ASSERT_EQ(kill(each, SIGTERM), 0);
  expect_goes_on(run, run.program().wait(), SIGTERM);
}

TEST(StoppedRun, ASecondSignalEndsItAtOnce) {
  RunToStop run(2);
  ASSERT_TRUE(run.program().read_line("step 3/")) << run.program().wait().err;
  ASSERT_EQ(kill(run.rank(1), SIGSTOP), 0);  // so the step does not end
  const auto runs = [&] {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(run.program().process()), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  };
  // Those that come at once with the first belong to it.
  for (; runs(); sched_yield()) kill(run.program().process(), SIGTERM);
  const Outcome outcome = run.program().wait();
  EXPECT_EQ(outcome.signal, SIGTERM) << outcome.exit_code;
  EXPECT_THAT(outcome.err, HasSubstr("the run is saved behind this step"));
  EXPECT_THAT(outcome.err, HasSubstr("stopped by signal: Terminated\n"));
  EXPECT_THAT(run.saved(), IsEmpty());
  EXPECT_THAT(run.processes(), IsEmpty());
}

TEST(StoppedRun, WithoutTheOptionTheFirstSignalEndsIt) {
  RunToStop run(2, {});
  ASSERT_TRUE(run.program().read_line("step 3/")) << run.program().wait().err;
  ASSERT_EQ(kill(run.program().process(), SIGTERM), 0);
  const Outcome outcome = run.program().wait();
  EXPECT_EQ(outcome.signal, SIGTERM) << outcome.exit_code;
  EXPECT_THAT(outcome.err, Not(HasSubstr("saved")));
  EXPECT_THAT(run.saved(), IsEmpty());
}

TEST(StoppedRun, RanksOnADeviceInOneProcessAreSavedToo) {
  RunToStop run(2, {"--save-at-exit", "--device", "emulated-cuda"});
  ASSERT_TRUE(run.program().read_line("step 3/")) << run.program().wait().err;
  ASSERT_EQ(kill(run.program().process(), SIGTERM), 0);
  const Outcome outcome = run.program().wait();
  EXPECT_EQ(outcome.signal, SIGTERM) << outcome.exit_code << outcome.err;
  EXPECT_EQ(run.saved().size(), 1u);
  EXPECT_THAT(outcome.err, HasSubstr("stopped by signal: Terminated; saved saved/step-"));
}

}  // namespace
}  // namespace shard::test
