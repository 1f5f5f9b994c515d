// When a run breaks, does it end with the promised exit code and message, and leave nothing behind?
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "executor/flight/verdict.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

/// A training run that would take hours, marked so that its processes can be found.
class LongRun {
 public:
  explicit LongRun(const Words& more = {})
      : temporary_(scratch_.path() / "tmp"),
        mark_("SHARDSCOPE_TEST_RUN=" + scratch_.path().string()),
        program_(command(more),
                 {.directory = scratch_.path(),
                  .environment = {{"SHARDSCOPE_TEST_RUN", scratch_.path().string()}, {"TMPDIR", make(temporary_)}}}) {}

  Program& program() { return program_; }

  /// Processes of this run whose environment also holds `variable`.
  [[nodiscard]] std::vector<pid_t> processes(const std::string& variable = "") const {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string environment = '\0' + read_file(entry.path() / "environ");
      if (environment.find('\0' + mark_ + '\0') == std::string::npos) continue;
      if (!variable.empty() && environment.find('\0' + variable + '\0') == std::string::npos) continue;
      found.push_back(std::stoi(name));
    }
    return found;
  }
  [[nodiscard]] Words files() const { return scratch_.list(); }
  [[nodiscard]] const fs::path& directory() const { return scratch_.path(); }

 private:
  static Words command(const Words& more) {
    Words words{shardscope_path(), "train", "--model",    "gpt2-nano", "--data",  "random",  "--ranks", "3",
                "--stage",         "3",     "--sequence", "64",        "--steps", "1000000", "--trace", "measured.sst"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::string make(const fs::path& path) {
    fs::create_directory(path);
    return path.string();
  }

  ScratchDirectory scratch_;
  fs::path temporary_;
  std::string mark_;
  Program program_;
};

TEST(BrokenRun, AKilledRankIsNamedAndNothingIsLeft) {
  LongRun run;
  ASSERT_TRUE(run.program().read_line("step 2/")) << run.program().wait().err;
  const std::vector<pid_t> victim = run.processes("OMPI_COMM_WORLD_RANK=1");
  ASSERT_EQ(victim.size(), 1u);
  ASSERT_EQ(kill(victim[0], SIGKILL), 0);
  const Outcome outcome = run.program().wait();
  EXPECT_EQ(outcome.exit_code, 75);
  EXPECT_THAT(outcome.err, HasSubstr("rank 1"));
  EXPECT_THAT(outcome.err, HasSubstr("signal 9"));
  EXPECT_THAT(run.processes(), IsEmpty());
  EXPECT_EQ(run.files(), Words{"tmp"});
}

/// Whether all ranks but one have come to wait, and stay where they are for many looks at their recorders.
bool others_wait(pid_t launcher, std::int32_t but) {
  std::vector<std::uint64_t> before;
  int unchanged = 0;
  for (int look = 0; look < 20'000 && unchanged < 200; ++look) {
    std::vector<std::uint64_t> now;
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(launcher) + "/fd")) {
      std::error_code gone;
      if (fs::read_symlink(entry.path(), gone).string().find("shardscope-recorder") == std::string::npos) continue;
      const int file = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
      const auto read = flight::read_recordings(flight::content_of(file));
      close(file);
      if (!read || read->front().rank == but) continue;
      if (flight::position_of(read->front()).awaited) now.push_back(read->front().entries.back().number);
    }
    std::ranges::sort(now);
    unchanged = now.size() == 2 && now == before ? unchanged + 1 : 0;
    before = now;
  }
  return unchanged == 200;
}

TEST(BrokenRun, TheVerdictSaysWhereARankDiedAndWhoWaits) {
  for (const int rank : {0, 2}) {
    LongRun run({"--recorder", "kept"});
    ASSERT_TRUE(run.program().read_line("step 2/")) << run.program().wait().err;
    const std::vector<pid_t> victim = run.processes("OMPI_COMM_WORLD_RANK=" + std::to_string(rank));
    ASSERT_EQ(victim.size(), 1u);
    // Stopped until the others wait for it and move no more.
    ASSERT_EQ(kill(victim[0], SIGSTOP), 0);
    ASSERT_TRUE(others_wait(run.program().process(), rank));
    const fs::path kept = run.directory() / "kept";
    ASSERT_EQ(kill(victim[0], SIGKILL), 0);
    const Outcome outcome = run.program().wait();
    EXPECT_EQ(outcome.exit_code, 75);
    const std::string named = "rank " + std::to_string(rank);
    EXPECT_THAT(
        outcome.err,
        MatchesRegex(
            "shardscope: [a-z0-9 ]+: " + named + " died: signal 9 \\(Killed\\)\n  " + named +
            " died (in|behind) step [0-9]+, .*ranks [0-2], [0-2] wait in it\n  try: run again\nrecorders are in kept: .*\n"));
    EXPECT_EQ(run.files(), (Words{"kept", "tmp"}));
    const nlohmann::json j = json_of(shardscope({"inspect", kept.string(), "--json"}));
    EXPECT_THAT(outcome.err, HasSubstr("  " + j.at("verdict").get<std::string>()));
    EXPECT_EQ(j.at("ranks").size(), 3u);
    EXPECT_EQ(j.at("ranks")[1].at("events").size(), 20u);
  }
}

