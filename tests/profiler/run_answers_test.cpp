// What is told of a recording: memory over time and who held its peak, copies beside compute, gaps and why.
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "profiler/timeline/copy_overlap.h"
#include "profiler/timeline/memory_use.h"
#include "profiler/timeline/timeline.h"

namespace shard::profiler {
namespace {

Event work(EventKind kind, std::int64_t begin, std::int64_t end, std::uint32_t stream, std::uint32_t correlation) {
  return {
      .kind = kind, .flags = kFromHost, .begin_ns = begin, .end_ns = end, .correlation = correlation, .stream = stream};
}

Timeline made_of(std::vector<Event> events) {
  SpoolContent content;
  content.events = std::move(events);
  content.names = {{1, "cudaMalloc"}, {2, "multiply"}, {3, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"}};
  const std::vector<Process> processes{{content, {}}};
  return timeline_of(processes);
}

Event named(Event event, NameNumber name) {
  event.name = name;
  return event;
}

TEST(CopyOverlap, CountsEachMomentOnceAndNoCollectiveAsCompute) {
  const Timeline made = made_of({
      named(work(EventKind::kernel, 0, 100, 1, 1), 2), named(work(EventKind::kernel, 150, 200, 1, 2), 2),
      named(work(EventKind::kernel, 200, 400, 2, 3), 3),  // a collective
      work(EventKind::copy, 50, 170, 3, 4),               // 50 to 100 and 150 to 170 are hidden
      work(EventKind::fill, 160, 260, 4, 5),              // and 170 to 200
  });
  const std::vector<CopyOverlap> found = copy_overlap(made.loaded.trace);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].copy_ns, 210);
  EXPECT_EQ(found[0].hidden_ns, 100);
  EXPECT_EQ(found[0].exposed_ns(), 110);
}

Event memory(bool acquired, std::int64_t time, std::uint64_t address, std::int64_t bytes, std::uint32_t correlation) {
  return {.kind = acquired ? EventKind::acquired : EventKind::released,
          .detail = static_cast<std::uint8_t>(MemoryPlace::device),
          .flags = kFromHost,
          .begin_ns = time,
          .end_ns = time,
          .id = address,
          .bytes = bytes,
          .correlation = correlation};
}

Event call(std::int64_t begin, std::uint32_t correlation) {
  return {.kind = EventKind::call,
          .flags = kFromHost,
          .name = 1,
          .begin_ns = begin,
          .end_ns = begin + 2,
          .correlation = correlation};
}

TEST(MemoryUse, SaysThePeakWhenAndWhoHeldIt) {
  const Timeline made =
      made_of({call(0, 1), memory(true, 1, 10, 100, 1), call(10, 2), memory(true, 11, 20, 100, 2),
               memory(true, 40, 30, 500, 0), memory(false, 60, 30, 500, 0), call(98, 3), memory(true, 99, 40, 50, 3)});
  const std::optional<MemoryUse> use = memory_use(made.loaded.trace, 10);
  ASSERT_TRUE(use.has_value());
  EXPECT_EQ(use->peak_bytes, 700);
  EXPECT_EQ(use->peak_ns - use->begin_ns, 40);
  EXPECT_EQ(use->at_end_bytes, 250);
  EXPECT_EQ(use->held, (std::vector<HeldBlocks>{{"", 500, 1}, {"cudaMalloc", 100, 2}}));
  EXPECT_EQ(use->series, (std::vector<std::int64_t>{100, 200, 200, 200, 700, 700, 700, 200, 200, 250}));
}

TEST(MemoryUse, OfARecordingWithoutAllocationsIsNothing) {
  EXPECT_FALSE(memory_use(made_of({call(0, 1)}).loaded.trace, 10).has_value());
  EXPECT_FALSE(memory_use(Trace{}, 0).has_value());
}

TEST(Idle, NamesTheLongestGapsAndWhatWasNotLaunchedYet) {
  std::vector<Event> events;
  std::int64_t at = 0;
  for (std::uint32_t i = 1; i <= 10; ++i) {
    // The i-th gap is 10 i long, and its call returns 4 before its end.
    at += 10 * static_cast<std::int64_t>(i);
    events.push_back(
        {.kind = EventKind::call, .flags = kFromHost, .begin_ns = at - 8, .end_ns = at - 4, .correlation = i});
    events.push_back(named(work(EventKind::kernel, at, at + 5, 1, i), 2));
    at += 5;
  }
  const Timeline made = made_of(std::move(events));
  ASSERT_EQ(made.idle.size(), 1u);
  const Idle& idle = made.idle[0];
  EXPECT_EQ(idle.gaps, 9);
  ASSERT_EQ(idle.longest.size(), kLongestGaps);
  for (std::size_t i = 0; i < kLongestGaps; ++i) {
    EXPECT_EQ(idle.longest[i].duration_ns, 100 - 10 * static_cast<std::int64_t>(i));
    EXPECT_EQ(idle.longest[i].launch_bound_ns, idle.longest[i].duration_ns - 4);
    EXPECT_EQ(idle.longest[i].next, "multiply");
  }
  EXPECT_EQ(idle.longest[0].begin_ns + 100, at - 5);
}

}  // namespace
}  // namespace shard::profiler
