// Do statistics, search and counters say what a look at every event says?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/viewer_index/random_trace.h"
#include "viewer/index/search.h"
#include "viewer/index/statistics.h"

namespace shard::view {
namespace {

using testing::pick;
using testing::Random;

TEST(SpanStatistics, EqualSumsOverAllSpans) {
  Random random(1);
  for (int n = 0; n < 60; ++n) {
    const Document document = Document::build(testing::random_trace(random, {}), "random");
    const Trace& trace = document.trace();
    const TimeRange range = testing::random_view(random, 5000, 1).time;
    const Rank rank{static_cast<std::int32_t>(pick(random, -1, 1))};
    for (const GroupBy by : {GroupBy::name, GroupBy::span_class, GroupBy::rank}) {
      struct Sum {
        std::int64_t count = 0, total = 0, least = INT64_MAX, most = 0, bytes = 0;
        bool operator==(const Sum&) const = default;
      };
      std::map<std::string, Sum> expected;
      for (std::uint32_t i = 0; i < trace.spans.size(); ++i) {
        const auto [begin, end] = document.time_of(i);
        if (rank.valid() && document.rank_of(i) != rank) continue;
        if (begin >= range.end_ns || (end <= range.begin_ns && begin < range.begin_ns)) continue;
        std::string key = to_string(document.class_of(i));
        if (by == GroupBy::rank) key = "rank " + std::to_string(document.rank_of(i).value);
        if (by == GroupBy::name) {
          key = trace.spans.name[i].valid() ? std::string(trace.name_of(trace.spans.name[i])) : "(no name)";
        }
        Sum& sum = expected[key];
        const std::int64_t ns = std::min(end, range.end_ns) - std::max(begin, range.begin_ns);
        ++sum.count;
        sum.total += ns;
        sum.least = std::min(sum.least, ns);
        sum.most = std::max(sum.most, ns);
        if (begin >= range.begin_ns) sum.bytes += trace.spans.bytes[i];
      }
      std::map<std::string, Sum> actual;
      double share = 0;
      for (const SpanStatistics& row : span_statistics(document, range, by, rank)) {
        actual[row.key] = {row.count, row.total_ns, row.least_ns, row.most_ns, row.bytes};
        EXPECT_DOUBLE_EQ(row.mean_ns * static_cast<double>(row.count), static_cast<double>(row.total_ns));
        share += row.share;
      }
      ASSERT_EQ(actual, expected);
      EXPECT_TRUE(share < 1e-9 || std::abs(share - 1) < 1e-9);
    }
  }
}

TEST(SpanStatistics, RowsSortBothWaysAndKeepTheOrderOfEqualOnes) {
  std::vector<SpanStatistics> rows(3);
  rows[0].key = "b", rows[0].count = 1, rows[1].key = "a", rows[1].count = 2, rows[2].key = "c", rows[2].count = 1;
  sort_rows(rows, SpanColumn::count, false);
  EXPECT_EQ(rows[0].key + rows[1].key + rows[2].key, "bca");
  sort_rows(rows, SpanColumn::key, true);
  EXPECT_EQ(rows[0].key + rows[1].key + rows[2].key, "cba");
}

TEST(SpanStatistics, CsvQuotesWhatNeedsIt) {
  std::vector<SpanStatistics> rows(1);
  rows[0].key = "a \"b\", c";
  rows[0].count = 3;
  EXPECT_EQ(to_csv(rows),
            "key,count,total_ns,mean_ns,min_ns,max_ns,share,bytes\r\n\"a \"\"b\"\", c\",3,0,0,0,0,0,0\r\n");
}

TEST(MemoryStatistics, CountsWithinTheRange) {
  Trace trace;
  const auto add = [&](int buffer, std::int64_t delta, std::int64_t time) {
    testing::add_event(trace, {.rank = Rank{0},
                               .buffer = BufferId{buffer},
                               .delta_bytes = delta,
                               .category = Category::activation,
                               .time_ns = time});
  };
  add(1, 10, 0);
  add(2, 50, 5);
  add(2, -50, 6);
  add(1, -10, 9);
  const Document document = Document::build(std::move(trace), "m");
  const std::vector<MemoryStatistics> rows = memory_statistics(document, {5, 9});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0], (MemoryStatistics{Rank{0}, Memory::device, Category::activation, 1, 50, 1, 50, 60, 10}));
  EXPECT_EQ(memory_statistics(document, {6, 7})[0].peak_bytes, 60);  // what it begins with
  EXPECT_TRUE(memory_statistics(document, {10, 20}).empty());
}

