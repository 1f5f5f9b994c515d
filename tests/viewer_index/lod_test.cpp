// Is level of detail exact: do its sums equal those of every span looked at, in any view?
#include "viewer/index/lod.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/viewer_index/random_trace.h"
#include "viewer/index/document.h"

namespace shard::view {
namespace {

using testing::pick;
using testing::Random;
using testing::random_view;

/// The picture of a row by looking at every span and, for each, at every column near it.
RowPicture by_brute_force(const Document& document, const Row& row, const PixelRange& view, std::int64_t wide_ns) {
  RowPicture picture;
  std::map<std::int32_t, BusyColumn> columns;
  const auto touches = [](TimeRange span, std::int64_t begin, std::int64_t end) {
    return span.begin_ns < end && (span.end_ns > begin || span.begin_ns >= begin);
  };
  for (std::size_t i = 0; i < row.index.size(); ++i) {
    const std::uint32_t span = row.index.spans()[i];
    const TimeRange time = document.time_of(span);
    if (!touches(time, view.time.begin_ns, view.time.end_ns)) continue;
    const SpanClass kind = document.class_of(span);
    if (time.length_ns() >= wide_ns) {
      picture.wide.push_back({span, kind, time.begin_ns, time.end_ns});
      continue;
    }
    for (std::int32_t c = 0; c < view.width; ++c) {
      const std::int64_t begin = view.begin(c), end = view.end(c);
      if (!touches(time, begin, end)) continue;
      BusyColumn& column = columns[c];
      column.column = c;
      ++column.count;
      column.busy_ns[static_cast<std::size_t>(kind)] += std::min(time.end_ns, end) - std::max(time.begin_ns, begin);
    }
  }
  for (const auto& [c, column] : columns) picture.columns.push_back(column);
  return picture;
}

::testing::AssertionResult equal(const RowPicture& a, const RowPicture& b) {
  if (a.wide.size() != b.wide.size() || a.columns.size() != b.columns.size()) {
    return ::testing::AssertionFailure() << "wide " << a.wide.size() << " and " << b.wide.size() << ", columns "
                                         << a.columns.size() << " and " << b.columns.size();
  }
  for (std::size_t i = 0; i < a.wide.size(); ++i) {
    const WideSpan &x = a.wide[i], &y = b.wide[i];
    if (x.span != y.span || x.kind != y.kind || x.begin_ns != y.begin_ns || x.end_ns != y.end_ns) {
      return ::testing::AssertionFailure() << "wide span " << i;
    }
  }
  for (std::size_t i = 0; i < a.columns.size(); ++i) {
    const BusyColumn &x = a.columns[i], &y = b.columns[i];
    if (x.column != y.column || x.count != y.count || x.busy_ns != y.busy_ns) {
      return ::testing::AssertionFailure() << "column " << x.column << " and " << y.column;
    }
  }
  return ::testing::AssertionSuccess();
}

void expect_exact(Random& random, const testing::TraceShape& shape, int views, std::int32_t widest) {
  const Document document = Document::build(testing::random_trace(random, shape), "random");
  RowPicture picture;
  for (int n = 0; n < views; ++n) {
    const Row& row =
        document
            .rows()[static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(document.rows().size()) - 1))];
    const PixelRange view = random_view(random, shape.length_ns, widest);
    const std::int64_t wide = pick(random, 0, 1) == 0 ? wide_at_least(view, 3) : pick(random, 1, shape.longest_ns + 1);
    row.index.draw(document.trace().spans, view, wide, picture);
    ASSERT_TRUE(equal(picture, by_brute_force(document, row, view, wide)))
        << "view [" << view.time.begin_ns << ", " << view.time.end_ns << ") in " << view.width << ", wide " << wide;
    const ByClass busy = row.index.busy(document.trace().spans, view.time);
    const RowPicture whole = by_brute_force(document, row, {view.time, 1}, INT64_MAX);
    ASSERT_EQ(busy, whole.columns.empty() ? ByClass{} : whole.columns[0].busy_ns);
    ASSERT_EQ(row.index.count(document.trace().spans, view.time), whole.columns.empty() ? 0 : whole.columns[0].count);
  }
}

TEST(LevelOfDetail, EqualsBruteForceOn100000RandomViews) {
  Random random(1);
  for (int trace = 0; trace < 50; ++trace) expect_exact(random, {.tracks = 4, .spans = 300}, 2000, 16);
}

TEST(LevelOfDetail, EqualsBruteForceOnLongRowsOfShortSpans) {
  Random random(2);
  const testing::TraceShape shape{.tracks = 1, .spans = 12'000, .length_ns = 400'000, .longest_ns = 60};
  expect_exact(random, shape, 100, 100);
}

TEST(LevelOfDetail, KeepsTimesThatDoNotFitInShort) {
  // Durations and gaps beyond 2^32 ns, beside short ones.
  Random random(3);
  const testing::TraceShape shape{
      .tracks = 1, .spans = 300, .length_ns = std::int64_t{1} << 40, .longest_ns = std::int64_t{1} << 36};
  expect_exact(random, shape, 3000, 50);
}

TEST(LevelOfDetail, SumsOverColumnsAreTheTotal) {
  Random random(4);
  const Document document = Document::build(testing::random_trace(random, {}), "random");
  RowPicture picture;
  for (const Row& row : document.rows()) {
    row.index.draw(document.trace().spans, {document.range(), 97}, INT64_MAX, picture);
    ByClass sum{};
    for (const BusyColumn& column : picture.columns) {
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += column.busy_ns[c];
    }
    EXPECT_EQ(sum, row.index.busy(document.trace().spans, document.range()));
  }
}

}  // namespace
}  // namespace shard::view
