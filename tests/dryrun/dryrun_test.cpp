// Does `shardscope dryrun` run a program on a GPU that is not there, and say what its allocator did?
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>

#include "sim/cluster/examples.h"
#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class DryRun : public FakePyTorch {};

/// Libraries look whether PyTorch is there, and load it later.
TEST_F(DryRun, AProgramThatLooksForPyTorchBeforeItLoadsItIsToldWhole) {
  const nlohmann::json answer =
      json_of(dryrun("import importlib.util\nassert importlib.util.find_spec('torch').loader\nimport torch\nkept = "
                     "torch.empty(3 << 20)\n"));
  EXPECT_EQ(answer["peak_allocated_bytes"], 3 << 20);
}

TEST_F(DryRun, NamesOfFunctionsAreLookedUpTheFastWayUnlessAsked) {
  constexpr const char* kProgram = R"(import os, torch
kept = torch.empty(1 << 20)
print(os.environ["TORCH_SYMBOLIZE_MODE"])
)";
  EXPECT_THAT(dryrun(kProgram, {}).out, HasSubstr("fast"));
  more_environment_["TORCH_SYMBOLIZE_MODE"] = "addr2line";
  EXPECT_THAT(dryrun(kProgram, {}).out, HasSubstr("addr2line"));
}

TEST_F(DryRun, APlaceWithinALibraryIsNoLine) {
  constexpr const char* kProgram = R"-(import torch
exec(compile("kept = torch.empty(1 << 20)", "/lib/libfirst.so", "exec"))
exec(compile("more = torch.empty(1 << 20)", "/lib/libmore.so.6", "exec"))
exec(compile("last = torch.empty(1 << 20)", "/lib/also.py", "exec"))
)-";
  const nlohmann::json answer = json_of(dryrun(kProgram, {"--json", "--by", "stack"}), 0);
  std::map<std::string, int> lines;
  for (const auto& holder : answer["holders"])
    lines[holder["stack"][0]["file"].get<std::string>()] = holder["stack"][0]["line"].get<int>();
  const std::map<std::string, int> expected{{"/lib/libfirst.so", 0}, {"/lib/libmore.so.6", 0}, {"/lib/also.py", 1}};
  EXPECT_EQ(lines, expected);
}

TEST_F(DryRun, HowFarTheGpuIsBehindIsANumberOrWait) {
  for (const std::string_view said : {"3x", "-1", "", "waiting"})
    EXPECT_EQ(dryrun("pass", {"--behind", std::string(said)}).exit_code, 2) << said;
}

TEST_F(DryRun, SaysWhatWasHeldAtThePeakAndByWhichLine) {
  const Outcome outcome = dryrun(R"(import torch
first = torch.empty(3 << 20)
second = torch.empty(5 << 20)
second.free()
third = torch.empty(4 << 20)
)");
  const nlohmann::json answer = json_of(outcome, 0);
  EXPECT_EQ(answer["peak_allocated_bytes"], 8 << 20);
  EXPECT_EQ(answer["out_of_memory"], false);
  EXPECT_EQ(answer["verdict"], "fits");
  EXPECT_GT(answer["outside_allocator_bytes"]["low"], 0);
  EXPECT_EQ(answer["exit_code"], 0);
  ASSERT_EQ(answer["holders"].size(), 2u);
  EXPECT_EQ(answer["holders"][0]["bytes"], 5 << 20);
  EXPECT_EQ(answer["holders"][0]["line"], 3);
  EXPECT_THAT(answer["holders"][0]["file"].get<std::string>(), HasSubstr("program.py"));
  EXPECT_EQ(answer["holders"][1]["line"], 2);
}

TEST_F(DryRun, OutOfMemoryIsTheProgramsOwnFault) {
  const Outcome outcome = dryrun("import torch\nkept = [torch.empty(1 << 30) for _ in range(200)]\n",
                                 {"--json", "--cluster", "a100-40gb-x8"});
  const nlohmann::json answer = json_of(outcome, 1);
  EXPECT_EQ(answer["out_of_memory"], true);
  EXPECT_EQ(answer["verdict"], "does_not_fit");
  EXPECT_EQ(answer["exit_code"], 1);
  EXPECT_THAT(outcome.err, HasSubstr("OutOfMemoryError"));
  const std::int64_t capacity = answer["capacity_bytes"];
  EXPECT_EQ(answer["peak_allocated_bytes"], capacity >> 30 << 30);
}

