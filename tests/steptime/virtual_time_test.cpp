// Does virtual time keep what CUDA promises of streams and events?
#include "profiler/steptime/virtual_time.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace shard::steptime {
namespace {

TEST(VirtualTime, KernelsOfAStreamFollowEachOther) {
  VirtualTime time;
  double end = 0;
  for (int i = 0; i < 10; ++i) {
    const Placed placed = time.give({.deed = Deed::compute, .host = 1e-6, .duration = 1e-3});
    EXPECT_DOUBLE_EQ(placed.begin, i > 0 ? end : 1e-6 + VirtualTime::kLaunch);
    end = placed.end;
  }
  EXPECT_DOUBLE_EQ(time.device(), 1e-6 + VirtualTime::kLaunch + 10e-3);
  EXPECT_DOUBLE_EQ(time.host(), 10e-6) << "it goes ahead";
}

TEST(VirtualTime, ASlowHostDecides) {
  VirtualTime time;
  for (int i = 0; i < 10; ++i) time.give({.deed = Deed::compute, .host = 1e-3, .duration = 1e-6});
  EXPECT_DOUBLE_EQ(time.device(), 10e-3 + VirtualTime::kLaunch + 1e-6);
}

TEST(VirtualTime, TheHostWaitsForWhatItSaysAndNoLonger) {
  VirtualTime time;
  time.give({.deed = Deed::compute, .stream = 1, .duration = 1});
  time.give({.deed = Deed::record, .stream = 1, .event = 5});
  time.give({.deed = Deed::compute, .stream = 1, .duration = 1});
  time.give({.deed = Deed::compute, .stream = 2, .duration = 10});
  EXPECT_NEAR(time.give({.deed = Deed::host_waits_for_event, .event = 5}).end, 1, 1e-4);
  EXPECT_NEAR(time.give({.deed = Deed::host_waits_for_stream, .stream = 1}).end, 2, 1e-4);
  EXPECT_NEAR(time.give({.deed = Deed::host_waits_for_all}).end, 10, 1e-4);
  EXPECT_NEAR(time.host(), 10, 1e-4);
  EXPECT_NEAR(time.give({.deed = Deed::host_waits_for_event, .event = 77}).end, 10, 1e-4) << "nobody recorded it";
}

TEST(VirtualTime, TheHostIsAtMostSoManyLaunchesAhead) {
  VirtualTime time;
  for (std::size_t i = 0; i < VirtualTime::kAhead; ++i) time.give({.deed = Deed::compute, .duration = 1});
  EXPECT_EQ(time.host(), 0);
  for (int i = 1; i <= 3; ++i) {
    time.give({.deed = Deed::compute, .duration = 1});
    EXPECT_NEAR(time.host(), i, 1e-4) << "when the first of those that wait is over";
  }
}

TEST(VirtualTime, ComputingBesideAnExchangeTakesLonger) {
  VirtualTime time;
  time.give({.deed = Deed::exchange, .stream = 2, .duration = 0.5});
  const Placed beside = time.give({.deed = Deed::compute, .stream = 1, .duration = 1});
  EXPECT_NEAR(beside.end - beside.begin, 1 + 0.5 * VirtualTime::kContention, 1e-4);
  const Placed alone = time.give({.deed = Deed::compute, .stream = 1, .duration = 1});
  EXPECT_NEAR(alone.end - alone.begin, 1, 1e-9);
}

/// Any program, and for each kernel the earliest moment by what was given before it.
class RandomProgram : public ::testing::TestWithParam<unsigned> {};

TEST_P(RandomProgram, NothingBeginsBeforeWhatItWaitsFor) {
  std::mt19937 random(GetParam());
  const auto up_to = [&](int most) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)); };
  VirtualTime time;
  std::map<std::int64_t, double> streams, events;  // when the last piece of each is over
  double all = 0, last_host = 0;
  for (int i = 0; i < 400; ++i) {
    Given given{.deed = static_cast<Deed>(up_to(7)),
                .stream = up_to(3),
                .event = up_to(4),
                .host = static_cast<double>(up_to(20)) * 1e-6,
                .duration = static_cast<double>(up_to(1000)) * 1e-6};
    const double earliest = std::max(streams[given.stream], last_host + given.host + VirtualTime::kLaunch);
    const Placed placed = time.give(given);
    ASSERT_GE(time.host(), last_host + given.host - 1e-12);
    last_host = time.host();
    switch (given.deed) {
      case Deed::compute:
      case Deed::exchange:
        ASSERT_NEAR(placed.begin, earliest, 1e-12) << "as early as it may, and no earlier";
        ASSERT_GE(placed.end - placed.begin, given.duration - 1e-12);
        ASSERT_LE(placed.end - placed.begin, given.duration * (1 + VirtualTime::kContention) + 1e-12);
        streams[given.stream] = placed.end;
        all = std::max(all, placed.end);
        break;
      case Deed::record: events[given.event] = std::max(streams[given.stream], last_host); break;
      case Deed::wait: streams[given.stream] = std::max(streams[given.stream], events[given.event]); break;
      case Deed::host_waits_for_all: ASSERT_GE(last_host, all - 1e-12); break;
      case Deed::host_waits_for_stream: ASSERT_GE(last_host, streams[given.stream] - 1e-12); break;
      case Deed::host_waits_for_event: ASSERT_GE(last_host, events[given.event] - 1e-12); break;
    }
    ASSERT_NEAR(time.device(), all, 1e-12);
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgram, ::testing::Range(0u, 20u));

}  // namespace
}  // namespace shard::steptime
