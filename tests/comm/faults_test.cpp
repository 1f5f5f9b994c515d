// Does every way in which a peer can fail end a wait at once, saying who and what?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "executor/comm/in_process.h"
#include "executor/comm/shared.h"

namespace shard::test {
namespace {

using testing::HasSubstr;

constexpr Bytes kSmall{4096};

CollectiveRequest gather(std::span<const CommSegment> segments, int op = 17) {
  return {.op = OpId{op}, .kind = Collective::all_gather, .segments = segments};
}

/// Ranks whose arenas exist.
std::vector<std::unique_ptr<Communicator>> ready(int world, CommOptions options = {}) {
  auto ranks = make_in_process(world, options);
  std::vector<std::jthread> threads;
  for (auto& rank : ranks) threads.emplace_back([&] { EXPECT_TRUE(rank->make_arena(kSmall).has_value()); });
  return ranks;
}

class Faults : public testing::Test {
 protected:
  const std::vector<CommSegment> four_{{0, 1024, Elems{4 * 12}}};
};

TEST_F(Faults, DeadlineNamesTheRanksThatHaveNotArrived) {
  auto ranks = ready(4, {.deadline = std::chrono::milliseconds{300}});
  ASSERT_TRUE(ranks[2]->start(gather(four_)).has_value());
  const Result<Ticket> ticket = ranks[0]->start(gather(four_));
  ASSERT_TRUE(ticket.has_value());
  const Result<void> done = ranks[0]->wait(*ticket);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Errc::retryable);
  EXPECT_EQ(done.error().what, "ranks 1, 3 have not arrived within 0.3 s");
  EXPECT_EQ(done.error().where, "rank 0 all_gather op 17");
}

TEST_F(Faults, AnErrorStays) {
  auto ranks = ready(2, {.deadline = std::chrono::milliseconds{300}});
  const Result<Ticket> ticket = ranks[0]->start(gather(four_));
  ASSERT_TRUE(ticket.has_value());
  const Result<void> first = ranks[0]->wait(*ticket);
  ASSERT_FALSE(first.has_value());
  const Result<Ticket> next = ranks[0]->start(gather(four_));
  ASSERT_FALSE(next.has_value());
  EXPECT_EQ(next.error().what, first.error().what);
}

TEST_F(Faults, AbortEndsTheWaitsOfAllOthersWithTheFirstReason) {
  auto ranks = ready(3);
  const Result<Ticket> ticket = ranks[0]->start(gather(four_));
  ASSERT_TRUE(ticket.has_value());
  ranks[2]->abort("data.bin:7: token 300 is not in the vocabulary");
  ranks[1]->abort("too late");
  const Result<void> done = ranks[0]->wait(*ticket);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Errc::retryable);
  EXPECT_EQ(done.error().what, "rank 2 stopped: data.bin:7: token 300 is not in the vocabulary");
}

TEST_F(Faults, AbortEndsAnExchange) {
  auto ranks = make_in_process(2);
  ranks[1]->abort("no");
  const auto texts = ranks[0]->exchange("x");
  ASSERT_FALSE(texts.has_value());
  EXPECT_EQ(texts.error().what, "rank 1 stopped: no");
}

TEST_F(Faults, ARankThatLeavesEarlyIsNamed) {
  auto ranks = ready(3);
  const Result<Ticket> ticket = ranks[0]->start(gather(four_));
  ASSERT_TRUE(ticket.has_value());
  ranks[1].reset();
  const Result<void> done = ranks[0]->wait(*ticket);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Errc::retryable);
  EXPECT_EQ(done.error().what, "rank 1 left before this call was complete");
}

TEST_F(Faults, ARankMayLeaveOnceItsLastCallIsComplete) {
  auto ranks = ready(2);
  std::vector<Ticket> tickets;
  for (auto& rank : ranks) {
    const Result<Ticket> ticket = rank->start(gather(four_));
    ASSERT_TRUE(ticket.has_value());
    tickets.push_back(*ticket);
  }
  bool complete = false;
  while (!complete) {  // one thread turns both
    const Result<bool> other = ranks[0]->poll(tickets[0]);
    const Result<bool> mine = ranks[1]->poll(tickets[1]);
    ASSERT_TRUE(other.has_value() && mine.has_value());
    complete = *mine;
  }
  ranks[1].reset();
  EXPECT_TRUE(ranks[0]->wait(tickets[0]).has_value());
}