TEST_F(DryRun, AFirstRequestBeyondTheCardIsOutOfMemory) {
  const std::string program = "import torch\nkept = torch.empty(200 << 30)\n";
  const nlohmann::json answer = json_of(dryrun(program), 1);
  EXPECT_EQ(answer["out_of_memory"], true);
  EXPECT_EQ(answer["verdict"], "does_not_fit");
  EXPECT_EQ(answer["unmet"]["requests"], 1);
  EXPECT_EQ(answer["unmet"]["bytes"], std::int64_t{200} << 30);
  EXPECT_EQ(answer["unmet"]["line"], 2);
  EXPECT_THAT(answer["unmet"]["file"].get<std::string>(), HasSubstr("program.py"));
  const std::string text = dryrun(program, {}).out;
  EXPECT_THAT(text, HasSubstr("does not fit"));
  EXPECT_THAT(text, HasSubstr("214,748,364,800 bytes (200.00 GiB) were asked for at program.py:2"));
}

TEST_F(DryRun, WhatWasAskedForInVainIsToldOfAProgramThatGoesOn) {
  const nlohmann::json answer = json_of(dryrun(R"(import torch
for size in (300 << 30, 200 << 30, 3 << 20):
    try:
        kept = torch.empty(size)
    except torch.OutOfMemoryError:
        pass
)"),
                                        0);
  EXPECT_EQ(answer["verdict"], "does_not_fit");
  EXPECT_EQ(answer["unmet"]["requests"], 2);
  EXPECT_EQ(answer["unmet"]["bytes"], std::int64_t{200} << 30);
  EXPECT_EQ(answer["peak_allocated_bytes"], 3 << 20);
}

TEST_F(DryRun, EndsAsTheProgramEnds) {
  const std::string begin = "import os, signal, sys, torch\nkept = torch.empty(1 << 20)\n";
  const struct {
    const char* end;
    int exit_code, signal;
  } kEnds[] = {{"sys.exit(7)", 7, 0},
               {"raise ValueError('no')", 1, 0},
               {"os._exit(3)", 3, 0},
               {"os.kill(os.getpid(), signal.SIGTERM)", 143, 15}};
  for (const auto& each : kEnds) {
    const nlohmann::json answer = json_of(dryrun(begin + each.end + "\n"), each.exit_code);
    EXPECT_EQ(answer["exit_code"], each.exit_code) << each.end;
    EXPECT_EQ(answer["signal"], each.signal) << each.end;
    EXPECT_EQ(answer["peak_allocated_bytes"], 1 << 20) << each.end;
  }
}

TEST_F(DryRun, OfOneThatIsKilledWhatItTookIsKnownButNotWhoHeldIt) {
  const std::string program =
      "import os, signal, torch\nkept = torch.empty(3 << 20)\nos.kill(os.getpid(), signal.SIGKILL)\n";
  const nlohmann::json answer = json_of(dryrun(program), 137);
  EXPECT_EQ(answer["signal"], 9);
  EXPECT_EQ(answer["peak_allocated_bytes"], 0);
  EXPECT_EQ(answer["peak_reserved_bytes"], 4 << 20) << "granules of 2 MiB";
  EXPECT_THAT(dryrun(program, {}).out, HasSubstr("ended before it could say who held it"));
}

TEST_F(DryRun, KeptItIsAskedAgainOnAnotherCard) {
  const std::string file = scratch_.file("run.program");
  const nlohmann::json ran = json_of(dryrun(R"(import torch
first = torch.empty(3 << 30)
second = torch.empty(5 << 30)
second.free()
third = torch.empty(40 << 30)
)",
                                            {"--json", "--save", file}),
                                     0);
  const auto asked = [&](const char* cluster, int exit_code) {
    return json_of(shardscope({"simulate", "--program", file, "--cluster", cluster, "--json"}), exit_code);
  };
  const nlohmann::json same = asked("h100-80gb-x8", 0);
  EXPECT_EQ(same["peak_allocated_bytes"], ran["peak_allocated_bytes"]);
  EXPECT_EQ(same["verdict"], ran["verdict"]);
  EXPECT_EQ(same["outside_allocator_bytes"], ran["outside_allocator_bytes"]);
  EXPECT_THAT(same["largest_holders"][0]["name"].get<std::string>(), HasSubstr("program.py:5"));
  EXPECT_EQ(asked("a100-40gb-x8", 3)["verdict"], "does_not_fit");
}

