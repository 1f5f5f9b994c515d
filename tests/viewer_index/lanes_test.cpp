// Do fast ways to order spans and to fit them on lanes give what the plain ways give?
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "traces/lane_fit.h"
#include "traces/span_order.h"

namespace shard {
namespace {

/// Spans of one track: `runs` of them sorted, then the next run.
SpanTable spans_in_runs(std::mt19937& random, std::size_t count, std::size_t run, int longest) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans(count);
  for (auto& [begin, negative_duration] : spans) {
    begin = static_cast<std::int64_t>(random() % (2 * count));
    negative_duration = -static_cast<std::int64_t>(random() % static_cast<unsigned>(longest));
  }
  SpanTable table;
  for (std::size_t at = 0; at < count; at += run) {
    const auto from = spans.begin() + static_cast<std::ptrdiff_t>(at);
    std::sort(from, spans.begin() + static_cast<std::ptrdiff_t>(std::min(count, at + run)));
  }
  for (const auto& [begin, negative_duration] : spans) {
    table.begin_ns.push_back(begin);
    table.duration_ns.push_back(-negative_duration);
  }
  return table;
}

std::vector<std::uint32_t> file_order(const SpanTable& spans) {
  std::vector<std::uint32_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

TEST(SpanOrder, IsThatOfAStableSort) {
  std::mt19937 random(1);
  for (const std::size_t count : {0u, 1u, 2u, 63u, 64u, 65u, 1000u, 5000u, 150'000u}) {
    for (const std::size_t run : {1u, 2u, 7u, 64u, 900u, 200'000u}) {
      const SpanTable spans = spans_in_runs(random, count, run, 5);
      std::vector<std::uint32_t> order = file_order(spans), expected = order;
      std::stable_sort(expected.begin(), expected.end(), [&](std::uint32_t a, std::uint32_t b) {
        if (spans.begin_ns[a] != spans.begin_ns[b]) return spans.begin_ns[a] < spans.begin_ns[b];
        return spans.duration_ns[a] > spans.duration_ns[b];
      });
      sort_spans(spans, order);
      ASSERT_EQ(order, expected) << count << " " << run;
    }
  }
}

TEST(LaneFit, IsFirstFit) {
  std::mt19937 random(2);
  std::size_t most = 0;
  for (const int longest : {2, 10, 100, 1000, 5000}) {
    const SpanTable spans = spans_in_runs(random, 2000, 2000, longest);
    LaneFit fit;
    std::vector<std::vector<std::int64_t>> lanes;  // ends of open spans
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const std::int64_t begin = spans.begin_ns[i], end = begin + spans.duration_ns[i];
      std::size_t lane = 0;
      for (auto& open : lanes) {
        while (!open.empty() && open.back() <= begin) open.pop_back();
      }
      while (lane < lanes.size() && !lanes[lane].empty() && end > lanes[lane].back()) ++lane;
      if (lane == lanes.size()) lanes.emplace_back();
      const LaneFit::Slot place = fit.place(begin, end);
      ASSERT_EQ(place.lane, lane) << i << " " << longest;
      ASSERT_EQ(place.depth, lanes[lane].size()) << i << " " << longest;
      lanes[lane].push_back(end);
    }
    ASSERT_EQ(fit.lane_count(), lanes.size());
    most = std::max(most, lanes.size());
  }
  EXPECT_GT(most, 100u);
}

}  // namespace
}  // namespace shard