TEST_F(Faults, DifferentCallsAtTheSamePlaceAreFoundOut) {
  auto ranks = ready(2);
  const Result<Ticket> ticket = ranks[0]->start(gather(four_, 17));
  ASSERT_TRUE(ticket.has_value());
  ASSERT_TRUE(ranks[1]->start(gather(four_, 18)).has_value());
  const Result<void> done = ranks[0]->wait(*ticket);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Errc::internal);
  EXPECT_THAT(done.error().what, HasSubstr("rank 1 started all_gather op 18"));
}

TEST_F(Faults, AnotherThreadLearnsWhoAborted) {
  auto ranks = ready(2);
  EXPECT_FALSE(ranks[0]->lost_peer().has_value());
  ranks[1]->abort("disk full");
  const std::optional<Error> lost = ranks[0]->lost_peer();
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->what, "rank 1 stopped: disk full");
}

TEST_F(Faults, BadRequestsAreRefused) {
  const auto refusal = [](CollectiveRequest request, CommLimits limits = {}) {
    const auto comm = make_single();
    EXPECT_TRUE(comm->make_arena(kSmall, limits).has_value());
    const Result<Ticket> ticket = comm->start(request);
    return ticket ? std::string("accepted") : ticket.error().what;
  };
  const std::vector<CommSegment> outside{{0, 4092, Elems{2}}};
  EXPECT_THAT(refusal(gather(outside)), HasSubstr("not inside the arena of 4096 bytes"));
  const std::vector<CommSegment> negative{{-4, 0, Elems{2}}};
  EXPECT_THAT(refusal(gather(negative)), HasSubstr("shard [-4"));
  const std::vector<CommSegment> overlapping{{4, 0, Elems{4}}};
  EXPECT_THAT(refusal(gather(overlapping)), HasSubstr("overlaps"));
  const std::vector<CommSegment> two{{0, 0, Elems{4}}, {16, 16, Elems{4}}};
  EXPECT_THAT(refusal(gather(two), {.in_flight = 1, .segments = 1}), HasSubstr("2 segments in one call, 1 planned"));
  CollectiveRequest rootless{.op = OpId{1}, .kind = Collective::broadcast, .root = Rank{1}};
  EXPECT_THAT(refusal(rootless), HasSubstr("root 1 is not among rank 0"));
}

TEST_F(Faults, TooManyCallsInFlightAreRefused) {
  auto ranks = make_in_process(2);
  {
    std::vector<std::jthread> threads;
    for (auto& rank : ranks)
      threads.emplace_back([&] { EXPECT_TRUE(rank->make_arena(kSmall, {.in_flight = 2, .segments = 1}).has_value()); });
  }
  EXPECT_TRUE(ranks[0]->start(gather(four_)).has_value());
  EXPECT_TRUE(ranks[0]->start(gather(four_)).has_value());
  const Result<Ticket> third = ranks[0]->start(gather(four_));
  ASSERT_FALSE(third.has_value());
  EXPECT_THAT(third.error().what, HasSubstr("more than 2 calls in flight"));
}

TEST_F(Faults, ADeadlineNamesMembersOnly) {
  auto ranks = ready(6, {.deadline = std::chrono::milliseconds{300}});
  CollectiveRequest call = gather(four_);
  call.group = {0, 2, 3};
  ASSERT_TRUE(ranks[4]->start(call).has_value());
  const Result<Ticket> ticket = ranks[0]->start(call);
  ASSERT_TRUE(ticket.has_value());
  const Result<void> done = ranks[0]->wait(*ticket);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().what, "rank 2 has not arrived within 0.3 s");
}

/// Calls of other groups count for nothing: neither their number nor what they are.
TEST_F(Faults, DifferentCallsInOneGroupAreFoundOut) {
  auto ranks = ready(4);
  const auto start = [&](int rank, RankGroup group, int op) {
    CollectiveRequest call = gather(four_, op);
    call.group = group;
    const Result<Ticket> ticket = ranks[static_cast<std::size_t>(rank)]->start(call);
    EXPECT_TRUE(ticket.has_value());
    return *ticket;
  };
  const Ticket first = start(0, {0, 1, 2}, 5);
  start(2, {2, 1, 2}, 6);
  start(3, {3, 1, 1}, 1);
  start(3, {2, 1, 2}, 6);
  start(1, {1, 2, 2}, 4);
  start(1, {0, 1, 2}, 5);
  const Ticket second = start(0, {0, 1, 2}, 7);
  start(1, {0, 1, 2}, 8);
  Result<bool> done = ranks[0]->poll(first);
  while (done.has_value()) done = ranks[0]->poll(second);
  EXPECT_EQ(done.error().code, Errc::internal);
  EXPECT_THAT(done.error().what, HasSubstr("rank 1 started all_gather op 8 as call 2 of ranks 0, 1,"));
}

