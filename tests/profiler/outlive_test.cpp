// A command that runs programs ends, by a signal, a deadline or SIGKILL: does anything outlive it, and is the answer up
// to there told? SHARDSCOPE_OUTLIVES is the number of runs (the ordinary run: 12; the claim: 300).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using testing::HasSubstr;
using testing::IsEmpty;

/// Starts a child of the kind, takes a GPU's memory where it is a dry run, says "ready" and waits for its end.
constexpr const char* kProgram = R"(#!/usr/bin/env python3
import os, signal, sys
command, child, heeds, ready = (os.environ["OUTLIVE_" + name] for name in ("COMMAND", "CHILD", "PROGRAM", "READY"))
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

def ignore():
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)

if command == "dryrun":
    import torch
    kept = torch.empty(1 << 20)
started, tell = os.pipe()
if os.fork() == 0:
    if child in ("session", "daemon"):
        os.setsid()
    if child == "daemon" and os.fork() != 0:
        os._exit(0)
    if child in ("ignoring", "daemon"):
        ignore()
    nothing = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.write(tell, b"x")
    os.execvp("sleep", ["sleep", "7717"])
os.read(started, 1)
if heeds == "ignoring":
    ignore()
woken, wake = os.pipe()  # a signal before signal.pause() would be slept over
os.set_blocking(wake, False)
signal.set_wakeup_fd(wake)
with open(ready, "w") as file:
    file.write("ready")
while True:
    os.read(woken, 1)
)";

struct Case {
  std::string command;  ///< dryrun, profile, train
  std::string end;      ///< deadline, SIGKILL, twice, or a signal: to the command "alone" or to its "group"
  std::string child;    ///< plain, ignoring (signals), session (setsid), daemon (forked twice, setsid, ignoring)
  std::string program;  ///< heeding or ignoring signals
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  const Words ends{"deadline", "SIGINT alone", "SIGTERM alone", "SIGINT group", "SIGTERM group", "twice", "SIGKILL"};
  Words commands{"dryrun", "profile"};
#ifdef WITH_RANKS
  commands.emplace_back("train");
#endif
  for (const std::string& command : commands)
    for (const std::string& end : ends)
      for (const std::string child : {"plain", "ignoring", "session", "daemon"})
        for (const std::string program : {"heeding", "ignoring"}) {
          // Of a trainer that is killed the ranks themselves see it, and no signal of a terminal comes to its launcher.
          if (command == "train" && (end == "twice" || end == "SIGKILL")) continue;
          cases.push_back({command, end, child, program});
        }
  std::ranges::shuffle(cases, std::minstd_rand(7));
  return cases;
}

