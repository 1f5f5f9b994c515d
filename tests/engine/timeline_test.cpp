// Do streams overlap, do dependencies stall, and is the end the longest path?
#include "sim/engine/timeline.h"

#include <gtest/gtest.h>

#include "tests/ir/lists.h"

#include <algorithm>
#include <map>
#include <random>

#include "sim/engine/busy.h"

namespace shard::engine {
namespace {

plan::Op op(std::int32_t id, Stream stream, std::vector<std::int32_t> after = {}) {
  plan::Op o;
  o.id = OpId{id};
  o.stream = stream;
  for (const std::int32_t a : after) plan::edit(o.dependencies).push_back(OpId{a});
  return o;
}

TEST(Timeline, OpsOfOneStreamRunInOrderAndStreamsOverlap) {
  Timeline t;
  t.begin_phase();
  t.add(op(0, Stream::compute), Seconds{3});
  EXPECT_EQ(t.add(op(1, Stream::communication), Seconds{5}).begin, Seconds{0});
  EXPECT_EQ(t.add(op(2, Stream::compute), Seconds{1}).begin, Seconds{3});
  EXPECT_EQ(t.now(), Seconds{5});
}

TEST(Timeline, WhereOneThreadDoesItAllStreamsDoNotOverlap) {
  Timeline t(false);
  t.begin_phase();
  t.add(op(0, Stream::compute), Seconds{3});
  EXPECT_EQ(t.add(op(1, Stream::communication), Seconds{5}).begin, Seconds{3});
  EXPECT_EQ(t.add(op(2, Stream::compute), Seconds{1}).begin, Seconds{8});
  EXPECT_EQ(t.now(), Seconds{9});
}

TEST(Timeline, ADependencyStallsItsStream) {
  Timeline t;
  t.begin_phase();
  t.add(op(0, Stream::communication), Seconds{5});
  t.add(op(1, Stream::compute), Seconds{1});
  EXPECT_EQ(t.add(op(2, Stream::compute, {0}), Seconds{2}).begin, Seconds{5});
  EXPECT_EQ(t.add(op(3, Stream::compute), Seconds{2}).begin, Seconds{7});  // in order behind the stalled op
}

TEST(Timeline, ADependencyThatHasEndedDoesNotStall) {
  Timeline t;
  t.begin_phase();
  t.add(op(0, Stream::communication), Seconds{1});
  t.add(op(1, Stream::compute), Seconds{4});
  EXPECT_EQ(t.add(op(2, Stream::compute, {0}), Seconds{2}).begin, Seconds{4});
}

TEST(Timeline, PhasesMeetAndIdsOfAnEarlierPhaseHaveEnded) {
  Timeline t;
  t.begin_phase();
  t.add(op(7, Stream::communication), Seconds{9});
  t.add(op(1, Stream::compute), Seconds{1});
  t.begin_phase();
  EXPECT_EQ(t.add(op(1, Stream::compute, {7, 100}), Seconds{2}).begin, Seconds{9});
  EXPECT_EQ(t.add(op(7, Stream::communication), Seconds{2}).begin, Seconds{9});
}

struct RandomOps {
  std::vector<plan::Op> ops;
  std::vector<double> seconds;
};

RandomOps random_ops(std::mt19937& random) {
  RandomOps r;
  for (std::int32_t i = 0; i < 60; ++i) {
    std::vector<std::int32_t> after;
    for (int k = 0; i > 0 && k < 2; ++k) {
      if (random() % 2 == 0) after.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(i)));
    }
    r.ops.push_back(op(i, static_cast<Stream>(random() % kStreamCount), std::move(after)));
    r.seconds.push_back(static_cast<double>(random() % 16));
  }
  return r;
}

double end_of(const RandomOps& r, double factor = 1) {
  Timeline t;
  t.begin_phase();
  for (std::size_t i = 0; i < r.ops.size(); ++i) t.add(r.ops[i], Seconds{r.seconds[i] * factor});
  return t.now().count();
}

TEST(Timeline, TheEndIsTheLongestPathThroughStreamsAndDependencies) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const RandomOps r = random_ops(random);
    // Longest path to the end of each op, over its dependencies and the op before it in its stream.
    std::vector<double> path(r.ops.size());
    std::map<Stream, std::size_t> last;
    std::map<Stream, double> sums;
    for (std::size_t i = 0; i < r.ops.size(); ++i) {
      double before = 0;
      for (const OpId d : r.ops[i].dependencies) before = std::max(before, path[static_cast<std::size_t>(d.value)]);
      if (const auto it = last.find(r.ops[i].stream); it != last.end()) before = std::max(before, path[it->second]);
      path[i] = before + r.seconds[i];
      last[r.ops[i].stream] = i;
      sums[r.ops[i].stream] += r.seconds[i];
    }
    const double end = end_of(r);
    EXPECT_EQ(end, *std::max_element(path.begin(), path.end()));
    for (const auto& [stream, sum] : sums) EXPECT_GE(end, sum);
  }
}

TEST(Timeline, ShorterOpsNeverEndLater) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    RandomOps r = random_ops(random);
    const double before = end_of(r);
    double& some = r.seconds[random() % r.seconds.size()];
    some /= 2;
    EXPECT_LE(end_of(r), before);
    EXPECT_EQ(end_of(r, 0.5), end_of(r) / 2);
  }
}

TEST(Busy, EqualsCountingUnitCells) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<Interval> a, b;
    bool in_a[64] = {}, in_b[64] = {};
    for (int i = 0; i < 6; ++i) {
      for (const bool first : {true, false}) {
        const std::size_t begin = random() % 50, length = random() % 12;
        (first ? a : b).push_back({Seconds{double(begin)}, Seconds{double(begin + length)}});
        std::fill_n((first ? in_a : in_b) + begin, length, true);
      }
    }
    int length = 0, outside = 0;
    for (int cell = 0; cell < 64; ++cell) {
      length += in_a[cell];
      outside += in_a[cell] && !in_b[cell];
    }
    EXPECT_EQ(Busy(a).length(), Seconds{double(length)});
    EXPECT_EQ(Busy(a).length_outside(Busy(b)), Seconds{double(outside)});
  }
}

}  // namespace
}  // namespace shard::engine
