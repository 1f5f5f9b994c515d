// Does a dry run that is stopped, or whose answer cannot be written, end as it says, and leave nothing behind?
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DryRunFault : public FakePyTorch {
 protected:
  DryRunFault() {
    std::filesystem::create_directory(scratch_.path() / "tmp");
    more_environment_["TMPDIR"] = scratch_.path() / "tmp";
  }

  /// What is left of it in TMPDIR.
  [[nodiscard]] Words left() const {
    Words names;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path() / "tmp"))
      names.push_back(entry.path().filename());
    return names;
  }

  /// Sends the signal when the program has come so far, and waits for the end.
  Outcome stopped(const std::string& program, const Words& options, int signal) {
    scratch_.write("program.py", program);
    Words words{shardscope_path(), "dryrun"};
    words.insert(words.end(), options.begin(), options.end());
    for (const char* word : {"--", "python3", "program.py"}) words.emplace_back(word);
    Program running(words, {.directory = scratch_.path(), .environment = environment()});
    EXPECT_TRUE(running.read_line("here"));
    kill(running.process(), signal);
    return running.wait();
  }
};

// PyTorch's waiting, as far as it matters. Clocks run as fast as somebody asks them.
constexpr const char* kFileBaton = R"(import os, time
clock = iter(range(1000))
time.monotonic, time.sleep = lambda: next(clock), lambda seconds: None
class FileBaton:
    wait_seconds, lock_file_path = 0.1, "extensions/lock"
    def wait(self):
        print("WAITS", os.path.exists(self.lock_file_path), flush=True)
)";

TEST_F(DryRunFault, TheLockOfABuildThatWasKilledIsNamedAndKept) {
  std::filesystem::create_directories(scratch_.path() / "packages" / "torch" / "utils");
  scratch_.write("packages/torch/utils/__init__.py", "");
  scratch_.write("packages/torch/utils/file_baton.py", kFileBaton);
  std::filesystem::create_directory(scratch_.path() / "extensions");
  constexpr const char* kBuilds = "import torch\nfrom torch.utils import file_baton\nfile_baton.FileBaton().wait()\n";
  EXPECT_THAT(dryrun(kBuilds).err, Not(HasSubstr("the program waits for")));
  scratch_.write("extensions/lock", "");
  const Outcome left = dryrun(kBuilds);
  EXPECT_THAT(left.err, HasSubstr("the program waits for " + (scratch_.path() / "extensions" / "lock").string()));
  EXPECT_THAT(left.err, HasSubstr("remove that file, or set TORCH_EXTENSIONS_DIR"));
  EXPECT_THAT(left.err + left.out, HasSubstr("WAITS True"));
  EXPECT_TRUE(exists(scratch_.path() / "extensions" / "lock"));
}

// The rank that waits does so in a child, too, which must not outlive the run.
constexpr const char* kWaits = R"(import os, signal, torch
kept = torch.empty(3 << 20)
child = os.fork()
if child == 0:
    signal.pause()
woken, wake = os.pipe()  # a signal before signal.pause() would be slept over
os.set_blocking(wake, False)
signal.set_wakeup_fd(wake)
print("here", flush=True)
while True:
    os.read(woken, 1)
)";

TEST_F(DryRunFault, ASignalEndsItWithTheAnswerUpToThere) {
  for (const int signal : {SIGINT, SIGTERM})
    for (const Words& ranks : {Words{}, Words{"--world-size", "4"}, Words{"--world-size", "2", "--rank", "all"}}) {
      const Outcome outcome = stopped(kWaits, ranks, signal);
      EXPECT_EQ(outcome.signal, signal) << outcome.err;
      EXPECT_THAT(outcome.out, HasSubstr("peak allocated  3,145,728 bytes"));
      EXPECT_THAT(left(), IsEmpty());
      EXPECT_THAT(processes_with("TMPDIR=" + more_environment_["TMPDIR"]), IsEmpty());
    }
}

