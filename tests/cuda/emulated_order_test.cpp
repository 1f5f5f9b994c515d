// Is every pair of conflicting accesses that nothing orders reported, whatever order they ran in, and no other pair?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "executor/cuda/emulated/graph.h"
#include "executor/cuda/emulated/random.h"
#include "tests/cuda/emulated_support.h"

namespace shard::cuda {
namespace {

using model::Access;
using testing::HasSubstr;

SHARD_KERNEL copy_kernel(std::int64_t n, const float* x, float* y) {
  for (std::int64_t i = first_element(); i < n; i += element_stride()) y[i] = x[i];
}

/// A producer on one stream, a consumer on another, with or without the wait between them.
struct Pair {
  explicit Pair(const EmulatedOptions& options, int before = 0) : device(options) {
    left = device.stream("left");
    right = device.stream("right");
    x = device.make(left, std::vector<float>(8, 1.0F));
    y = device.make(left, std::vector<float>(8, 2.0F));
    z = device.make(left, std::vector<float>(8, 3.0F));
    event = device->make_event().value();
    EXPECT_TRUE(device.finish(left));
    for (int i = 0; i < before; ++i) EXPECT_TRUE(produce());
  }
  Result<void> produce() {
    return as_op(*device, left, 1, {range_of(x, 8, Access::read), range_of(y, 8, Access::write)},
                 [&] { launch(left, {}, copy_kernel, 8, x, y); });
  }
  Result<void> consume() {
    return as_op(*device, right, 2, {range_of(y, 8, Access::read), range_of(z, 8, Access::write)},
                 [&] { launch(right, {}, copy_kernel, 8, y, z); });
  }
  EmulatedDevice device;
  Stream left = nullptr;
  Stream right = nullptr;
  float* x = nullptr;
  float* y = nullptr;
  float* z = nullptr;
  Event event = nullptr;
};

TEST(EmulatedOrder, ADroppedWaitIsReportedBeforeAnythingRuns) {
  Pair pair({.as_enqueued = true});
  EXPECT_TRUE(pair.produce());
  EXPECT_EQ(said(pair.consume()),
            "rank 0 op 1 'one' writes 32 bytes at offset 0 of 32 bytes of the device that rank 0 op 2 'two' reads, and "
            "nothing orders the two");
}

TEST(EmulatedOrder, AWaitOrders) {
  Pair pair({});
  EXPECT_TRUE(pair.produce());
  EXPECT_TRUE(pair.device->record(pair.event, pair.left));
  EXPECT_TRUE(pair.device->wait(pair.right, pair.event));
  EXPECT_EQ(said(pair.consume()), "no error");
  EXPECT_THAT(said(pair.produce()),
              HasSubstr("'two' reads 32 bytes at offset 0 of 32 bytes of the device that rank 0 op "
                        "1 'one' writes"))
      << "what is read may not be replaced either";
}

TEST(EmulatedOrder, AWaitForAnEarlierRecordOrdersLess) {
  Pair pair({});
  EXPECT_TRUE(pair.device->record(pair.event, pair.left));
  EXPECT_TRUE(pair.produce());
  EXPECT_TRUE(pair.device->wait(pair.right, pair.event));
  EXPECT_THAT(said(pair.consume()), HasSubstr("nothing orders the two"));
}

TEST(EmulatedOrder, OrderGoesThroughOtherStreams) {
  Pair pair({});
  const Stream between = pair.device.stream("between");
  const Event second = pair.device->make_event().value();
  EXPECT_TRUE(pair.produce());
  EXPECT_TRUE(pair.device->record(pair.event, pair.left));
  EXPECT_TRUE(pair.device->wait(between, pair.event));
  EXPECT_TRUE(pair.device->record(second, between));
  EXPECT_TRUE(pair.device->wait(pair.right, second));
  EXPECT_EQ(said(pair.consume()), "no error");
}

TEST(EmulatedOrder, WhatTheHostSawDoneIsBeforeWhatItEnqueuesThen) {
  Pair pair({});
  EXPECT_TRUE(pair.produce());
  EXPECT_TRUE(pair.device.finish(pair.left));
  EXPECT_EQ(said(pair.consume()), "no error");

  Pair asked({.work_per_question = 1}, 3);
  EXPECT_TRUE(asked.device->record(asked.event, asked.left));
  EXPECT_FALSE(*asked.device->is_done(asked.event));
  EXPECT_THAT(said(asked.consume()), HasSubstr("nothing orders the two")) << "asked, and told that it is not";
}

TEST(EmulatedOrder, ReadersAndNeighboursDoNotConflict) {
  Pair pair({});
  const auto reads = [&](Stream stream, std::int32_t op) {
    return as_op(*pair.device, stream, op,
                 {range_of(pair.x, 8, Access::read), range_of(pair.y + 4 * (op % 2), 4, Access::write)},
                 [&] { launch(stream, {}, copy_kernel, 4, pair.x, pair.y + 4 * (op % 2)); });
  };
  EXPECT_TRUE(reads(pair.left, 2));
  EXPECT_EQ(said(reads(pair.right, 3)), "no error");
}

TEST(EmulatedOrder, CopiesFillsAndHostCallsAreLookedAt) {
  const auto outcome = [](auto second) {
    Pair pair({});
    EXPECT_TRUE(pair.produce());
    return said(second(pair));
  };
  const std::string unordered = "nothing orders the two";
  std::vector<float> host(8);
  EXPECT_THAT(outcome([&](Pair& pair) { return pair.device->copy(pair.right, host.data(), pair.y, 32); }),
              HasSubstr(unordered));
  EXPECT_THAT(outcome([&](Pair& pair) { return pair.device->copy(pair.right, pair.x, host.data(), 32); }),
              HasSubstr(unordered));
  EXPECT_THAT(outcome([&](Pair& pair) { return pair.device->fill(pair.right, pair.y + 7, 0, 4); }),
              HasSubstr("writes 4 bytes at offset 28 of 32 bytes"));
  EXPECT_THAT(outcome([&](Pair& pair) {
                Result<void> called;
                const std::vector<Range> ranges{range_of(pair.y, 1, Access::read)};
                EXPECT_TRUE(pair.device->begin_op(pair.right, {Rank{3}, OpId{9}, "host", ranges}));
                return pair.device->call_host(
                    pair.right, [](void*) {}, nullptr);
              }),
              HasSubstr("4 bytes at offset 0 of 32 bytes of the device that rank 3 op 9 'host' reads"));
  EXPECT_EQ(outcome([&](Pair& pair) { return pair.device->copy(pair.right, host.data(), pair.x, 32); }), "no error");
  EXPECT_EQ(outcome([&](Pair& pair) { return pair.device->copy(pair.right, host.data(), pair.z, 32); }), "no error");
}

TEST(EmulatedOrder, FreedMemoryIsForgotten) {
  Pair pair({});
  EXPECT_TRUE(pair.produce());
  EXPECT_TRUE(pair.device.finish(pair.left));
  pair.device->free(reinterpret_cast<std::byte*>(pair.y));
  pair.y = pair.device.room<float>(8);
  EXPECT_EQ(said(pair.consume()), "no error");
}

// --- Without the check, and with luck
TEST(EmulatedOrder, WithoutTheCheckADroppedWaitChangesResultsInManyOrders) {
  for (const int before : {0, 12, 100}) {
    int changed = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Pair pair({.seed = seed, .check_order = false}, before);
      EXPECT_TRUE(pair.produce());
      EXPECT_TRUE(pair.consume());
      EXPECT_TRUE(pair.device.finish(pair.left));
      if (pair.device.read(pair.right, pair.z, 1)[0] != 1.0F) ++changed;
    }
    EXPECT_GE(changed, 10) << "behind " << before << " ops";
    EXPECT_LE(changed, 30) << "behind " << before << " ops";
  }
}

// --- Random plans
struct RandomOp {
  std::size_t stream = 0;
  std::vector<std::pair<int, Access>> buffers;
  std::vector<std::size_t> waits;  ///< earlier ops of other streams
};

/// Ops over buffers, each behind what it conflicts with: by its stream, or by waits of which none can be left out.
std::vector<RandomOp> random_plan(std::uint64_t seed) {
  emulated::Random random(seed);
  constexpr std::uint32_t kStreams = 4;
  std::vector<RandomOp> ops(30);
  std::vector<std::vector<bool>> before(ops.size(), std::vector<bool>(ops.size()));
  const auto join = [&](std::size_t later, std::size_t earlier) {
    before[later][earlier] = true;
    for (std::size_t i = 0; i < earlier; ++i) before[later][i] = before[later][i] || before[earlier][i];
  };
  for (std::size_t at = 0; at < ops.size(); ++at) {
    RandomOp& op = ops[at];
    op.stream = random.below(kStreams);
    for (const std::uint32_t buffer : {random.below(4), 4 + random.below(4), 8 + random.below(4)})
      op.buffers.emplace_back(buffer, static_cast<Access>(random.below(3)));
    for (std::size_t i = 0; i < at; ++i)
      if (ops[i].stream == op.stream) join(at, i);
    for (std::size_t i = at; i-- > 0;) {
      const bool conflicts = std::ranges::any_of(ops[i].buffers, [&](const auto& theirs) {
        return std::ranges::any_of(op.buffers, [&](const auto& ours) {
          return ours.first == theirs.first && (ours.second != Access::read || theirs.second != Access::read);
        });
      });
      if (!conflicts || before[at][i]) continue;
      op.waits.push_back(i);
      join(at, i);
    }
  }
  return ops;
}

/// Runs it with one wait left out; in a capture, launched once; nothing: with all of them.
Result<void> run_plan(const std::vector<RandomOp>& ops, bool captured,
                      std::optional<std::pair<std::size_t, std::size_t>> dropped) {
  EmulatedDevice device;
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(device.stream("stream " + std::to_string(i)));
  std::vector<float*> buffers;
  for (int i = 0; i < 12; ++i) buffers.push_back(device.room<float>(4));
  if (captured) {
    EXPECT_TRUE(device->begin_capture(streams[0]));
    const Event fork = device->make_event().value();
    EXPECT_TRUE(device->record(fork, streams[0]));
    for (const Stream stream : streams) EXPECT_TRUE(stream == streams[0] || device->wait(stream, fork));
  }
  std::vector<Event> events;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const Stream stream = streams[ops[at].stream];
    for (const std::size_t each : ops[at].waits) {
      if (dropped == std::pair(at, each)) continue;
      EXPECT_TRUE(device->wait(stream, events[each]));
    }
    std::vector<Range> ranges;
    for (const auto& [buffer, access] : ops[at].buffers)
      ranges.push_back(range_of(buffers[static_cast<std::size_t>(buffer)], 4, access));
    if (auto done = as_op(*device, stream, static_cast<std::int32_t>(at), ranges,
                          [&] {
                            static_cast<void>(device->call_host(
                                stream, [](void*) {}, nullptr));
                          });
        !done)
      return done;
    events.push_back(device->make_event().value());
    EXPECT_TRUE(device->record(events.back(), stream));
  }
  if (!captured) return {};
  for (const Stream stream : streams) {
    if (stream == streams[0]) continue;
    const Event end = device->make_event().value();
    EXPECT_TRUE(device->record(end, stream));
    EXPECT_TRUE(device->wait(streams[0], end));
  }
  const auto graph = device->end_capture(streams[0]);
  if (!graph) return graph.error();
  EXPECT_TRUE(device->launch_graph(*graph, streams[0]));
  return device.finish(streams[0]);
}

