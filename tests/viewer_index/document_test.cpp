// Is every span on exactly one row, where lanes and nesting say, and found again from there?
#include "viewer/index/document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/viewer_index/random_trace.h"
#include "traces/lanes.h"

namespace shard::view {
namespace {

using testing::Random;

TEST(Document, RowsAreLanesAndDepths) {
  Random random(1);
  for (int n = 0; n < 40; ++n) {
    const Document document = Document::build(
        testing::random_trace(random, {.spans = 300, .length_ns = 900, .sorted = n % 2 == 0}), "random");
    const Trace& trace = document.trace();
    const Lanes lanes = assign_lanes(trace);
    // Depth by counting: the spans of a lane that come before and are still open.
    std::map<std::uint32_t, std::int32_t> depth;
    for (std::size_t i = 0; i < lanes.order.size(); ++i) {
      for (std::size_t before = 0; before < i; ++before) {
        const std::uint32_t a = lanes.order[before], b = lanes.order[i];
        if (trace.spans.track[a] != trace.spans.track[b] || lanes.lane[a] != lanes.lane[b]) continue;
        if (document.time_of(a).end_ns > document.time_of(b).begin_ns) ++depth[b];
      }
    }
    std::size_t seen = 0;
    for (std::size_t r = 0; r < document.rows().size(); ++r) {
      const Row& row = document.rows()[r];
      std::int64_t end = INT64_MIN;
      for (std::size_t i = 0; i < row.index.size(); ++i) {
        const std::uint32_t span = row.index.spans()[i];
        ASSERT_EQ(trace.spans.track[span], row.track);
        ASSERT_EQ(lanes.lane[span], row.lane);
        ASSERT_EQ(depth[span], row.depth);
        ASSERT_GE(document.time_of(span).begin_ns, end);
        end = document.time_of(span).end_ns;
        const RowPosition place = document.place_of(span);
        ASSERT_EQ(place.row, r);
        ASSERT_EQ(place.position, i);
        ASSERT_EQ(row.index.class_at(i), document.class_of(span));
        if (trace.spans.duration_ns[span] > 0) {
          ASSERT_EQ(document.span_at(r, document.time_of(span).begin_ns), span);
          ASSERT_EQ(document.span_at(r, end - 1), span);
        }
        ++seen;
      }
    }
    EXPECT_EQ(seen, trace.spans.size());
  }
}

TEST(Document, TracksAreOrderedByRankThenStream) {
  Trace trace;
  for (const auto& [rank, stream] : std::vector<std::pair<int, Stream>>{
           {1, Stream::compute}, {0, Stream::host}, {0, Stream::communication}, {1, Stream::optimizer}}) {
    Track track;
    track.rank = Rank{rank};
    track.stream = stream;
    trace.tracks.push_back(track);
    testing::add_span(trace, {.track = TrackId{static_cast<std::int32_t>(trace.tracks.size()) - 1}, .duration_ns = 5});
  }
  const Document document = Document::build(std::move(trace), "t");
  std::vector<std::string> names;
  for (const TrackRows& track : document.tracks()) names.push_back(std::to_string(track.rank.value) + " " + track.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0 communication", "0 host", "1 compute", "1 optimizer"}));
  EXPECT_EQ(document.ranks(), (std::vector<Rank>{Rank{0}, Rank{1}}));
}

TEST(Document, AnEmptyTraceHasNothingToShow) {
  const Document document = Document::build(Trace{}, "empty");
  EXPECT_EQ(document.range(), TimeRange{});
  EXPECT_TRUE(document.rows().empty());
  EXPECT_EQ(document.highest_memory(), nullptr);
  EXPECT_EQ(document.step_at(0), nullptr);
}

TEST(Document, ProgressGrowsToOne) {
  Random random(3);
  std::vector<double> seen;
  (void)Document::build(testing::random_trace(random, {}), "p", [&](double share) { seen.push_back(share); });
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), 1);
}

TEST(SpanClass, IsToldFromStreamAndPart) {
  const auto on = [](Stream stream, Part part) {
    Track track;
    track.stream = stream;
    return class_of(track, part);
  };
  EXPECT_EQ(on(Stream::compute, Part::forward), SpanClass::forward);
  EXPECT_EQ(on(Stream::compute, Part::recompute), SpanClass::recompute);
  EXPECT_EQ(on(Stream::compute, Part::reduce), SpanClass::reduce);
  EXPECT_EQ(on(Stream::compute, Part::data), SpanClass::host);
  EXPECT_EQ(on(Stream::communication, Part::gather), SpanClass::gather);
  EXPECT_EQ(on(Stream::communication, Part::digest), SpanClass::gather);
  EXPECT_EQ(on(Stream::communication, Part::backward), SpanClass::communication);
  EXPECT_EQ(on(Stream::copy_in, Part::gather), SpanClass::copy);
  EXPECT_EQ(on(Stream::optimizer, Part::optimizer), SpanClass::optimizer);
}

TEST(SpanClass, ThePartCountsWhereThereIsOneAndNamesDoNot) {
  Trace trace;
  trace.tracks.push_back({.rank = Rank{0}, .stream = Stream::compute});
  trace.names = {"step chunk 3", "gather"};
  testing::add_span(trace, {.track = TrackId{0}, .begin_ns = 0, .name = NameId{0}, .part = Part::backward});
  testing::add_span(trace, {.track = TrackId{0}, .begin_ns = 9, .name = NameId{0}});
  const Document document = Document::build(std::move(trace), "t");
  EXPECT_EQ(document.class_of(0), SpanClass::backward);
  EXPECT_EQ(document.class_of(1), SpanClass::optimizer);
  EXPECT_EQ(document.rows()[0].index.class_at(0), SpanClass::backward);
  EXPECT_EQ(document.rows()[0].index.class_at(1), SpanClass::optimizer);
}

TEST(SpanClass, OfASpanWithoutAPartIsToldFromStreamAndName) {
  const auto on = [](Stream stream, std::string_view name) {
    Track track;
    track.stream = stream;
    return class_of(track, class_of_name(name));
  };
  EXPECT_EQ(on(Stream::compute, "transformer.h.0.attn"), SpanClass::forward);
  EXPECT_EQ(on(Stream::compute, "transformer.h.0.attn backward"), SpanClass::backward);
  EXPECT_EQ(on(Stream::compute, "reduce_kernel"), SpanClass::forward);
  EXPECT_EQ(on(Stream::compute, "step chunk 3"), SpanClass::optimizer);
  EXPECT_EQ(on(Stream::communication, "gather chunk 3"), SpanClass::gather);
  EXPECT_EQ(on(Stream::communication, "reduce chunk 3"), SpanClass::reduce);
  EXPECT_EQ(on(Stream::communication, "gather losses"), SpanClass::gather);
  EXPECT_EQ(on(Stream::copy_in, "anything"), SpanClass::copy);
  Track other;
  other.kind = TrackKind::other;
  EXPECT_EQ(class_of(other, class_of_name("ncclDevKernel_AllGather_RING_LL")), SpanClass::gather);
  EXPECT_EQ(class_of(other, class_of_name("ncclDevKernel_ReduceScatter_Sum_f32")), SpanClass::reduce);
  EXPECT_EQ(class_of(other, class_of_name("ncclKernel_SendRecv")), SpanClass::communication);
  EXPECT_EQ(class_of(other, class_of_name("Memcpy HtoD (Pinned -> Device)")), SpanClass::copy);
  EXPECT_EQ(class_of(other, class_of_name("ampere_sgemm_128x64_tn")), SpanClass::other);
}

}  // namespace
}  // namespace shard::view