TEST_F(DryRun, OfAProgramWithoutAGpuNothingIsKept) {
  const std::string file = scratch_.file("run.program");
  const Outcome outcome = dryrun("print('hello')\n", {"--save", file});
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.err, HasSubstr("used no GPU"));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(DryRun, WhatCannotBeWrittenIsSaidInTheAnswerItself) {
  for (const char* option : {"--trace", "--save"}) {
    const nlohmann::json answer = json_of(dryrun("pass", {"--json", option, scratch_.path() / "file.pickle"}), 78);
    EXPECT_EQ(answer["error"]["code"], "contradiction") << option;
    EXPECT_EQ(answer["peak_allocated_bytes"], 0) << option;
  }
}

TEST_F(DryRun, PinnedHostMemoryIsAFigureOfItsOwn) {
  const nlohmann::json answer = json_of(dryrun(R"(import ctypes, torch
kept = torch.empty(1 << 20)
runtime, pointer = ctypes.CDLL(None), ctypes.c_void_p()
for _ in range(2):
    assert runtime.cudaHostAlloc(ctypes.byref(pointer), ctypes.c_size_t(5000), 0) == 0
    assert runtime.cudaFreeHost(pointer) == 0
)"),
                                        0);
  EXPECT_EQ(answer["pinned_host_peak_bytes"], 5000);
  EXPECT_GT(answer["host_peak_resident_bytes"], 1 << 20);
}

/// As python/unwritten.py writes it: more than is resident here.
TEST_F(DryRun, HostMemoryThatIsNotWrittenToIsCountedAsTheProgramHasIt) {
  const std::string program = R"(import os, torch
kept = torch.empty(1 << 20)
with open(os.path.join(os.environ["SHARDSCOPE_DRYRUN_FOLDER"], "1.host"), "w") as file:
    file.write(str(3 << 40))
)";
  const nlohmann::json answer = json_of(dryrun(program), 0);
  EXPECT_EQ(answer["host_peak_bytes"], std::int64_t{3} << 40);
  EXPECT_LT(answer["host_peak_resident_bytes"], std::int64_t{1} << 40);
  EXPECT_THAT(dryrun(program, {}).out, HasSubstr("host memory     3072.00 GiB resident at most, of which "));
  const nlohmann::json written = json_of(dryrun("import torch\nkept = torch.empty(1 << 20)"), 0);
  EXPECT_EQ(written["host_peak_bytes"], written["host_peak_resident_bytes"]);
}

TEST_F(DryRun, CardsAreFullOneByOne) {
  const nlohmann::json answer = json_of(dryrun(R"(import ctypes
runtime, pointer = ctypes.CDLL(None), ctypes.c_void_p()
for card in (0, 1):
    assert runtime.cudaSetDevice(card) == 0
    assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(60 << 30)) == 0, card
assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(60 << 30)) == 2
assert runtime.cudaSetDevice(8) == 101
)",
                                               {"--json", "--devices", "8"}),
                                        0);
  EXPECT_EQ(answer["peak_reserved_bytes"], std::int64_t{60} << 30);
}

TEST_F(DryRun, SeesTheCardsThatItsEnvironmentLeaves) {
  const std::string program = R"(import ctypes, os
count = ctypes.c_int(-1)
for visible, cards in (("0,1,5", 3), ("", 0), ("-1", 0), ("3,9,1", 1), ("GPU-abc", 1)):
    os.environ["CUDA_VISIBLE_DEVICES"] = visible
    ctypes.CDLL(None).cudaGetDeviceCount(ctypes.byref(count))
    assert count.value == cards, (visible, count.value)
)";
  EXPECT_EQ(dryrun(program, {"--devices", "8"}).exit_code, 0);
}

