// Are memory curves exact in plan order, and is the table of live buffers what a replay of all events gives?
#include "viewer/index/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/viewer_index/random_trace.h"

namespace shard::view {
namespace {

using testing::pick;
using testing::Random;

/// Everything of one column by walking through all events.
MemoryColumn by_brute_force(const MemoryTable& table, std::int64_t begin, std::int64_t end) {
  BytesByCategory stack{};
  std::int64_t live = 0, shown = INT64_MIN;
  MemoryColumn column{};
  const auto enter = [&] {
    column.highest_bytes = column.lowest_bytes = live;
    column.at_highest_bytes = stack;
  };
  bool entered = false;
  for (std::size_t i = 0; i < table.size(); ++i) {
    shown = std::max(shown, table.time_ns[i]);
    if (!entered && shown >= begin) {
      enter();
      entered = true;
    }
    if (shown >= end) break;
    live += table.delta_bytes[i];
    stack[static_cast<std::size_t>(table.category[i])] += table.delta_bytes[i];
    if (!entered) continue;
    if (live > column.highest_bytes) {
      column.highest_bytes = live;
      column.at_highest_bytes = stack;
    }
    column.lowest_bytes = std::min(column.lowest_bytes, live);
  }
  if (!entered) enter();
  column.last_bytes = live;
  return column;
}

TEST(Memory, ColumnsEqualBruteForce) {
  Random random(1);
  std::vector<MemoryColumn> columns;
  for (int n = 0; n < 20; ++n) {
    const Trace trace = testing::random_trace(random, {.spans = 0, .memory_events = 700});
    const std::vector<MemorySeries> series = memory_series(trace);
    ASSERT_EQ(series.size(), 1u);
    for (int v = 0; v < 150; ++v) {
      const PixelRange view = testing::random_view(random, 5000, 12);
      series[0].columns(trace.memory, view, columns);
      ASSERT_EQ(columns.size(), static_cast<std::size_t>(view.width));
      for (std::int32_t c = 0; c < view.width; ++c) {
        const MemoryColumn expected = by_brute_force(trace.memory, view.begin(c), view.end(c));
        const MemoryColumn& column = columns[static_cast<std::size_t>(c)];
        ASSERT_EQ(column.highest_bytes, expected.highest_bytes);
        ASSERT_EQ(column.lowest_bytes, expected.lowest_bytes);
        ASSERT_EQ(column.last_bytes, expected.last_bytes);
        ASSERT_EQ(column.at_highest_bytes, expected.at_highest_bytes);
      }
      ASSERT_EQ(series[0].highest_in(view.time),
                by_brute_force(trace.memory, view.time.begin_ns, view.time.end_ns).highest_bytes);
    }
  }
}

TEST(Memory, APeakOfOneEventIsSeenAtEveryZoom) {
  Trace trace;
  std::int64_t time = 0;
  for (std::int32_t i = 0; i < 50'000; ++i) {
    const bool spike = i == 31'415;
    testing::add_event(trace,
                       {.rank = Rank{0}, .buffer = BufferId{i}, .delta_bytes = spike ? 900 : 1, .time_ns = time});
    testing::add_event(trace,
                       {.rank = Rank{0}, .buffer = BufferId{i}, .delta_bytes = spike ? -900 : -1, .time_ns = time});
    time += 10;
  }
  const MemorySeries series = memory_series(trace).at(0);
  EXPECT_EQ(series.peak_bytes(), 900);
  EXPECT_EQ(series.peak_time_ns(), 314'150);
  std::vector<MemoryColumn> columns;
  for (std::int32_t width = 1; width < 2000; width = width * 2 + 1) {
    series.columns(trace.memory, {{0, time}, width}, columns);
    const auto highest = [](const MemoryColumn& a, const MemoryColumn& b) { return a.highest_bytes < b.highest_bytes; };
    EXPECT_EQ(std::max_element(columns.begin(), columns.end(), highest)->highest_bytes, 900) << width;
  }
}

TEST(Memory, LiveTableEqualsAReplay) {
  Random random(2);
  const Trace trace = testing::random_trace(random, {.spans = 0, .memory_events = 9000});
  const MemoryTable& table = trace.memory;
  const MemorySeries series = memory_series(trace).at(0);
  for (int n = 0; n < 60; ++n) {
    const auto moment = static_cast<std::size_t>(pick(random, 0, 9000));
    std::map<std::int32_t, std::size_t> live;
    for (std::size_t i = 0; i < moment; ++i) {
      if (table.delta_bytes[i] > 0) {
        live[table.buffer[i].value] = i;
      } else {
        live.erase(table.buffer[i].value);
      }
    }
    const std::vector<LiveBuffer> rows = series.live_at(table, moment);
    ASSERT_EQ(rows.size(), live.size());
    std::int64_t sum = 0;
    for (const LiveBuffer& row : rows) {
      ASSERT_TRUE(live.contains(row.buffer.value));
      const MemoryEvent event = table[live[row.buffer.value]];
      EXPECT_EQ(row.bytes, event.delta_bytes);
      EXPECT_EQ(row.category, event.category);
      EXPECT_EQ(row.since_ns, event.time_ns);
      EXPECT_EQ(row.unit, event.unit);
      sum += row.bytes;
    }
    EXPECT_EQ(sum, series.bytes_at(moment));
    EXPECT_TRUE(
        std::is_sorted(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; }));
  }
}

TEST(Memory, PeakAgreesWithThePeaksOfTheTrace) {
  Random random(3);
  for (int n = 0; n < 20; ++n) {
    const Trace trace = testing::random_trace(random, {.spans = 0, .memory_events = 400});
    const MemorySeries series = memory_series(trace).at(0);
    const std::vector<MemoryPeak> peaks = memory_peaks(trace);
    ASSERT_EQ(peaks.size(), 1u);
    EXPECT_EQ(series.peak_bytes(), peaks[0].live_peak_bytes);
    EXPECT_EQ(series.stack_at(trace.memory, series.peak_moment()), peaks[0].at_peak_bytes);
    EXPECT_EQ(trace.memory.time_ns[series.event_of(series.peak_moment())], peaks[0].peak_time_ns);
  }
}

TEST(Memory, CapacityAndArenaPeakComeFromTheArenas) {
  Trace trace;
  testing::add_event(trace, {.rank = Rank{1}, .memory = Memory::host, .buffer = BufferId{0}, .delta_bytes = 5});
  trace.arenas = {{Rank{1}, Memory::host, Phase::first_step, 70, 60, 100},
                  {Rank{1}, Memory::host, Phase::steady_step, 80, 60, 100},
                  {Rank{1}, Memory::device, Phase::steady_step, 999, 999, 999}};
  const MemorySeries series = memory_series(trace).at(0);
  EXPECT_EQ(series.capacity_bytes(), 100);
  EXPECT_EQ(series.arena_peak_bytes(), 80);
}

TEST(Memory, AKnownCapacityCountsInPlaceOfTheArenasSize) {
  Trace trace;
  testing::add_event(trace, {.rank = Rank{1}, .buffer = BufferId{0}, .delta_bytes = 5});
  trace.arenas = {{Rank{1}, Memory::device, Phase::first_step, 70, 60, 100}};
  trace.header.capacities = {{Rank{0}, Memory::device, 1, 7000}, {Rank{}, Memory::host, 1, 8000}};
  EXPECT_EQ(memory_series(trace).at(0).capacity_bytes(), 100);
  trace.header.capacities = {{Rank{}, Memory::device, 4, 9000}};  // what one rank may use of it is not said
  EXPECT_EQ(memory_series(trace).at(0).capacity_bytes(), 100);
  trace.header.capacities = {{Rank{}, Memory::device, 1, 9000}};
  EXPECT_EQ(memory_series(trace).at(0).capacity_bytes(), 9000);
}

TEST(Memory, ABrokenTraceStillAddsUp) {
  Trace trace;
  for (const auto& [buffer, delta] :
       std::vector<std::pair<int, std::int64_t>>{{1, -7}, {2, 5}, {2, 5}, {2, -5}, {1, 7}}) {
    testing::add_event(trace, {.rank = Rank{0}, .buffer = BufferId{buffer}, .delta_bytes = delta});
  }
  const MemorySeries series = memory_series(trace).at(0);
  for (std::size_t moment = 0; moment <= 5; ++moment) {
    std::int64_t sum = 0;
    for (const LiveBuffer& row : series.live_at(trace.memory, moment)) sum += row.bytes;
    EXPECT_EQ(sum, series.bytes_at(moment));
  }
}

}  // namespace
}  // namespace shard::view