TEST_F(DryRunFault, WhatARecipeWritesGoesWithTheRunEvenWhereTheProgramIsKilled) {
  scratch_.write("packages/transformers.py", R"(import os, types
class AutoConfig:
    from_pretrained = staticmethod(lambda path: types.SimpleNamespace(vocab_size=7))
class TrainingArguments:
    def __init__(self, output_dir, **said):
        assert os.path.isdir(output_dir)
        os.kill(os.getpid(), 9)
)");
  const std::filesystem::path temporary = scratch_.path() / "temporary";
  std::filesystem::create_directory(temporary);
  more_environment_["TMPDIR"] = temporary.string();
  EXPECT_EQ(recipe({"--recipe", "hf-trainer", "--model", "llama-3.1-8b"}).exit_code, 137);
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

TEST_F(DryRunFault, WhatADaemonOfTheProgramsDoesEndsWithIt) {
  const Outcome outcome = dryrun(R"(import os, signal, torch
kept = torch.empty(3 << 20)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.pause()
    os._exit(0)
)");
  EXPECT_EQ(json_of(outcome)["peak_allocated_bytes"], 3 << 20);
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_THAT(processes_with("TMPDIR=" + more_environment_["TMPDIR"]), IsEmpty());
}

TEST_F(DryRunFault, AProgramThatRunsAnotherInItsPlaceIsThatOne) {
  scratch_.write("other.py", "import torch\nkept = torch.empty(5 << 20)\n");
  const nlohmann::json answer =
      json_of(dryrun("import os, sys\nos.execv(sys.executable, [sys.executable, 'other.py'])\n"));
  EXPECT_EQ(answer["peak_allocated_bytes"], 5 << 20);
}

TEST_F(DryRunFault, AProgramThatClosesEverythingIsToldAllTheSame) {
  const nlohmann::json answer =
      json_of(dryrun("import os, torch\nkept = torch.empty(5 << 20)\nos.chdir('/')\nos.closerange(0, 100)\n"));
  EXPECT_EQ(answer["peak_allocated_bytes"], 5 << 20);
}

TEST_F(DryRunFault, OutputsNeverReplaceTheProgramNorEachOther) {
  const std::string program = "import torch\nkept = torch.empty(1 << 20)\n";
  const Words kOver[] = {{"--trace", "program.py"}, {"--save", "program.py"}, {"--trace", "a.sst", "--save", "a.sst"}};
  for (const Words& outputs : kOver) {
    const Outcome outcome = dryrun(program, outputs);
    EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
    EXPECT_EQ(read_file(scratch_.path() / "program.py"), program);
  }
}

TEST_F(DryRunFault, ADeviceIsWrittenToAndNotReplaced) {
  // A container's file system in memory may have no devices; the folder of the build then has.
  const ScratchDirectory of_build(std::filesystem::current_path());
  std::string device;
  for (const ScratchDirectory* folder : std::initializer_list<const ScratchDirectory*>{&scratch_, &of_build}) {
    const std::string made = folder->file("null");
    if (mknod(made.c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0 && std::ofstream(made).is_open()) device = made;
  }
  if (device.empty()) GTEST_SKIP() << "no right to make a device";
  EXPECT_EQ(dryrun("import torch\nkept = torch.empty(1 << 20)\n", {"--trace", device}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_character_file(device));
}

TEST_F(DryRunFault, AnAnswerThatCannotBeWrittenIsAnError) {
  scratch_.write("program.py", "import torch\nkept = torch.empty(1 << 20)\n");
  for (const char* form : {"table", "json"}) {
    const Outcome outcome =
        run({"sh", "-c", shardscope_path() + " dryrun --format " + form + " -- python3 program.py >/dev/full"},
            {.directory = scratch_.path(), .environment = environment()});
    EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
    EXPECT_THAT(left(), IsEmpty());
  }
}

TEST_F(DryRunFault, AScriptThatIsNoPythonRunsWithThePythonThatIsNamed) {
  scratch_.write("program.py", "import torch\nkept = torch.empty(3 << 20)\n");
  scratch_.write("train.sh", "python3 program.py\n");
  scratch_.write("none.sh", "exit 3\n");
  std::filesystem::create_symlink("/usr/bin/false", scratch_.path() / "no-python");
  const auto ran = [&](const Words& words) {
    return shardscope(words, {.directory = scratch_.path(), .environment = environment()});
  };
  EXPECT_EQ(json_of(ran({"dryrun", "--json", "--", "sh", "train.sh"}))["peak_allocated_bytes"], 3 << 20);
  const Outcome asked = ran({"dryrun", "--python", "./no-python", "--", "sh", "train.sh"});
  EXPECT_EQ(asked.exit_code, 69);
  EXPECT_THAT(asked.err, HasSubstr("./no-python"));
  EXPECT_THAT(ran({"dryrun", "--", "no-such-program"}).err, HasSubstr("there is none of that name"));
}

}  // namespace
}  // namespace shard::test