TEST_F(DryRun, AStreamsCaptureGoesOnToThoseThatWaitForIt) {
  const std::string program = R"(import ctypes
runtime, status, graph = ctypes.CDLL(None), ctypes.c_int(), ctypes.c_void_p()

def capturing(stream):
    assert runtime.cudaStreamIsCapturing(ctypes.c_void_p(stream), ctypes.byref(status)) == 0
    return status.value == 1

first, second, event = 16, 32, ctypes.c_void_p(48)
assert not capturing(first)
assert runtime.cudaStreamBeginCapture(ctypes.c_void_p(first), 0) == 0
assert capturing(first) and not capturing(second)
runtime.cudaEventRecord(event, ctypes.c_void_p(first))
runtime.cudaStreamWaitEvent(ctypes.c_void_p(second), event, 0)
assert capturing(second)
assert runtime.cudaStreamEndCapture(ctypes.c_void_p(first), ctypes.byref(graph)) == 0 and graph.value
assert not capturing(first) and not capturing(second)
)";
  const Outcome outcome = dryrun(program);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(DryRun, APeakBeforeWhatIsKeptIsSaid) {
  const std::string program = "import torch\nkept = torch.empty(1 << 20)\n";
  EXPECT_EQ(json_of(dryrun(program), 0)["unrecorded_peak_bytes"], 0);
  const std::string earlier = program + "torch.cuda.memory.peak = 5 << 20\n";
  EXPECT_EQ(json_of(dryrun(earlier), 0)["unrecorded_peak_bytes"], 5 << 20);
  EXPECT_THAT(dryrun(earlier, {}).out,
              HasSubstr("an earlier peak of 5,242,880 bytes (5.00 MiB) is not among the last"));
}