TEST(BrokenRun, AnInterruptedRunEndsByThatSignalAndLeavesNothing) {
  for (const int signal : {SIGINT, SIGTERM}) {
    LongRun run;
    ASSERT_TRUE(run.program().read_line("step 2/")) << run.program().wait().err;
    ASSERT_EQ(kill(run.program().process(), signal), 0);
    const Outcome outcome = run.program().wait();
    EXPECT_EQ(outcome.signal, signal) << outcome.exit_code << outcome.err;
    EXPECT_THAT(outcome.err, MatchesRegex("shardscope: [a-z0-9 ]+: stopped by signal: (Interrupt|Terminated)\n"));
    EXPECT_THAT(run.processes(), IsEmpty());
    EXPECT_EQ(run.files(), Words{"tmp"});
  }
}

// Over shared memory and by messages, which wait side by side.
TEST(BrokenRun, AStoppedRankIsNamedWithTheStep) {
  LongRun shared({"--timeout", "4", "--transport", "shared"});
  LongRun messages({"--timeout", "4", "--transport", "messages"});
  for (LongRun* const run : {&shared, &messages}) {
    ASSERT_TRUE(run->program().read_line("step 2/")) << run->program().wait().err;
    const std::vector<pid_t> victim = run->processes("OMPI_COMM_WORLD_RANK=2");
    ASSERT_EQ(victim.size(), 1u);
    ASSERT_EQ(kill(victim[0], SIGSTOP), 0);
  }
  for (LongRun* const run : {&shared, &messages}) {
    const Outcome outcome = run->program().wait();
    EXPECT_EQ(outcome.exit_code, 75);
    EXPECT_THAT(outcome.err, MatchesRegex("shardscope: step [0-9]+, rank [01] [a-z_]+ op [0-9]+: .*ranks? .*2 ha.*"));
    EXPECT_THAT(outcome.err, MatchesRegex(".*\n  rank 2 has made no progress for [0-9]+ s in step [0-9]+, in .*; "
                                          "(ranks 0, 1 wait|rank 0 waits) for it in collective [0-9]+ .*"));
    EXPECT_THAT(run->processes(), IsEmpty());
    EXPECT_EQ(run->files(), Words{"tmp"});
  }
}

TEST(BrokenRun, OneRankEndsByItsSignalToo) {
  const ScratchDirectory scratch;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Program program({shardscope_path(), "train", "--model", "gpt2-nano", "--data", kText, "--steps", "1000000",
                     "--trace", "measured.sst"},
                    {.directory = scratch.path()});
    ASSERT_TRUE(program.read_line("step 2/"));
    ASSERT_EQ(kill(program.process(), signal), 0);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.signal, signal) << outcome.exit_code << outcome.err;
    EXPECT_THAT(outcome.err, MatchesRegex("shardscope: step [0-9]+: stopped by signal: [A-Z][a-z]+\n"));
    EXPECT_EQ(scratch.list(), Words{});
  }
}

TEST(BrokenRun, AResultThatIsLostIsAnErrorForAnyNumberOfRanks) {
  for (const std::string ranks : {"1", "2"}) {
    const Outcome outcome =
        run({"/bin/sh", "-c",
             "exec " + shardscope_path() + " train --model gpt2-nano --data random --steps 1 --ranks " + ranks +
                 " > /dev/full"});
    EXPECT_EQ(outcome.exit_code, 74);
    EXPECT_EQ(outcome.err, "shardscope: stdout: the result could not be written\n  try: is the disk full?\n");
  }
}

TEST(BrokenRun, DataThatIsNoFileIsRefusedAtOnce) {
  const ScratchDirectory scratch;
  ASSERT_EQ(mkfifo(scratch.file("pipe").c_str(), 0600), 0);
  for (const std::string& path : {scratch.file("pipe"), std::string("/dev/zero")}) {
    const Outcome outcome = shardscope({"train", "--model", "gpt2-nano", "--data", "text:" + path});
    EXPECT_EQ(outcome.exit_code, 66);
    EXPECT_THAT(outcome.err, HasSubstr(path + ": the data is not a regular file"));
  }
}

TEST(BrokenRun, DataThatIsCutShortMeanwhileIsSaid) {
  const ScratchDirectory scratch;
  scratch.write("text", std::string(10'000, 'x'));
  Program program({shardscope_path(), "train", "--model", "gpt2-nano", "--data", "text:text", "--steps", "1000000"},
                  {.directory = scratch.path()});
  ASSERT_TRUE(program.read_line("step 2/"));
  fs::resize_file(scratch.file("text"), 100);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.exit_code, 65) << outcome.signal;
  EXPECT_THAT(outcome.err, HasSubstr("text: the data file was changed while it was being read: it had 10000 bytes"));
}

TEST(BrokenRun, MoreRanksThanAMachineIsAskedForAreRefused) {
  const Outcome outcome = shardscope({"train", "--model", "gpt2-nano", "--data", "random", "--ranks", "257"});
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.err, HasSubstr("asks for 257 processes on this machine; at most 256 are started"));
}

