// Do ranks with an emulated GPU each keep the contract of communicators, over an emulated NCCL, at 1 to 4 ranks?
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "executor/train/device_run.h"
#include "tests/comm/conformance.h"
#include "tests/comm/emulated_gpus.h"
#include "tests/comm/mirrored.h"
#include "tests/comm/tcp_ranks.h"

namespace shard::test {
namespace {

/// Every group that the suite may call with.
std::vector<RankGroup> groups_of(int world, int rank) {
  std::vector<RankGroup> groups;
  for (int first = 0; first < world; ++first)
    for (int stride = 1; stride < world; ++stride)
      for (int count = 2; first + (count - 1) * stride < world; ++count)
        if (const RankGroup group{first, stride, count}; group.contains(rank)) groups.push_back(group);
  return groups;
}

struct Setting {
  const ConformanceCase* test = nullptr;
  int world = 1;
  bool reproducible = true;
};

class OverNccl : public testing::TestWithParam<Setting> {};

TEST_P(OverNccl, Conforms) {
  const Setting setting = GetParam();
  EmulatedGpus gpus(setting.world, {.capacity = Bytes{std::int64_t{1} << 28}, .seed = 3});
  std::vector<Findings> findings(static_cast<std::size_t>(setting.world));
  const Result<void> done =
      train::run_ranks(gpus.own(), {.graphs = false, .reproducible = setting.reproducible},
                       [&](train::DeviceRank& rank) -> Result<void> {
                         rank.communicator.will_call(groups_of(setting.world, rank.communicator.rank().value));
                         Mirrored comm(rank.room.api, rank.room.turns, rank.communicator);
                         const Result<std::span<std::byte>> arena = comm.make_arena(setting.test->arena(), {});
                         if (!arena) return arena.error();
                         setting.test->run(comm, *arena, findings[static_cast<std::size_t>(comm.rank().value)]);
                         return {};
                       });
  EXPECT_TRUE(done) << to_string(done.error());
  for (std::size_t rank = 0; rank < findings.size(); ++rank)
    for (const std::string& finding : findings[rank]) ADD_FAILURE() << "rank " << rank << ": " << finding;
}

/// Runs `run` on each rank: an emulated GPU each, and hosts that meet over TCP, as under torchrun.
std::vector<Result<void>> over_tcp(int world, const std::function<Result<void>(train::DeviceRank&)>& run) {
  EmulatedGpus gpus(world, {.capacity = Bytes{std::int64_t{1} << 28}, .seed = 3});
  const std::vector<TcpPlace> places = places_of(world);
  std::vector<Result<void>> ends(places.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    threads.emplace_back([&, rank] {
      const Joined host = make_tcp(places[rank]);
      ends[rank] =
          host ? train::run_rank(gpus.own()[rank], **host, {.graphs = false}, run) : Result<void>(host.error());
    });
  threads.clear();
  return ends;
}

// What goes through the hosts is meeting, texts and ends; of the calls a few are enough.
TEST(OverNcclAndTcp, HostsThatMeetOverTcpDo) {
  const std::set<std::string> few{"ExchangesTexts", "GathersEveryShard", "ScattersTreeSums", "AllReducesTreeSums"};
  for (const int world : {2, 4}) {
    std::vector<Findings> findings(static_cast<std::size_t>(world));
    const std::vector<Result<void>> ends = over_tcp(world, [&](train::DeviceRank& rank) -> Result<void> {
      rank.communicator.will_call(groups_of(world, rank.communicator.rank().value));
      Mirrored comm(rank.room.api, rank.room.turns, rank.communicator);
      const Result<std::span<std::byte>> arena = comm.make_arena(kArena, {});
      if (!arena) return arena.error();
      for (const ConformanceCase& test : conformance_cases())
        if (few.contains(test.name)) test.run(comm, *arena, findings[static_cast<std::size_t>(comm.rank().value)]);
      return {};
    });
    for (const Result<void>& end : ends) EXPECT_TRUE(end) << to_string(end.error());
    for (const Findings& own : findings) EXPECT_EQ(own, Findings{});
  }
}

TEST(OverNcclAndTcp, ARankThatStopsEndsTheOthersAtOnce) {
  const std::vector<Result<void>> ends = over_tcp(3, [&](train::DeviceRank& rank) -> Result<void> {
    rank.communicator.will_call(groups_of(3, rank.communicator.rank().value));
    Mirrored comm(rank.room.api, rank.room.turns, rank.communicator);
    const Result<std::span<std::byte>> arena = comm.make_arena(kArena, {});
    if (!arena) return arena.error();
    if (comm.rank().value == 2) return Error{Errc::malformed, "token 300", "data.bin:7", ""};
    const std::vector<CommSegment> segments{{0, 1024, Elems{12}}};
    const Result<Ticket> ticket = comm.start({.op = OpId{1}, .kind = Collective::all_gather, .segments = segments});
    if (!ticket) return ticket.error();
    return comm.wait(*ticket);
  });
  for (const std::size_t survivor : {0u, 1u}) {
    ASSERT_FALSE(ends[survivor]);
    EXPECT_EQ(ends[survivor].error().code, Errc::retryable);
    EXPECT_NE(ends[survivor].error().what.find("rank 2 stopped: token 300"), std::string::npos)
        << ends[survivor].error().what;
  }
}

/// All but the one that waits for a moment of the clock; where sums are NCCL's, those whose sums are exact: of two
/// ranks, or of small integers.
std::vector<Setting> settings() {
  const std::set<std::string> exact{"GathersEveryShard",   "GathersInPlace",      "ScattersExactSums",
                                    "AllReducesExactSums", "GivesBuffersBack",    "BroadcastsFromEveryRoot",
                                    "CountsCallsAndBytes", "CompletesEmptyCalls", "ExchangesTexts"};
  std::vector<Setting> all;
  for (const ConformanceCase& test : conformance_cases())
    for (const int world : {1, 2, 3, 4})
      for (const bool reproducible : {true, false})
        if (test.name != "WaitingIsNotMoving" && (reproducible || world == 2 || exact.contains(test.name)))
          all.push_back({&test, world, reproducible});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Contract, OverNccl, testing::ValuesIn(settings()), [](const auto& setting) {
  return setting.param.test->name + (setting.param.reproducible ? "On" : "ByNcclOn") +
         std::to_string(setting.param.world);
});

}  // namespace
}  // namespace shard::test
