// A run that gets a signal at any moment of its life: does it end by it, with the message, and leave nothing behind?
// SHARDSCOPE_SIGNALS is the number of runs for each signal (the ordinary run: a few; the claim in docs: 200).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using testing::IsEmpty;

/// A short training run with traces, so that all its parts are likely to be hit.
class ShortRun {
 public:
  explicit ShortRun(int ranks)
      : tmp_(make(scratch_.path() / "tmp")),
        program_({shardscope_path(), "train", "--model", "gpt2-nano", "--data", kText, "--ranks", std::to_string(ranks),
                  "--stage", ranks == 1 ? "0" : "3", "--steps", "12", "--sequence", "64", "--trace", "measured.sst"},
                 {.directory = scratch_.path(),
                  .environment = {{"SHARDSCOPE_TEST_RUN", scratch_.path().string()}, {"TMPDIR", tmp_}}}) {}

  Program& program() { return program_; }

  [[nodiscard]] std::vector<pid_t> processes() const {
    return processes_with("SHARDSCOPE_TEST_RUN=" + scratch_.path().string());
  }
  /// A trace that was whole before the signal came may stay.
  [[nodiscard]] Words files() const {
    Words left = scratch_.list();
    std::erase(left, "tmp");
    if (shardscope({"inspect", scratch_.file("measured.sst")}).exit_code == 0) std::erase(left, "measured.sst");
    return left;
  }

 private:
  static std::string make(const fs::path& path) {
    fs::create_directory(path);
    return path.string();
  }

  ScratchDirectory scratch_;
  std::string tmp_;
  Program program_;
};

/// Directories of ranks in shared memory that nobody uses: those of other runs are locked.
std::set<std::string> abandoned_segments() {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    if (!entry.path().filename().string().starts_with(".shardscope-ranks-")) continue;
    const int directory = open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) continue;
    if (flock(directory, LOCK_EX | LOCK_NB) == 0) found.insert(entry.path().string());
    close(directory);
  }
  return found;
}

double seconds_of_a_run(int ranks) {
  const auto begin = Clock::now();
  ShortRun run(ranks);
  EXPECT_EQ(run.program().wait().exit_code, 0);
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Signals : public testing::TestWithParam<int> {};

TEST_P(Signals, AtAnyMomentOfARun) {
  const char* asked = std::getenv("SHARDSCOPE_SIGNALS");
  const int runs = asked == nullptr ? 2 : std::atoi(asked);
  const int signal = GetParam();
  const std::string said = std::string("stopped by signal: ") + strsignal(signal) + "\n";
  const std::set<std::string> segments = abandoned_segments();
  std::minstd_rand random(std::random_device{}());                     // failures name their moment
  const int first = std::uniform_int_distribution<int>(0, 3)(random);  // two of the four numbers of ranks, or all
  std::map<int, double> life;
  std::vector<double> answers;
  int before_main = 0;
  int too_late = 0;
  for (int done = 0; done < runs;) {
    const int ranks = 1 + (first + done) % 4;
    if (!life.contains(ranks)) life[ranks] = seconds_of_a_run(ranks);
    ShortRun run(ranks);
    const double moment = std::uniform_real_distribution<double>(0, life[ranks])(random);
    std::this_thread::sleep_for(std::chrono::duration<double>(moment));
    const auto sent = Clock::now();
    ASSERT_EQ(kill(run.program().process(), signal), 0);
    const Outcome outcome = run.program().wait();
    const double took = std::chrono::duration<double>(Clock::now() - sent).count();
    if (outcome.exit_code == 0) {  // it was over
      ++too_late;
      continue;
    }
    ++done;
    answers.push_back(took);
    SCOPED_TRACE("ranks " + std::to_string(ranks) + ", signal after " + std::to_string(moment) + " s, stderr:\n" +
                 outcome.err);
    EXPECT_EQ(outcome.signal, signal) << "exit code " << outcome.exit_code;
    if (outcome.err.empty()) {  // the loader was still at work
      ++before_main;
      EXPECT_EQ(outcome.out, "");
    } else {
      EXPECT_TRUE(outcome.err.starts_with("shardscope: ") && outcome.err.ends_with(said));
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    }
    EXPECT_THAT(run.processes(), IsEmpty());
    EXPECT_THAT(run.files(), IsEmpty());
  }
  EXPECT_EQ(abandoned_segments(), segments);
  std::ranges::sort(answers);
  const auto at = [&](double share) {
    return answers[static_cast<std::size_t>(share * static_cast<double>(answers.size() - 1))];
  };
  std::printf(
      "%s: %d runs, from signal to end %.3f s (median), %.3f s (95 %%), %.3f s (longest), %td over a second; "
      "%d before main, %d ended before the signal\n",
      strsignal(signal), runs, at(0.5), at(0.95), at(1), answers.end() - std::ranges::upper_bound(answers, 1.0),
      before_main, too_late);
}

INSTANTIATE_TEST_SUITE_P(Both, Signals, testing::Values(SIGINT, SIGTERM),
                         [](const auto& setting) { return setting.param == SIGINT ? "SIGINT" : "SIGTERM"; });

}  // namespace
}  // namespace shard::test