/// Whether an order remains without this wait: another one may lead to it all the same.
bool still_ordered(const std::vector<RandomOp>& ops, std::pair<std::size_t, std::size_t> dropped) {
  std::vector<bool> behind(ops.size());  // what is behind the awaited op
  behind[dropped.second] = true;
  for (std::size_t at = dropped.second + 1; at <= dropped.first; ++at) {
    for (std::size_t i = dropped.second; i < at; ++i) {
      const bool waits = std::ranges::find(ops[at].waits, i) != ops[at].waits.end() && dropped != std::pair(at, i);
      if (behind[i] && (ops[i].stream == ops[at].stream || waits)) behind[at] = true;
    }
  }
  return behind[dropped.first];
}

TEST(EmulatedOrder, EveryDroppedEdgeOfAHundredRandomPlansIsFoundAndNoneInvented) {
  int dropped = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const std::vector<RandomOp> ops = random_plan(seed);
    for (const bool captured : {false, true}) {
      EXPECT_EQ(said(run_plan(ops, captured, std::nullopt)), "no error") << "seed " << seed;
      for (std::size_t at = 0; at < ops.size(); ++at) {
        for (const std::size_t each : ops[at].waits) {
          if (still_ordered(ops, {at, each})) continue;
          ++dropped;
          EXPECT_THAT(said(run_plan(ops, captured, std::pair(at, each))), HasSubstr("nothing orders the two"))
              << "seed " << seed << ": op " << at << " does not wait for op " << each;
        }
      }
    }
  }
  EXPECT_GT(dropped, 4000);
}

