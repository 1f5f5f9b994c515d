// A process that is asked to end: what it says, what it cleans up, how it dies.
#include "traces/base/stop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "traces/base/run_place.h"

namespace shard {
namespace {

/// Runs `body` in a child that takes signals; what it said and how it ended.
struct Ended {
  int status = 0;
  std::string said;
};

template <class Body>
Ended run(Body body) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const auto write_line = [&](const std::string& line) {
    static_cast<void>(!write(ends[1], (line + "\n").data(), line.size() + 1));
  };
  const pid_t child = fork();
  if (child == 0) {
    {
      const stop::SignalThread signals([&](const Error& error) { write_line(to_string(error)); });
      if (!signals.started()) _exit(99);
      body(write_line);
    }
    _exit(7);
  }
  close(ends[1]);
  Ended ended;
  std::array<char, 256> buffer{};
  for (ssize_t n = 0; (n = read(ends[0], buffer.data(), buffer.size())) > 0;)
    ended.said.append(buffer.data(), static_cast<std::size_t>(n));
  close(ends[0]);
  waitpid(child, &ended.status, 0);
  return ended;
}

void wait_for_the_end() {
  while (true) pause();
}

TEST(Stop, ASignalIsSaidAndDiedOf) {
  for (const auto& [number, name] :
       {std::pair{SIGINT, "Interrupt"}, {SIGTERM, "Terminated"}, {SIGHUP, "Hangup"}, {SIGQUIT, "Quit"}}) {
    if (number == SIGQUIT) signal(number, SIG_DFL);  // a shell's background ignores it
    const Ended ended = run([number = number](auto) {
      kill(getpid(), number);
      wait_for_the_end();
    });
    EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == number) << ended.status;
    EXPECT_EQ(ended.said, std::string("stopped by signal: ") + name + "\n");
  }
}

TEST(Stop, TheStepIsNamedAndTheLastCleanUpComesFirst) {
  const Ended ended = run([](auto write_line) {
    set_run_place({RunPart::step, 12});
    const stop::Registration first = stop::at_stop([=] { write_line("first"); });
    const stop::Registration second = stop::at_stop([=] { write_line("second"); });
    {
      const stop::Registration gone = stop::at_stop([=] { write_line("gone"); });
    }
    kill(getpid(), SIGTERM);
    wait_for_the_end();
  });
  EXPECT_EQ(ended.said, "step 12: stopped by signal: Terminated\nsecond\nfirst\n");
}

TEST(Stop, ACauseIsSaidInsteadByWhoeverSpeaksForTheProcess) {
  const Ended ended = run([](auto write_line) {
    const stop::Registration cause = stop::with_cause([] { return Error{Errc::retryable, "rank 1 died", "", ""}; });
    const stop::Registration say = stop::with_say([=](const Error& error) { write_line("said: " + error.what); });
    kill(getpid(), SIGTERM);
    wait_for_the_end();
  });
  EXPECT_EQ(ended.said, "said: rank 1 died\n");
}

TEST(Stop, NothingIsDoneOrSaidBesideIt) {
  const Ended ended = run([](auto write_line) {
    const auto hold = std::make_unique<stop::NotNow>();
    kill(getpid(), SIGINT);
    write_line("before");
  });
  EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGINT) << ended.status;
  EXPECT_EQ(ended.said, "before\nstopped by signal: Interrupt\n");
}

TEST(Stop, ATickCanEndTheProcess) {
  const Ended ended = run([](auto) {
    int ticks = 0;
    const stop::Registration tick = stop::every(std::chrono::milliseconds{1}, [&] {
      if (++ticks == 3) stop::end({Errc::retryable, "late", "", ""});
    });
    wait_for_the_end();
  });
  EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 75) << ended.status;
  EXPECT_EQ(ended.said, "late\n");
}

TEST(Stop, AFirstSignalMayWaitForAnAnswer) {
  const Ended ended = run([](auto write_line) {
    std::array<int, 2> asked{};
    if (pipe2(asked.data(), O_CLOEXEC) != 0) _exit(99);
    const stop::Registration answers = stop::at_first_signal([=](int signal) {
      write_line("asked " + std::to_string(signal));
      static_cast<void>(!write(asked[1], "x", 1));
    });
    kill(getpid(), SIGTERM);
    char byte = 0;
    static_cast<void>(!read(asked[0], &byte, 1));
    kill(getpid(), SIGTERM);  // timeout(1) sends two at once
    write_line("answered");
  });
  EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGTERM) << ended.status;
  EXPECT_EQ(ended.said, "asked 15\nanswered\n");
}

TEST(Stop, AFirstSignalEndsAsEverWhereNobodyHasAnAnswerAnyMore) {
  const Ended ended = run([](auto write_line) {
    {
      const stop::Registration gone = stop::at_first_signal([=](int) { write_line("asked"); });
    }
    kill(getpid(), SIGINT);
    wait_for_the_end();
  });
  EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGINT) << ended.status;
  EXPECT_EQ(ended.said, "stopped by signal: Interrupt\n");
}

TEST(Stop, WorkThatWasAskedMayEndInItsOwnWay) {
  const Ended ended = run([](auto write_line) {
    std::array<int, 2> asked{};
    if (pipe2(asked.data(), O_CLOEXEC) != 0) _exit(99);
    const stop::Registration answers = stop::at_first_signal([=](int) { static_cast<void>(!write(asked[1], "x", 1)); });
    kill(getpid(), SIGTERM);
    char byte = 0;
    static_cast<void>(!read(asked[0], &byte, 1));
    stop::end_by(0);
    write_line("whole");
  });
  EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 7) << ended.status;
  EXPECT_EQ(ended.said, "whole\n");
}

TEST(Stop, BehindARequestThatWasNoSignalTheFirstSignalEnds) {
  const Ended ended = run([](auto write_line) {
    const stop::Registration answers =
        stop::at_first_signal([=](int signal) { write_line("asked " + std::to_string(signal)); });
    stop::ask(SIGINT);
    kill(getpid(), SIGTERM);
    wait_for_the_end();
  });
  EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGTERM) << ended.status;
  EXPECT_EQ(ended.said, "asked 2\nstopped by signal: Terminated\n");
}

TEST(Stop, ASignalThatIsNotHeededIsNoRequest) {
  const Ended ended = run([](auto write_line) {
    const stop::Registration answers =
        stop::at_first_signal([=](int) { write_line("asked"); }, [](pid_t sender) { return sender != getpid(); });
    kill(getpid(), SIGTERM);
    wait_for_the_end();
  });
  EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGTERM) << ended.status;
  EXPECT_EQ(ended.said, "stopped by signal: Terminated\n");
}

TEST(Stop, AHangupOrQuitThatIsIgnoredStaysIgnored) {
  for (const int number : {SIGHUP, SIGQUIT}) {
    signal(number, SIG_IGN);
    const Ended ended = run([number](auto) { kill(getpid(), number); });
    signal(number, SIG_DFL);
    EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 7) << ended.status;
    EXPECT_EQ(ended.said, "");
  }
}

TEST(Stop, AChildGetsTheSignals) {
  const Ended ended = run([](auto) {
    const sigset_t mask = stop::mask_for_children();
    _exit(sigismember(&mask, SIGINT) == 0 && sigismember(&mask, SIGTERM) == 0 ? 3 : 4);
  });
  EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 3) << ended.status;
}

}  // namespace
}  // namespace shard
