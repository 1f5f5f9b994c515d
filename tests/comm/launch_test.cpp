// Does a job end as promised, whatever ends it: exit code, one message, no process and no file left?
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <regex>

#include "executor/launch/mpirun_command.h"
#include "executor/launch/role.h"
#include "traces/base/scratch.h"

namespace shard::test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

/// A running program with its stdout and stderr in pipes.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    int output[2];
    int errors[2];
    EXPECT_EQ(pipe2(output, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(errors, O_CLOEXEC), 0);
    process_ = fork();
    if (process_ == 0) {
      dup2(output[1], STDOUT_FILENO);
      dup2(errors[1], STDERR_FILENO);
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(output[1]);
    close(errors[1]);
    descriptors_ = {{{output[0], POLLIN, 0}, {errors[0], POLLIN, 0}}};
  }
  ~Program() {
    for (const pollfd& descriptor : descriptors_)
      if (descriptor.fd >= 0) close(descriptor.fd);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void read_until_lines(long lines) {
    while (std::count(out.begin(), out.end(), '\n') < lines && read_some()) {
    }
  }
  void send(int signal) const { kill(process_, signal); }
  /// As from waitpid.
  int finish() {
    while (read_some()) {
    }
    int status = 0;
    waitpid(process_, &status, 0);
    return status;
  }

  std::string out;
  std::string err;

 private:
  bool read_some() {
    if (descriptors_[0].fd < 0 && descriptors_[1].fd < 0) return false;
    poll(descriptors_.data(), descriptors_.size(), -1);
    for (std::size_t i = 0; i < descriptors_.size(); ++i) {
      if (descriptors_[i].fd < 0 || descriptors_[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t bytes = read(descriptors_[i].fd, buffer.data(), buffer.size());
      if (bytes > 0) {
        (i == 0 ? out : err).append(buffer.data(), static_cast<std::size_t>(bytes));
        continue;
      }
      close(descriptors_[i].fd);
      descriptors_[i].fd = -1;
    }
    return true;
  }

  pid_t process_ = -1;
  std::array<pollfd, 2> descriptors_{};
};

class Job : public testing::Test {
 protected:
  void SetUp() override {
    scratch_ = Scratch::make(fs::temp_directory_path().string());
    ASSERT_TRUE(scratch_.has_value());
    setenv("TMPDIR", scratch_->path().c_str(), 1);
  }
  void TearDown() override {
    setenv("TMPDIR", temporary_.c_str(), 1);
    setenv("PATH", path_.c_str(), 1);
  }

  static std::vector<std::string> job(const char* ranks, const char* fault, const char* transport = "shared") {
    return {JOB_PROGRAM, ranks, fault, transport};
  }

  /// What `out` says the ranks were is gone, and so is every file of the job.
  void expect_nothing_left(const std::string& out, int ranks) {
    const std::regex line(R"(rank (\d+) process (\d+) files (\S+))");
    int seen = 0;
    for (std::sregex_iterator match(out.begin(), out.end(), line), end; match != end; ++match, ++seen) {
      EXPECT_NE(kill(std::stoi((*match)[2]), 0), 0) << "still there: " << match->str();
      EXPECT_FALSE(fs::exists((*match)[3].str())) << "still there: " << match->str();
    }
    EXPECT_EQ(seen, ranks) << out;
    EXPECT_TRUE(fs::is_empty(scratch_->path())) << "files left in " << scratch_->path();
  }

  std::optional<Scratch> scratch_;
  const std::string path_ = std::getenv("PATH");
  const std::string temporary_ = std::getenv("TMPDIR");
};

TEST_F(Job, EndsWell) {
  Program program(job("3", "none"));
  EXPECT_EQ(program.finish(), 0);
  EXPECT_EQ(program.err, "");
  expect_nothing_left(program.out, 3);
}

TEST_F(Job, HasMoreRanksThanCores) {
  Program program(job("9", "none"));
  EXPECT_EQ(program.finish(), 0);
  EXPECT_EQ(program.err, "");
  expect_nothing_left(program.out, 9);
}

TEST_F(Job, OneRankNeedsNoMpirun) {
  setenv("PATH", "/nonexistent", 1);
  Program program(job("1", "none"));
  EXPECT_EQ(program.finish(), 0);
}

TEST_F(Job, SaysThatMpirunIsAbsent) {
  setenv("PATH", "/nonexistent", 1);
  Program program(job("2", "none"));
  EXPECT_EQ(WEXITSTATUS(program.finish()), 69);
  EXPECT_THAT(program.err, HasSubstr("mpirun is not installed"));
}

class JobWithTransport : public Job, public testing::WithParamInterface<const char*> {};

TEST_P(JobWithTransport, NamesARankThatIsKilled) {
  Program program(job("3", "kill", GetParam()));
  EXPECT_EQ(WEXITSTATUS(program.finish()), 75);
  EXPECT_THAT(program.err, HasSubstr("rank 1 died: signal 9 (Killed)"));
  EXPECT_EQ(std::count(program.err.begin(), program.err.end(), '\n'), 2) << program.err;
  expect_nothing_left(program.out, 3);
}

TEST_P(JobWithTransport, PassesOnARanksOwnCodeAndMessageOnce) {
  Program program(job("3", "malformed", GetParam()));
  EXPECT_EQ(WEXITSTATUS(program.finish()), 65);
  EXPECT_EQ(program.err, "data.bin:7: token 300 is not in the vocabulary\n");
  expect_nothing_left(program.out, 3);
}

INSTANTIATE_TEST_SUITE_P(Transports, JobWithTransport, testing::Values("shared", "messages"),
                         [](const auto& setting) { return std::string(setting.param); });

TEST_F(Job, NamesARankThatReturnsWithoutAWord) {
  Program program(job("2", "quit"));
  EXPECT_EQ(WEXITSTATUS(program.finish()), 75);
  EXPECT_THAT(program.err, HasSubstr("rank 1 died: it returned 7 without saying why"));
  expect_nothing_left(program.out, 2);
}

TEST_F(Job, NamesARankThatHangs) {
  Program program(job("2", "hang"));
  EXPECT_EQ(WEXITSTATUS(program.finish()), 75);
  EXPECT_THAT(program.err, HasSubstr("rank 0 all_gather op 10: rank 1 has not arrived within 2 s"));
  expect_nothing_left(program.out, 2);
}

TEST_F(Job, NamesARankThatIsStopped) {
  Program program(job("3", "stopped"));
  EXPECT_EQ(WEXITSTATUS(program.finish()), 75);
  EXPECT_THAT(program.err, HasSubstr("all_gather op 10: rank 1 has not arrived within 2 s"));
  expect_nothing_left(program.out, 3);
}

TEST_F(Job, NamesARankThatIsStoppedBeforeItComes) {
  Program program(job("3", "stopped-before-coming"));
  EXPECT_EQ(WEXITSTATUS(program.finish()), 75);
  EXPECT_THAT(program.err, HasSubstr("rank 1 has not come within 2 s"));
  EXPECT_TRUE(fs::is_empty(scratch_->path()));
}

TEST_F(Job, NamesARankThatIsStoppedWhileTheOthersJoin) {
  Program program(job("3", "stopped-before-joining"));
  EXPECT_EQ(WEXITSTATUS(program.finish()), 75);
  EXPECT_THAT(program.err, HasSubstr(": rank 1 has not been heard of within 2 s"));
  EXPECT_TRUE(fs::is_empty(scratch_->path()));
}

/// Ranks that somebody else's mpirun starts. Open MPI 4.1's may wait for ever for a lock of PMIx once all its ranks
/// have ended (pmix_rte_finalize): `timeout` then ends it.
std::vector<std::string> foreign_mpirun(const char* scenario) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  return {find_in_path("timeout"),
          "--signal=KILL",
          "120",
          find_in_path("mpirun"),
          "--oversubscribe",
          "-n",
          "3",
          JOB_PROGRAM,
          "3",
          scenario,
          "shared"};
}

TEST_F(Job, UnderAForeignMpirunARankThatWaitsToJoinGivesUp) {
  Program program(foreign_mpirun("stopped-before-joining"));
  EXPECT_NE(program.finish(), 0);
  EXPECT_THAT(program.err, HasSubstr("joining the other ranks: MPI_Init_thread has not returned within 2 s"));
}

TEST_F(Job, NamesThePlaceThatIsTooSmallForTheArenas) {
  Program program(job("2", "large"));
  EXPECT_EQ(WEXITSTATUS(program.finish()), 3);
  EXPECT_THAT(program.err,
              testing::MatchesRegex("/[^:]*: the ranks' arenas and MPI need 2251[0-9]* bytes .* are available\n.*"));
  EXPECT_TRUE(fs::is_empty(scratch_->path()));
}

TEST_F(Job, LeavesNothingBehindWhenInterrupted) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Program program(job("3", "forever"));
    program.read_until_lines(3);
    program.send(signal);
    const int status = program.finish();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal);
    EXPECT_THAT(program.err, testing::MatchesRegex("[a-z0-9 ]+: stopped by signal: (Interrupt|Terminated)\n"));
    expect_nothing_left(program.out, 3);
  }
}

TEST_F(Job, ALaterOneRemovesWhatAKilledParentLeft) {
  Program killed(job("2", "forever"));
  killed.read_until_lines(2);
  killed.send(SIGKILL);
  killed.finish();
  for (const fs::directory_entry& left : fs::directory_iterator(scratch_->path())) {
    const int descriptor = open(left.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    flock(descriptor, LOCK_EX);  // waits for mpirun to end, as it does when its parent is gone
    close(descriptor);
  }
  Program next(job("2", "none"));
  EXPECT_EQ(next.finish(), 0);
  EXPECT_TRUE(fs::is_empty(scratch_->path()));
}

TEST_F(Job, UnderAForeignMpirunSurvivorsSayWhoDied) {
  Program program(foreign_mpirun("kill"));
  EXPECT_NE(program.finish(), 0);
  EXPECT_TRUE(std::regex_search(program.err, std::regex("rank 0[^:]*: rank 1 died"))) << program.err;
  EXPECT_TRUE(std::regex_search(program.err, std::regex("rank 2[^:]*: rank 1 died"))) << program.err;
}

}  // namespace
}  // namespace shard::test
