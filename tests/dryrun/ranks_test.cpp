// Does `shardscope dryrun --rank` run the ranks that it is asked for, and tell of each?
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "sim/cli/answers.h"
#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DryRunRanks : public FakePyTorch {};

/// Bytes by rank.
std::map<int, std::int64_t> peaks_of(const nlohmann::json& answer) {
  std::map<int, std::int64_t> peaks;
  for (const nlohmann::json& rank : answer["ranks"]) peaks[rank["rank"]] = rank["peak_allocated_bytes"];
  return peaks;
}

constexpr const char* kByRank = "import os, torch\nkept = torch.empty((1 + int(os.environ['RANK']) % 3) << 20)\n";

TEST_F(DryRunRanks, OneRunsAlone) {
  const nlohmann::json answer = json_of(dryrun(kByRank, {"--json", "--world-size", "4", "--rank", "2"}), 0);
  EXPECT_EQ(answer["rank"], 2);
  EXPECT_EQ(peaks_of(answer), (std::map<int, std::int64_t>{{2, 3 << 20}}));
}

TEST_F(DryRunRanks, AllRunSideBySideAndTheOneThatTookMostIsFirst) {
  const nlohmann::json answer = json_of(dryrun(kByRank, {"--json", "--world-size", "4", "--rank", "all"}), 0);
  EXPECT_EQ(answer["rank"], 2);
  EXPECT_EQ(answer["peak_allocated_bytes"], 3 << 20);
  EXPECT_EQ(answer["holders"][0]["bytes"], 3 << 20);
  EXPECT_EQ(peaks_of(answer), (std::map<int, std::int64_t>{{0, 1 << 20}, {1, 2 << 20}, {2, 3 << 20}, {3, 1 << 20}}));
  const std::string text = dryrun(kByRank, {"--world-size", "4", "--rank", "all"}).out;
  EXPECT_THAT(text, HasSubstr("as rank 2 of 4, the one of all 4 that took most"));
  EXPECT_THAT(text, HasSubstr("no training step was seen, neither backward"));
}

TEST_F(DryRunRanks, ThoseThatAreNamedAreTold) {
  const nlohmann::json answer = json_of(dryrun(kByRank, {"--json", "--world-size", "4", "--rank", "0,3"}), 0);
  EXPECT_EQ(peaks_of(answer), (std::map<int, std::int64_t>{{0, 1 << 20}, {3, 1 << 20}}));
  EXPECT_THAT(dryrun(kByRank, {"--world-size", "4", "--rank", "0,2"}).out,
              HasSubstr("as rank 2 of 4, the one of the 2 that took most"));
}

TEST_F(DryRunRanks, EveryKeyOfTheAnswerIsTold) {
  std::set<std::string> told, always;
  ASSERT_NE(cli::answer_of("dryrun"), nullptr);
  for (const cli::AnswerKey& row : cli::answer_of("dryrun")->keys)
    for (const std::string& name : cli::names_of(row)) {
      EXPECT_TRUE(told.insert(name).second) << name << " twice";
      if (row.presence == cli::Presence::always) always.insert(name);
    }
  for (const Words& options : {Words{"--json"}, Words{"--json", "--time", "--world-size", "2", "--rank", "all"}}) {
    const nlohmann::json answer = json_of(dryrun("import torch\nkept = torch.empty(1 << 20)\n", options), 0);
    for (const auto& [key, value] : answer.items())
      EXPECT_TRUE(told.contains(key)) << "sim/cli/answers_recording.cpp lacks " << key;
    for (const std::string& key : always) EXPECT_TRUE(answer.contains(key)) << key;
  }
}

TEST_F(DryRunRanks, TorchrunsLineIsReadNotRun) {
  scratch_.write("program.py", kByRank);
  const auto run = [&](Words options) {
    for (const char* word : {"--", "python3", "-m", "torch.distributed.run", "--nproc-per-node", "4", "program.py"})
      options.emplace_back(word);
    return recipe(std::move(options));
  };
  const nlohmann::json all = json_of(run({"--json"}), 0);
  EXPECT_EQ(all["world_size"], 4);
  EXPECT_EQ(peaks_of(all), (std::map<int, std::int64_t>{{0, 1 << 20}, {1, 2 << 20}, {2, 3 << 20}, {3, 1 << 20}}));
  EXPECT_EQ(peaks_of(json_of(run({"--json", "--rank", "2"}), 0)), (std::map<int, std::int64_t>{{2, 3 << 20}}));
  expect_refused(
      {{{"--rank", "1", "--", "accelerate", "launch", "program.py"}, 78, "accelerate starts its ranks itself"}});
  const Outcome other = run({"--world-size", "2"});
  EXPECT_EQ(other.exit_code, 78);
  EXPECT_THAT(other.err, HasSubstr("torch.distributed.run starts 4"));
}