TEST_F(Faults, AnotherElementTypeIsAnotherCall) {
  auto ranks = ready(2);
  CollectiveRequest call = gather(four_);
  const Result<Ticket> ticket = ranks[0]->start(call);
  ASSERT_TRUE(ticket.has_value());
  call.dtype = Dtype::bf16;
  ASSERT_TRUE(ranks[1]->start(call).has_value());
  const Result<void> done = ranks[0]->wait(*ticket);
  ASSERT_FALSE(done.has_value());
  EXPECT_THAT(done.error().what, HasSubstr("segments of bf16"));
}

TEST_F(Faults, ARankOfAnotherGroupMayLeave) {
  auto ranks = ready(3);
  CollectiveRequest call = gather(four_);
  call.group = {0, 1, 2};
  const Result<Ticket> first = ranks[0]->start(call);
  ASSERT_TRUE(first.has_value());
  ranks[2].reset();
  for (int turn = 0; turn < 10; ++turn) {
    const Result<bool> done = ranks[0]->poll(*first);
    ASSERT_TRUE(done.has_value());
    EXPECT_FALSE(*done);
  }
  const Result<Ticket> second = ranks[1]->start(call);
  ASSERT_TRUE(second.has_value());
  std::jthread other([&] { EXPECT_TRUE(ranks[1]->wait(*second).has_value()); });
  EXPECT_TRUE(ranks[0]->wait(*first).has_value());
}

TEST_F(Faults, BadGroupsAndTypesAreRefused) {
  const auto refusal = [&](RankGroup group, Collective kind = Collective::all_gather, Dtype dtype = Dtype::f32) {
    auto ranks = ready(4);
    const std::vector<CommSegment> segments{{0, 1024, Elems{12}}};
    const Result<Ticket> ticket = ranks[1]->start(
        {.op = OpId{1}, .kind = kind, .segments = segments, .dtype = dtype, .group = group, .root = Rank{3}});
    return ticket ? std::string("accepted") : ticket.error().what;
  };
  EXPECT_EQ(refusal({1, 2, 2}), "accepted");
  EXPECT_EQ(refusal({0, 2, 2}), "this rank is not among ranks 0, 2");
  EXPECT_EQ(refusal({1, 2, 3}), "a group of 3 ranks from rank 1, each 2 further, of 4 ranks");
  EXPECT_THAT(refusal({1, 0, 2}), HasSubstr("each 0 further"));
  EXPECT_THAT(refusal({-1, 1, 3}), HasSubstr("from rank -1"));
  EXPECT_THAT(refusal({1, 1, -1}), HasSubstr("a group of -1 ranks"));
  EXPECT_EQ(refusal({0, 1, 3}, Collective::broadcast), "root 3 is not among ranks 0, 1, 2");
  EXPECT_EQ(refusal({}, Collective::all_reduce, Dtype::i32), "no sums of i32");
  EXPECT_EQ(refusal({}, Collective::all_reduce, Dtype::i64), "accepted");
  EXPECT_EQ(refusal({}, Collective::broadcast, Dtype::i32), "accepted");
}

TEST_F(Faults, TooManyGroupsAreRefused) {
  auto ranks = make_in_process(3);
  {
    std::vector<std::jthread> threads;
    for (auto& rank : ranks)
      threads.emplace_back([&] { EXPECT_TRUE(rank->make_arena(kSmall, {.groups = 2}).has_value()); });
  }
  CollectiveRequest call = gather(four_);
  EXPECT_TRUE(ranks[0]->start(call).has_value());
  call.group = {0, 1, 3};  // all ranks, written in another way
  EXPECT_TRUE(ranks[0]->start(call).has_value());
  call.group = {0, 1, 2};
  EXPECT_TRUE(ranks[0]->start(call).has_value());
  call.group = {0, 2, 2};
  const Result<Ticket> third = ranks[0]->start(call);
  ASSERT_FALSE(third.has_value());
  EXPECT_EQ(third.error().what, "calls with more than 2 groups");
}

