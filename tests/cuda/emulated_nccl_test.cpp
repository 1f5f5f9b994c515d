// Does the emulated NCCL move what it is asked to, and refuse what NCCL punishes?
#include <gtest/gtest.h>

#include <array>

#include "executor/cuda/emulated/nccl.h"
#include "tests/cuda/emulated_support.h"

namespace shard::cuda {
namespace {

struct NcclRank {
  EmulatedDevice device{};
  std::unique_ptr<Nccl> nccl{};
  NcclComm comm = nullptr;
  Stream stream = nullptr;
  float* values = nullptr;
  float* room = nullptr;
  [[nodiscard]] const std::byte* in() const { return reinterpret_cast<const std::byte*>(values); }
  [[nodiscard]] std::byte* out() const { return reinterpret_cast<std::byte*>(room); }
};

/// Two ranks that are ready, with four values each: 1 to 4, and 10 times that. Both are this thread's.
class EmulatedNcclPair : public testing::Test {
 protected:
  void SetUp() override {
    const auto world = make_nccl_world();
    NcclId id;
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      NcclRank& own = at(rank);
      own.nccl = make_emulated_nccl(world, 5);
      if (rank == 0) id = own.nccl->unique_id().value();
      own.comm = own.nccl->begin(2, id, rank).value();
      own.stream = own.device.stream();
      const float factor = rank == 0 ? 1 : 10;
      own.values = own.device.make<float>(own.stream, {factor, 2 * factor, 3 * factor, 4 * factor});
      own.room = own.device.room<float>(8);
    }
    for (NcclRank& own : ranks_) EXPECT_TRUE(settle(own));
  }
  NcclRank& at(std::int32_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  /// Asked until it is ready, or never.
  static Result<void> settle(NcclRank& rank) {
    for (int question = 0; question < 10; ++question) {
      const Result<bool> ready = rank.nccl->is_ready(rank.comm);
      if (!ready) return ready.error();
      if (*ready) return {};
    }
    return Error{Errc::retryable, "never ready", "", ""};
  }
  /// Whether both streams come to their ends.
  bool both_finish() {
    std::array<Event, 2> ends{};
    for (std::size_t rank = 0; rank < 2; ++rank) {
      ends[rank] = ranks_[rank].device->make_event().value();
      EXPECT_TRUE(ranks_[rank].device->record(ends[rank], ranks_[rank].stream));
    }
    for (int question = 0; question < 100; ++question) {
      const bool first = ranks_[0].device->is_done(ends[0]).value();
      const bool second = ranks_[1].device->is_done(ends[1]).value();
      if (first && second) return true;
    }
    return false;
  }
  std::vector<float> room_of(std::int32_t rank, std::size_t n) {
    return at(rank).device.read(at(rank).stream, at(rank).room, n);
  }
  std::array<NcclRank, 2> ranks_{};
};

TEST_F(EmulatedNcclPair, SendsAndReceivesOfAGroupAreInAnyOrder) {
  for (const std::int32_t rank : {0, 1}) {
    NcclRank& own = at(rank);
    ASSERT_TRUE(own.nccl->group_start());
    const auto receive = [&] { return own.nccl->receive(own.comm, own.stream, own.out(), 4, Dtype::f32, 1 - rank); };
    ASSERT_TRUE(rank == 0 ? receive() : Result<void>());
    ASSERT_TRUE(own.nccl->send(own.comm, own.stream, own.in(), 4, Dtype::f32, 1 - rank));
    ASSERT_TRUE(rank == 1 ? receive() : Result<void>());
    ASSERT_TRUE(own.nccl->group_end());
    ASSERT_TRUE(settle(own));
  }
  ASSERT_TRUE(both_finish());
  EXPECT_EQ(room_of(0, 4), (std::vector<float>{10, 20, 30, 40}));
  EXPECT_EQ(room_of(1, 4), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(EmulatedNcclPair, ASumIsOfBoth) {
  for (NcclRank& own : ranks_) {
    ASSERT_TRUE(own.nccl->all_reduce(own.comm, own.stream, own.in(), own.out(), 4, Dtype::f32));
    ASSERT_TRUE(settle(own));
  }
  ASSERT_TRUE(both_finish());
  for (const std::int32_t rank : {0, 1}) EXPECT_EQ(room_of(rank, 4), (std::vector<float>{11, 22, 33, 44}));
}

TEST_F(EmulatedNcclPair, ACallThatOneRankMakesHangs) {
  NcclRank& own = at(0);
  ASSERT_TRUE(own.nccl->all_gather(own.comm, own.stream, own.in(), own.out(), 4, Dtype::f32));
  ASSERT_TRUE(settle(own));
  EXPECT_FALSE(both_finish());
  own.nccl->abort(own.comm);
  EXPECT_TRUE(both_finish());  // what was enqueued ends
}

/// What both ranks are told behind calls that do not match.
void expect_told(const Result<void>& told, const std::string& what) {
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, Errc::internal);
  EXPECT_NE(told.error().what.find(what), std::string::npos) << told.error().what;
}

TEST_F(EmulatedNcclPair, CountsThatDifferAreToldToBoth) {
  ASSERT_TRUE(at(0).nccl->send(at(0).comm, at(0).stream, at(0).in(), 4, Dtype::f32, 1));
  ASSERT_TRUE(at(1).nccl->receive(at(1).comm, at(1).stream, at(1).out(), 3, Dtype::f32, 0));
  for (NcclRank& own : ranks_) ASSERT_TRUE(settle(own));
  EXPECT_FALSE(both_finish());
  for (NcclRank& own : ranks_)
    expect_told(settle(own), "rank 0 calls send of 4 f32, and rank 1 calls receive of 3 f32");
}

TEST_F(EmulatedNcclPair, AnOrderThatDiffersIsToldToBoth) {
  ASSERT_TRUE(at(0).nccl->all_gather(at(0).comm, at(0).stream, at(0).in(), at(0).out(), 4, Dtype::f32));
  ASSERT_TRUE(at(1).nccl->all_reduce(at(1).comm, at(1).stream, at(1).in(), at(1).out(), 4, Dtype::f32));
  for (NcclRank& own : ranks_) ASSERT_TRUE(settle(own));
  EXPECT_FALSE(both_finish());
  for (NcclRank& own : ranks_)
    expect_told(settle(own), "rank 0 calls all_gather of 4 f32, and rank 1 calls all_reduce");
}

TEST_F(EmulatedNcclPair, NoCallIsTakenBeforeTheLastIsReadyOrBehindAnAbort) {
  NcclRank& own = at(0);
  Result<void> called;
  // Whether a call is ready at once is left to chance.
  for (int call = 0; called && call < 20; ++call)
    called = own.nccl->all_reduce(own.comm, own.stream, own.in(), own.out(), 4, Dtype::f32);
  expect_told(called, "not ready");
  at(1).nccl->abort(at(1).comm);
  expect_told(at(1).nccl->send(at(1).comm, at(1).stream, at(1).in(), 4, Dtype::f32, 0), "no more");
}

// As in NCCL, whose communicator waits for all graphs that refer to it.
TEST_F(EmulatedNcclPair, NothingFinishesWhileAGraphHoldsItsTransfers) {
  std::array<Graph, 2> graphs{};
  for (std::size_t rank = 0; rank < 2; ++rank) {
    NcclRank& own = ranks_[rank];
    ASSERT_TRUE(own.device->begin_capture(own.stream));
    ASSERT_TRUE(own.nccl->all_reduce(own.comm, own.stream, own.in(), own.out(), 4, Dtype::f32));
    ASSERT_TRUE(settle(own));
    graphs[rank] = own.device->end_capture(own.stream).value();
    ASSERT_TRUE(own.device->launch_graph(graphs[rank], own.stream));
  }
  ASSERT_TRUE(both_finish());
  for (NcclRank& own : ranks_) ASSERT_TRUE(own.nccl->finish(own.comm));
  for (NcclRank& own : ranks_) EXPECT_FALSE(settle(own));
  ranks_[0].device->destroy_graph(graphs[0]);
  EXPECT_TRUE(settle(ranks_[0]));
  EXPECT_FALSE(settle(ranks_[1]));
  ranks_[1].device->destroy_graph(graphs[1]);
  for (NcclRank& own : ranks_) {
    ASSERT_TRUE(settle(own));
    EXPECT_TRUE(own.nccl->destroy(own.comm));
  }
}

using EmulatedNcclPairDeathTest = EmulatedNcclPair;

// What was launched of a destroyed graph is aborted; a graph that is not destroyed is waited for.
TEST_F(EmulatedNcclPairDeathTest, NothingIsAbortedWhileAGraphHoldsItsTransfers) {
  NcclRank& own = at(0);
  ASSERT_TRUE(own.device->begin_capture(own.stream));
  ASSERT_TRUE(own.nccl->all_reduce(own.comm, own.stream, own.in(), own.out(), 4, Dtype::f32));
  ASSERT_TRUE(settle(own));
  EXPECT_DEATH(own.nccl->abort(own.comm), "waits for a graph");
  const Graph graph = own.device->end_capture(own.stream).value();
  ASSERT_TRUE(own.device->launch_graph(graph, own.stream));
  EXPECT_DEATH(own.nccl->abort(own.comm), "waits for a graph");
  own.device->destroy_graph(graph);
  own.nccl->abort(own.comm);
}

TEST_F(EmulatedNcclPair, WhatIsWrittenBesideATransferIsFound) {
  NcclRank& own = at(0);
  ASSERT_TRUE(own.nccl->send(own.comm, own.stream, own.in(), 4, Dtype::f32, 1));
  ASSERT_TRUE(settle(own));
  const Stream other = own.device.stream("other");
  expect_told(own.device->fill(other, own.values, 0, 16), "nothing orders");
}

}  // namespace
}  // namespace shard::cuda