TEST_F(DryRunRanks, TheOneThatRanOutOfMemoryIsFirst) {
  const nlohmann::json answer = json_of(dryrun(R"(import os, torch
small = torch.empty(5 << 20) if os.environ['RANK'] == '0' else torch.empty(200 << 30)
)",
                                               {"--json", "--world-size", "2", "--rank", "all"}),
                                        1);
  EXPECT_EQ(answer["rank"], 1);
  EXPECT_EQ(answer["verdict"], "does_not_fit");
}

TEST_F(DryRunRanks, TheFirstThatFailsEndsTheOthers) {
  const Outcome outcome = dryrun(std::string(kByRank) +
                                     "import sys, time\nif os.environ['RANK'] == '1': sys.exit(5)\n"
                                     "time.sleep(600)\n",
                                 {"--json", "--world-size", "3", "--rank", "all"});
  const nlohmann::json answer = json_of(outcome, 5);
  EXPECT_EQ(answer["ranks"][1]["exit_code"], 5);
  EXPECT_EQ(answer["ranks"][0]["exit_code"], 143);
  EXPECT_EQ(answer["ranks"][2]["peak_allocated_bytes"], 3 << 20) << "what it took is told all the same";
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 ended with exit code 5"));
}

/// Ranks of NCCL, by its functions.
constexpr const char* kNccl = R"(import ctypes, os, struct, torch
library, rank, size = torch._gpu(), int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
class Id(ctypes.Structure):
    _fields_ = [('bytes', ctypes.c_char * 128)]
communicator, pointer, place = ctypes.c_void_p(), ctypes.c_void_p, os.path.join(os.environ['PLACE'], 'id')
name = Id()
ctypes.memmove(ctypes.byref(name), b'the same on all ranks', 21)
assert library.ncclCommInitRank(ctypes.byref(communicator), size, name, rank) == 0
room = ctypes.c_void_p()
assert library.cudaMalloc(ctypes.byref(room), ctypes.c_size_t(4096)) == 0

def put(at, *values):
    data = struct.pack('%dq' % len(values), *values)
    library.cudaMemcpy(pointer(room.value + at), data, ctypes.c_size_t(len(data)), 1)

def get(at, count):
    data = ctypes.create_string_buffer(8 * count)
    library.cudaMemcpy(data, pointer(room.value + at), ctypes.c_size_t(8 * count), 2)
    return list(struct.unpack('%dq' % count, data.raw))

put(0, rank + 1, 10 * rank)
into, count, long = pointer(room.value + 256), ctypes.c_size_t(2), 4
assert library.ncclAllReduce(room, into, count, long, 0, communicator, None) == 0
summed = get(256, 2)
assert library.ncclAllGather(room, into, ctypes.c_size_t(1), long, communicator, None) == 0
gathered = get(256, size)
assert library.ncclBroadcast(room, room, count, long, size - 1, communicator, None) == 0
sent = get(0, 2)
put(768, rank + 1)
put(1024, *[0] * size)
library.ncclGroupStart()
for root in range(size):
    there = pointer(room.value + 1024 + 8 * root)
    assert library.ncclBroadcast(pointer(room.value + 768), there, ctypes.c_size_t(1), long, root, communicator, None) == 0
library.ncclGroupEnd()
grouped = get(1024, size)
)";