class Run {
 public:
  Run(const Case& which, const std::string& seconds)
      : which_(which), ready_(make_fifo()), program_(command(seconds), surroundings()) {}
  ~Run() {
    for (const int descriptor : {ready_, pidfd_}) close(descriptor);
    for (const pid_t each : left()) kill(each, SIGKILL);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// False where the command ended before its program was ready.
  [[nodiscard]] bool is_ready() const {
    std::array<pollfd, 2> either{{{ready_, POLLIN, 0}, {pidfd_, POLLIN, 0}}};
    poll(either.data(), either.size(), -1);
    return (either[0].revents & POLLIN) != 0;
  }

  [[nodiscard]] Outcome end() {
    const pid_t process = program_.process();
    if (which_.end == "SIGKILL") kill(process, SIGKILL);
    if (which_.end == "twice") {
      // Two at once count as one, so again until the end comes.
      pollfd ended{pidfd_, POLLIN, 0};
      do kill(process, SIGINT);
      while (poll(&ended, 1, 100) == 0);
    }
    if (signal() != 0) kill(which_.end.ends_with("group") ? -process : process, signal());
    return program_.wait();
  }

  [[nodiscard]] int signal() const {
    if (which_.end.starts_with("SIGINT")) return SIGINT;
    return which_.end.starts_with("SIGTERM") ? SIGTERM : 0;
  }

  [[nodiscard]] std::vector<pid_t> left() const { return processes_with("OUTLIVE_READY=" + scratch_.file("ready")); }
  /// Of the run's files; those of a command that was killed the next one removes.
  [[nodiscard]] Words files() const {
    Words found;
    for (const auto& entry : fs::directory_iterator(scratch_.path() / "tmp")) found.push_back(entry.path().string());
    return found;
  }

 private:
  int make_fifo() {
    fs::create_directory(scratch_.path() / "tmp");
    fs::create_directory(scratch_.path() / "bin");
    for (const char* const name : {"program.py", "bin/mpirun"}) {
      scratch_.write(name, kProgram);
      fs::permissions(scratch_.path() / name, fs::perms::owner_all);
    }
    fs::copy(fs::path(TEST_DATA) / "dryrun" / "fake_torch", scratch_.path() / "packages", fs::copy_options::recursive);
    mkfifo(scratch_.file("ready").c_str(), 0600);
    return open(scratch_.file("ready").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  [[nodiscard]] Words command(const std::string& seconds) const {
    Words words{programs_directory() + (which_.command == "train" ? "/shardscope-train" : "/shardscope-profile"),
                which_.command};
    const auto add = [&](const Words& more) { words.insert(words.end(), more.begin(), more.end()); };
    if (which_.command == "train")
      add({"--model", "gpt2-nano", "--data", "random", "--sequence", "64", "--ranks", "2"});
    if (which_.end == "deadline") add({"--timeout", seconds});
    if (which_.command != "train") add({"--", "python3", "program.py"});
    return words;
  }
  [[nodiscard]] Surroundings surroundings() const {
    return {.directory = scratch_.path(),
            .environment = {{"OUTLIVE_COMMAND", which_.command},
                            {"OUTLIVE_CHILD", which_.child},
                            {"OUTLIVE_PROGRAM", which_.program},
                            {"OUTLIVE_READY", scratch_.file("ready")},
                            {"PYTHONPATH", scratch_.path() / "packages"},
                            {"PYTHONDONTWRITEBYTECODE", "1"},
                            {"TMPDIR", scratch_.path() / "tmp"},
                            {"PATH", scratch_.file("bin") + ":" + std::getenv("PATH")}}};
  }

  ScratchDirectory scratch_;
  Case which_;
  int ready_;
  Program program_;
  int pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, program_.process(), 0));
};

void expect_answer(const Case& which, const Outcome& outcome) {
  if (which.end == "twice" || which.end == "SIGKILL") return;
  if (which.command == "profile") {
    EXPECT_THAT(outcome.err, HasSubstr("nothing was recorded"));
  }
  if (which.command == "train") {
    EXPECT_THAT(outcome.err, HasSubstr(which.end == "deadline" ? "not come within" : "stopped by signal"));
  }
  if (which.command != "dryrun") return;
  // A program that had to be killed could not write what it recorded; a granule of the card is 2 MiB.
  EXPECT_THAT(outcome.out, HasSubstr(which.program == "heeding" ? "peak allocated  1,048,576 bytes"
                                                                : "peak reserved   2,097,152 bytes"));
}

/// From the signal to the end in seconds; none where the deadline came before the program was ready.
std::optional<double> check(const Case& which, const std::string& deadline) {
  Run run(which, deadline);
  if (!run.is_ready()) {
    const Outcome outcome = run.end();
    EXPECT_EQ(which.end, "deadline") << outcome.err;
    return std::nullopt;
  }
  const auto begin = Clock::now();
  const Outcome outcome = run.end();
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  EXPECT_THAT(run.left(), IsEmpty());
  if (which.end != "SIGKILL") {
    EXPECT_THAT(run.files(), IsEmpty());
  }
  if (which.end == "deadline") {
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  }
  if (which.end == "SIGKILL") {
    EXPECT_EQ(outcome.signal, SIGKILL);
  }
  if (which.end == "twice") {
    EXPECT_EQ(outcome.signal, SIGINT);
  }
  if (run.signal() != 0) {
    EXPECT_EQ(outcome.signal, run.signal()) << outcome.exit_code << outcome.err;
  }
  expect_answer(which, outcome);
  return took;
}

TEST(Outlive, NothingOutlivesACommandHoweverItEnds) {
  const char* const asked = std::getenv("SHARDSCOPE_OUTLIVES");
  const int runs = asked == nullptr ? 12 : std::atoi(asked);
  const std::vector<Case> cases = all_cases();
  double longest = 0;
  for (int i = 0; i < runs; ++i) {
    const Case& which = cases[static_cast<std::size_t>(i) % cases.size()];
    const std::string name = which.command + ", " + which.end + ", child " + which.child + ", program " + which.program;
    SCOPED_TRACE(name);
    std::optional<double> took;
    // A busy machine may take longer than the deadline until the program is ready: then longer.
    for (const char* const deadline : {"2", "8", "32"})
      if (!took) took = check(which, deadline);
    ASSERT_TRUE(took.has_value());
    if (which.end != "deadline") longest = std::max(longest, *took);
  }
  std::printf("%d runs, from the signal to the end %.3f s at most\n", runs, longest);
}

}  // namespace
}  // namespace shard::test