TEST(EmulatedOrder, AGraphAndOtherWorkAreOrderedToo) {
  Pair pair({});
  EXPECT_TRUE(pair.device->begin_capture(pair.left));
  EXPECT_TRUE(pair.produce());
  const Graph graph = pair.device->end_capture(pair.left).value();
  EXPECT_TRUE(pair.device->launch_graph(graph, pair.left));
  EXPECT_TRUE(pair.device->launch_graph(graph, pair.left)) << "a stream orders its graphs";
  EXPECT_TRUE(pair.device.finish(pair.left));
  EXPECT_TRUE(pair.consume());
  EXPECT_THAT(said(pair.device->launch_graph(graph, pair.left)),
              HasSubstr("rank 0 op 2 'two' reads 32 bytes at offset 0 of 32 bytes of the device that rank 0 op 1 'one' "
                        "writes, and nothing orders the two"));
}

TEST(EmulatedOrder, ThreeThousandNodesAreCheckedInNoTime) {
  emulated::GraphWork graph;
  emulated::Random random(1);
  const auto op = std::make_shared<emulated::OpRecord>();
  auto* const memory = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
  for (std::int32_t node = 0; node < 3000; ++node) {
    std::vector<emulated::Access> accesses;
    for (int i = 0; i < 6; ++i) {
      const std::int64_t at = random.below(1 << 20);
      accesses.push_back({memory + at, memory + at + 1 + random.below(1 << 14), i == 0, op});
    }
    std::vector<std::int32_t> after;
    if (node > 0) after.push_back(node - 1);
    if (node > 9) after.push_back(node - 9);
    graph.add({op, accesses, {}, false}, after);
  }
  EXPECT_FALSE(graph.check().has_value());
  RecordProperty("nodes", graph.size());
}

}  // namespace
}  // namespace shard::cuda