TEST_F(DryRunRanks, SideBySideTheySeeWhatTheOthersSent) {
  const Outcome outcome = dryrun(std::string(kNccl) +
                                     "assert summed == [6, 30], summed\n"
                                     "assert gathered == [1, 2, 3], gathered\n"
                                     "assert sent == [3, 20], sent\n"
                                     "assert grouped == [1, 2, 3], grouped\n",
                                 {"--json", "--world-size", "3", "--rank", "all"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

/// An all-to-all of sends and receives, of which the one that runs knows its own part.
TEST_F(DryRunRanks, AloneItExchangesWithItsEquals) {
  const std::string begin = std::string(kNccl).substr(0, std::string(kNccl).find("put(0, rank"));
  const Outcome outcome = dryrun(begin + R"(put(0, 5, 6, 7)
library.ncclGroupStart()
for peer in range(size):
    piece, one = pointer(room.value + 8 * peer), ctypes.c_size_t(1)
    assert library.ncclSend(piece, one, 4, peer, communicator, None) == 0
    assert library.ncclRecv(pointer(piece.value + 512), one, 4, peer, communicator, None) == 0
library.ncclGroupEnd()
found = (ctypes.c_longlong * size)()
assert library.shardscope_standin_if_equal(found, pointer(room.value + 512), ctypes.c_size_t(8 * size)) == 1
assert list(found) == [6] * size, list(found)
assert get(520, 1) == [6]
)",
                                 {"--json", "--world-size", "3", "--rank", "1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(DryRunRanks, WhatWouldHangOnGpusIsAnError) {
  const std::string begin = std::string(kNccl).substr(0, std::string(kNccl).find("put(0, rank"));
  const struct {
    const char *lines, *says;
  } kFaults[] = {
      {"put(0, rank)\nif rank == 1:\n    library.ncclAllReduce(room, room, ctypes.c_size_t(1), 4, 0, communicator, "
       "None)\n"
       "    get(0, 1)\n",
       "an all-reduce waits for rank 0 of 2, which has ended without it"},
      {"put(0, rank)\nsame = (ctypes.c_size_t(1), 4, 0, communicator, None)\n"
       "(library.ncclAllReduce if rank == 1 else library.ncclBroadcast)(room, room, *same)\nget(0, 1)\n",
       "which called something else at its place"},
      {"if rank == 1:\n    library.ncclRecv(room, ctypes.c_size_t(1), 4, 0, communicator, None)\n    get(0, 1)\n",
       "a receive waits for rank 0, which has ended without sending"}};
  for (const auto& each : kFaults) {
    const Outcome outcome = dryrun(begin + each.lines, {"--json", "--world-size", "2", "--rank", "all"});
    EXPECT_EQ(outcome.exit_code, 1) << each.says;
    EXPECT_THAT(outcome.err, HasSubstr(each.says));
    EXPECT_THAT(outcome.err, HasSubstr("program.py")) << "the line is named";
  }
}

TEST_F(DryRunRanks, AloneALibrarySeesRanksThatAreEqual) {
  const Outcome outcome = dryrun(std::string(kNccl) +
                                     "assert summed == [6, 30], summed\n"
                                     "assert gathered == [2, 2, 2], gathered\n"
                                     "assert sent == [2, 10], sent\n"
                                     "assert grouped == [2, 2, 2], grouped\n",
                                 {"--json", "--world-size", "3", "--rank", "1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(DryRunRanks, OneCardIsSeenUnlessMoreAreAskedForOrTheProgramStartsSeveral) {
  const std::string program = R"(import ctypes, os
count = ctypes.c_int(-1)
ctypes.CDLL(None).cudaGetDeviceCount(ctypes.byref(count))
raise SystemExit(count.value)
)";
  EXPECT_EQ(dryrun(program).exit_code, 1);
  EXPECT_EQ(dryrun(program, {"--devices", "3"}).exit_code, 3);
  EXPECT_EQ(dryrun(program, {"--world-size", "2"}).exit_code, 8);
}

TEST_F(DryRunRanks, NoSuchRanks) {
  const struct {
    const char *ranks, *world_size;
    int exit_code;
    const char* says;
  } kFaults[] = {{"4", "4", 78, "there is no rank 4"}, {"0,9", "4", 78, "there is no rank 9"},
                 {"some", "4", 2, "names no ranks"},   {"1,", "4", 2, "names no ranks"},
                 {"-1", "4", 2, "names no ranks"},     {"all", "65", 78, "do not run side by side"},
                 {"0,1", "128", 78, "side by side"}};
  for (const auto& each : kFaults) {
    const Outcome outcome = dryrun("pass\n", {"--world-size", each.world_size, "--rank", each.ranks});
    EXPECT_EQ(outcome.exit_code, each.exit_code) << each.ranks << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(each.says)) << each.ranks;
  }
}

}  // namespace
}  // namespace shard::test