/// A call that waits long holds one place, however many others begin and end meanwhile.
TEST_F(Faults, CallsEndInAnyOrder) {
  auto ranks = make_in_process(2);
  {
    std::vector<std::jthread> threads;
    for (auto& rank : ranks)
      threads.emplace_back([&] { EXPECT_TRUE(rank->make_arena(kSmall, {.in_flight = 2, .segments = 1}).has_value()); });
  }
  CollectiveRequest both = gather(four_);
  const Result<Ticket> waiting = ranks[0]->start(both);
  ASSERT_TRUE(waiting.has_value());
  CollectiveRequest alone = gather(four_);
  alone.group = {0, 1, 1};
  for (int turn = 0; turn < 20; ++turn) {
    const Result<Ticket> ticket = ranks[0]->start(alone);
    ASSERT_TRUE(ticket.has_value());
    EXPECT_TRUE(ranks[0]->wait(*ticket).has_value());
  }
  const Result<Ticket> other = ranks[1]->start(both);
  ASSERT_TRUE(other.has_value());
  std::jthread peer([&] { EXPECT_TRUE(ranks[1]->wait(*other).has_value()); });
  EXPECT_TRUE(ranks[0]->wait(*waiting).has_value());
}

/// Processes over one shared mapping, as ranks on one host are under MPI.
class Processes : public testing::Test {
 protected:
  static constexpr int kWorld = 3;
  static constexpr CommLimits kLimits{.in_flight = 2, .segments = 1};
  static constexpr std::size_t kPerRank = 65536;

  void SetUp() override {
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, kWorld * kPerRank, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory_, MAP_FAILED);
  }
  void TearDown() override { munmap(memory_, kWorld * kPerRank); }

  [[nodiscard]] RankHead& head(int rank) {
    return *reinterpret_cast<RankHead*>(memory_ + kPerRank * static_cast<std::size_t>(rank));
  }

  /// The calls of `rank`, in this process; waits until every rank's process id is known.
  SharedCollectives join(int rank) {
    head(rank).process = getpid();
    head(rank).state = RankHead::present;
    SharedRegion region;
    std::vector<std::int32_t> processes;
    std::vector<SlotRings> rings;
    std::vector<std::byte*> arenas;
    for (int peer = 0; peer < kWorld; ++peer) {
      while (head(peer).state == RankHead::absent) sched_yield();
      region.heads.push_back(&head(peer));
      processes.push_back(head(peer).process);
      rings.emplace_back(memory_ + kPerRank * static_cast<std::size_t>(peer) + 4096, kLimits);
      arenas.push_back(memory_ + kPerRank * static_cast<std::size_t>(peer) + 32768);
    }
    SharedCollectives calls(region, Rank{rank}, {}, PeerWatch(processes));
    calls.open_arenas(rings, arenas, kSmall, kLimits);
    return calls;
  }

  std::byte* memory_ = nullptr;
};

TEST_F(Processes, SurvivorsSayWhoWasKilled) {
  const std::vector<CommSegment> segments{{0, 1024, Elems{12}}};
  const auto survive = [&](int rank) -> std::string {
    SharedCollectives calls = join(rank);
    const Result<Ticket> ticket = calls.start(gather(segments));
    if (!ticket) return ticket.error().what;
    Backoff backoff;
    while (true) {
      const Result<bool> done = calls.poll(*ticket);
      if (!done) return done.error().what;
      if (*done) return "complete";
      backoff.pause();
    }
  };
  const pid_t victim = fork();
  if (victim == 0) {
    SharedCollectives calls = join(1);
    kill(getpid(), SIGKILL);
  }
  const std::string expected = "rank 1 died (process " + std::to_string(victim) + " is gone)";
  const pid_t survivor = fork();
  if (survivor == 0) _exit(survive(2) == expected ? 0 : 1);
  EXPECT_EQ(survive(0), expected);  // the victim is a zombie here: nobody has waited for it
  int status = 0;
  ASSERT_EQ(waitpid(survivor, &status, 0), survivor);
  EXPECT_EQ(status, 0);
  waitpid(victim, &status, 0);
}

}  // namespace
}  // namespace shard::test