TEST(Search, VisitsEveryMatchInOrderAndBack) {
  Random random(2);
  for (int n = 0; n < 40; ++n) {
    const Document document = Document::build(testing::random_trace(random, {.sorted = n % 2 == 0}), "random");
    const SpanTable& table = document.trace().spans;
    const NameMatch match = find_names(document, n % 2 == 0 ? "STEP" : "chunk");
    std::vector<std::pair<std::int64_t, std::uint32_t>> expected;
    for (std::uint32_t i = 0; i < table.size(); ++i) {
      const std::string_view name = document.trace().name_of(table.name[i]);
      if (name.find(n % 2 == 0 ? "Step" : "chunk") != std::string_view::npos)
        expected.emplace_back(table.begin_ns[i], i);
    }
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(match.span_count, static_cast<std::int64_t>(expected.size()));
    std::vector<std::pair<std::int64_t, std::uint32_t>> forth, back;
    for (auto at = next_match(document, match, INT64_MIN); at; at = next_match(document, match, 0, *at)) {
      forth.emplace_back(table.begin_ns[*at], *at);
    }
    for (auto at = previous_match(document, match, INT64_MAX - 1); at; at = previous_match(document, match, 0, *at)) {
      back.emplace_back(table.begin_ns[*at], *at);
    }
    std::reverse(back.begin(), back.end());
    ASSERT_EQ(forth, expected);
    ASSERT_EQ(back, expected);
    const std::int64_t time = pick(random, 0, 5000);
    const auto after = std::lower_bound(expected.begin(), expected.end(), std::pair(time, 0u));
    const auto next = next_match(document, match, time);
    ASSERT_EQ(next.has_value(), after != expected.end());
    if (next) {
      ASSERT_EQ(*next, after->second);
    }
  }
}

TEST(Search, AnEmptyTextMatchesNothing) {
  Random random(3);
  const Document document = Document::build(testing::random_trace(random, {}), "random");
  EXPECT_TRUE(find_names(document, "").empty());
  EXPECT_TRUE(find_names(document, "nowhere to be found").empty());
  EXPECT_FALSE(next_match(document, find_names(document, "nowhere"), 0));
}

TEST(Search, FindsAnOpOnARankFromATimeOn) {
  Trace trace;
  for (int rank = 0; rank < 2; ++rank) {
    Track track;
    track.rank = Rank{rank};
    trace.tracks.push_back(track);
    for (const std::int64_t begin : {40, 10}) {
      testing::add_span(trace, {.track = TrackId{rank}, .begin_ns = begin + rank, .duration_ns = 1, .op = OpId{5}});
    }
  }
  const Document document = Document::build(std::move(trace), "ops");
  EXPECT_EQ(find_op(document, OpId{5}), 1u);
  EXPECT_EQ(find_op(document, OpId{5}, Rank{1}), 3u);
  EXPECT_EQ(find_op(document, OpId{5}, Rank{}, 12), 0u);
  EXPECT_FALSE(find_op(document, OpId{6}));
}

TEST(Counters, ColumnsEqualBruteForce) {
  Random random(4);
  std::vector<ValueColumn> columns;
  for (int n = 0; n < 40; ++n) {
    const Trace trace = testing::random_trace(random, {.counters = 300});
    const CounterSeries series = counter_series(trace).at(0);
    const std::vector<std::int64_t>& times = series.curve.times_ns();
    for (int v = 0; v < 50; ++v) {
      const PixelRange view = testing::random_view(random, 5000, 12);
      series.curve.columns(view, columns);
      for (std::int32_t c = 0; c < view.width; ++c) {
        ValueColumn expected;
        for (std::size_t i = 0; i < times.size() && times[i] < view.end(c); ++i) {
          const double value = series.curve.values()[i];
          const bool holds = times[i] >= view.begin(c) || i + 1 == times.size() || times[i + 1] >= view.begin(c);
          if (!holds) continue;
          expected.highest = expected.any ? std::max(expected.highest, value) : value;
          expected.lowest = expected.any ? std::min(expected.lowest, value) : value;
          expected.last = value;
          expected.any = true;
        }
        const ValueColumn& column = columns[static_cast<std::size_t>(c)];
        ASSERT_EQ(column.any, expected.any);
        ASSERT_EQ(column.highest, expected.highest);
        ASSERT_EQ(column.lowest, expected.lowest);
        ASSERT_EQ(column.last, expected.last);
      }
    }
  }
}

}  // namespace
}  // namespace shard::view