TEST(BrokenRun, AReaderThatGoesAwayLeavesNothingBehind) {
  const ScratchDirectory scratch;
  const fs::path temporary = scratch.path() / "tmp";
  fs::create_directory(temporary);
  const Outcome outcome =
      run({"/bin/sh", "-c",
           "TMPDIR=" + temporary.string() + " " + shardscope_path() +
               " train --model gpt2-nano --data random --ranks 2 --steps 1000000 --sequence 16 2>&1 | head -n 1"});
  EXPECT_THAT(outcome.out, HasSubstr("gpt2-nano"));
  EXPECT_TRUE(fs::is_empty(temporary));
}

/// So nothing is left even where everything is killed at once.
TEST(BrokenRun, SharedMemoryHasNoNameOnceAllRanksHaveIt) {
  LongRun run;
  ASSERT_TRUE(run.program().read_line("step 2/")) << run.program().wait().err;
  const std::vector<pid_t> ranks = run.processes("OMPI_COMM_WORLD_RANK=1");
  ASSERT_EQ(ranks.size(), 1u);
  const auto named = [&] {
    const std::string maps = read_file("/proc/" + std::to_string(ranks[0]) + "/maps");
    EXPECT_THAT(maps, HasSubstr("/dev/shm/.shardscope-ranks-"));
    std::istringstream lines(maps);
    for (std::string line; std::getline(lines, line);)
      if (line.find("/dev/shm/.shardscope-ranks-") != std::string::npos && !line.ends_with(" (deleted)")) return true;
    return false;
  };
  // Ranks say where they are ten times a second; steps are shorter.
  for (int step = 3; step < 5000 && named(); ++step)
    ASSERT_TRUE(run.program().read_line("step " + std::to_string(step) + "/"));
  EXPECT_FALSE(named());
  ASSERT_EQ(kill(run.program().process(), SIGTERM), 0);
  EXPECT_EQ(run.program().wait().signal, SIGTERM);
}

TEST(BrokenRun, TheLongestTimeoutIsNotOver) {
  const Outcome outcome = shardscope({"train", "--model", "gpt2-nano", "--data", "random", "--ranks", "2", "--steps",
                                      "1", "--timeout", "1152921504606846976"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

#ifndef SANITIZED  // a sanitizer's shadow is terabytes of address space
TEST(BrokenRun, TooLittleAddressSpaceIsSaid) {
  for (const auto& [ranks, kib] : {std::pair{"1", "81920"}, {"2", "81920"}, {"2", "102400"}, {"2", "204800"}}) {
    const Outcome outcome = run({"/bin/sh", "-c",
                                 std::string("ulimit -v ") + kib + "; exec " + shardscope_path() +
                                     " train --model gpt2-nano --data random --steps 1 --ranks " + ranks});
    EXPECT_EQ(outcome.exit_code, 69) << outcome.signal;
    EXPECT_THAT(outcome.err,
                HasSubstr(" of address space, and " + std::to_string(std::stoi(kib) / 1024) + " MiB are allowed"));
  }
}
#endif

TEST(BrokenRun, TooLittleSharedMemoryIsSaidBeforeItIsUsed) {
  const ScratchDirectory scratch;
  // 16 TB of arenas: more than any machine that this runs on has.
  scratch.write("huge.json", R"({"model_type": "mlp", "sizes": [1000000, 1000000], "bias": true, "loss": "mse"})");
  const Outcome outcome = shardscope({"train", "--model", "huge.json", "--data", "random", "--ranks", "2", "--stage",
                                      "3", "--trace", "measured.sst", "--json"},
                                     {.directory = scratch.path()});
  const nlohmann::json answer = json_of(outcome, 3);
  EXPECT_EQ(answer["fits"], false);
  EXPECT_THAT(outcome.err, HasSubstr("of shared memory"));
  EXPECT_THAT(outcome.err, HasSubstr("are available"));
  // The place, and what makes room.
  EXPECT_THAT(outcome.err, AnyOf(HasSubstr("/dev/shm: "), HasSubstr("/tmp: "), HasSubstr("/: ")));
  EXPECT_THAT(outcome.err, HasSubstr("--shm-size"));
  EXPECT_EQ(scratch.list(), Words{"huge.json"});
}

TEST(BrokenRun, OneRankWithoutMemoryForItsArenaSaysSo) {
  const ScratchDirectory scratch;
  scratch.write("huge.json", R"({"model_type": "mlp", "sizes": [10000000, 10000000], "bias": true, "loss": "mse"})");
  const Outcome outcome =
      shardscope({"train", "--model", "huge.json", "--data", "random"}, {.directory = scratch.path()});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("no memory for an arena of "));
}

}  // namespace
}  // namespace shard::test