TEST_F(DryRun, OfALaunchOnlyTheStackIsLookedAt) {
  const Outcome outcome = dryrun(R"(import ctypes, os, torch
library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libuses_cuda.so"))
assert library.launch_with_odd_arguments() == 0
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(DryRun, HelpNamesEveryCard) {
  const std::string help = shardscope({"dryrun", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("Usage: shardscope dryrun [options] -- PROGRAM [ARGUMENT...]\n"));
  for (const cluster::ExampleCluster& each : cluster::example_clusters()) {
    if (each.name != "cpu-local") {
      EXPECT_THAT(help, HasSubstr(std::string(each.name)));
    }
  }
}

TEST_F(DryRun, ATimeOutEndsItWithTheAnswerUpToThere) {
  // A busy machine may take longer than that to come to the program's second line: then longer.
  for (const char* const seconds : {"2", "8", "64"}) {
    const Outcome outcome = dryrun("import signal, torch\nkept = torch.empty(1 << 20)\nwhile True: signal.pause()\n",
                                   {"--json", "--timeout", seconds});
    const nlohmann::json answer = json_of(outcome, 75);
    ASSERT_EQ(answer["timed_out"], true);
    if (answer["peak_allocated_bytes"] == 1 << 20) return;
  }
  FAIL() << "nothing of the program in the answer";
}

TEST_F(DryRun, WhatTheProgramPrintsIsNoPartOfTheAnswer) {
  const Outcome outcome = dryrun("print('hello')\n");
  EXPECT_EQ(json_of(outcome, 0)["peak_allocated_bytes"], 0);
  EXPECT_THAT(outcome.err, HasSubstr("hello"));
  EXPECT_THAT(dryrun("print('hello')\n", {}).out, HasSubstr("hello"));
}

TEST_F(DryRun, FunctionsThatNobodyKnowsSucceedAndAreNamed) {
  const Outcome outcome = dryrun(R"(import ctypes, os, torch
library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libuses_cuda.so"))
assert library.allocate_and_frobnicate() == 0
)");
  EXPECT_EQ(json_of(outcome, 0)["unknown_functions"], nlohmann::json({"cudaFrobnicate"}));
}

TEST_F(DryRun, IsOneRankOfMany) {
  const Outcome outcome =
      dryrun("import os\nprint(*(os.environ[n] for n in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE')))\n",
             {"--world-size", "16", "--rank", "9"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("9 1 16 8"));
}

TEST_F(DryRun, WhatItRecordedIsATrace) {
  const std::string program = "import torch\nkept = torch.empty(3 << 20)\n";
  const nlohmann::json answer = json_of(dryrun(program, {"--json", "--trace", "run.sst"}), 0);
  EXPECT_EQ(dryrun(program, {"--json", "--trace", "run.pickle"}).exit_code, 0);
  for (const char* file : {"run.sst", "run.pickle"}) {
    const nlohmann::json seen =
        json_of(shardscope({"inspect", file, "--at", "peak", "--json"}, {.directory = scratch_.path()}), 0);
    EXPECT_EQ(seen["peak"]["allocated_bytes"], answer["peak_allocated_bytes"]) << file;
    EXPECT_EQ(seen["peak"]["holders"][0]["line"], 2) << file;
  }
}

TEST_F(DryRun, TheUsersSitecustomizeRunsToo) {
  scratch_.write("packages/sitecustomize.py", "import builtins\nbuiltins.theirs = 5\n");
  EXPECT_EQ(dryrun("import sys\nsys.exit(theirs)\n").exit_code, 5);
}

TEST_F(DryRun, WhatPythonPrintsAtItsStartIsNoAnswer) {
  for (const char* line :
       {"print('hello')\nprint('world')\nprint('13.0')\n", "import sys\nsys.stdout.write('unfinished')\n"}) {
    scratch_.write("packages/sitecustomize.py", line);
    const nlohmann::json answer = json_of(dryrun("import torch\nkept = torch.empty(1 << 20)\n"), 0);
    EXPECT_EQ(answer["pytorch_version"], "0.0+fake");
    EXPECT_EQ(answer["peak_allocated_bytes"], 1 << 20);
  }
}

TEST_F(DryRun, FoldersThatNoListOfLibrariesTakesDoNoHarm) {
  for (const char* name : {"with blank", "with:colon", "with$dollar"}) {
    more_environment_ = {{"TMPDIR", scratch_.path() / name}};
    fs::create_directory(scratch_.path() / name);
    const nlohmann::json answer = json_of(dryrun("import torch\nkept = torch.empty(1 << 20)\n"), 0);
    EXPECT_EQ(answer["peak_allocated_bytes"], 1 << 20) << name;
  }
}

TEST_F(DryRun, WithoutTheStandInThereIsNoAnswer) {
  const Outcome outcome = shardscope({"dryrun", "--json", "--", STATIC_PROGRAM},
                                     {.directory = scratch_.path(), .environment = environment()});
  EXPECT_EQ(json_of(outcome, 69)["error"]["code"], "unavailable");
  EXPECT_THAT(outcome.err, HasSubstr("the stand-in GPU was not loaded into the program"));
  EXPECT_THAT(outcome.err, HasSubstr("TMPDIR"));
}

TEST_F(DryRun, ATimeOutBeyondAnyClockIsNone) {
  const nlohmann::json answer = json_of(dryrun("import sys\nsys.exit(3)\n", {"--json", "--timeout", "1e300"}), 3);
  EXPECT_EQ(answer["timed_out"], false);
}

TEST(DryRunFaults, SayWhatIsMissing) {
  const ScratchDirectory scratch;
  const struct {
    Words words;
    int exit_code;
    const char* says;
  } kFaults[] = {{{"dryrun"}, 2, "no program to run"},
                 {{"dryrun", "--", "python3", "-c", "pass"}, 69, "has no PyTorch"},
                 {{"dryrun", "--", "/nowhere/python3", "x.py"}, 69, "cannot be started"},
                 {{"dryrun", "--cluster", "cpu-local", "--", "python3", "x.py"}, 78, "which card"},
                 {{"dryrun", "--rank", "2", "--", "python3", "x.py"}, 78, "no rank 2"}};
  for (const auto& each : kFaults) {
    const Outcome outcome = shardscope(each.words, {.directory = scratch.path(), .environment = {{"PYTHONPATH", ""}}});
    EXPECT_EQ(outcome.exit_code, each.exit_code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(each.says));
  }
}

}  // namespace
}  // namespace shard::test
