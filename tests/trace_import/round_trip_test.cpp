// Do our own exports come back equal: tracks, spans, and memory over time?
#include <algorithm>
#include <tuple>

#include "tests/trace_import/files.h"
#include "tests/trace_import/two_ranks.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"
#include "traces/export/timeline.h"

namespace shard {
namespace {

using sample::TempFile;

/// Spans by what they say, whatever the numbers of tracks and names are.
auto rows(const Trace& trace) {
  std::vector<std::tuple<int, int, int, std::string, std::int64_t, std::int64_t, int, std::string, int, int, int,
                         std::int64_t, int, std::int64_t, int>>
      result;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const Span s = trace.spans[i];
    const Track& track = trace.track_of(s.track);
    const int stream = track.kind == TrackKind::stream ? static_cast<int>(track.stream) : -1;
    result.emplace_back(track.rank.value, static_cast<int>(track.kind), stream, track.name, s.begin_ns, s.duration_ns,
                        s.op.value, trace.name_of(s.name), static_cast<int>(s.phase), s.step, s.micro_step, s.bytes,
                        s.unit.value, s.waiting_ns, static_cast<int>(s.part));
  }
  std::sort(result.begin(), result.end());
  return result;
}

auto memory(const Trace& trace) {
  std::vector<std::tuple<int, int, std::int64_t, std::int64_t, int, std::int64_t>> result;
  for (const MemoryCurve& curve : memory_curves(trace)) {
    for (const MemorySample& sample : curve.samples) {
      result.emplace_back(curve.rank.value, static_cast<int>(curve.memory), sample.time_ns, sample.live_bytes,
                          static_cast<int>(sample.category), sample.category_bytes);
    }
  }
  return result;
}

LoadedTrace back(const std::filesystem::path& path) {
  Result<LoadedTrace> loaded = load_any(path);
  EXPECT_TRUE(loaded) << to_string(loaded.error());
  return loaded ? std::move(*loaded) : LoadedTrace{};
}

void expect_equal(const Trace& trace, const LoadedTrace& again) {
  EXPECT_EQ(rows(again.trace), rows(trace));
  EXPECT_EQ(memory(again.trace), memory(trace));
  EXPECT_EQ(again.memory_event_count, static_cast<std::int64_t>(trace.memory.size()));
  ASSERT_EQ(again.trace.counters.size(), trace.counters.size());
  EXPECT_EQ(again.trace.counters[0].value, 2.5);
  EXPECT_EQ(again.trace.counters[0].rank, Rank{1});
  ASSERT_EQ(again.trace.flows.size(), 1u);
  EXPECT_EQ(again.trace.flows[0].from_ns, 1);
  EXPECT_EQ(again.trace.flows[0].to_ns, 9);
  EXPECT_TRUE(again.trace.complete());
  EXPECT_TRUE(again.notes.empty());
}

TEST(RoundTrip, ChromeJson) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Trace trace = sample::two_ranks(seed);
    const TempFile file(".json");
    ASSERT_TRUE(export_chrome_json(trace, file.path()));
    const LoadedTrace again = back(file.path());
    expect_equal(trace, again);
    EXPECT_EQ(again.format, TraceFormat::chrome);
    EXPECT_EQ(again.trace.header.plan_hash, "00ff");
    EXPECT_EQ(again.trace.header.kind, TraceKind::predicted);
    EXPECT_EQ(again.trace.header.metadata.at("model"), "tiny");
    EXPECT_EQ(again.trace.header.units, trace.header.units);
  }
}

TEST(RoundTrip, Perfetto) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Trace trace = sample::two_ranks(seed);
    const TempFile file(".pftrace");
    ASSERT_TRUE(export_perfetto(trace, file.path()));
    expect_equal(trace, back(file.path()));
  }
}

TEST(RoundTrip, NegativeTimesComeBackFromChromeJson) {
  const TempFile native, file(".json");
  Result<Writer> writer = Writer::create(native.path(), Header{});
  ASSERT_TRUE(writer);
  writer->add(
      Span{.track = writer->track({.rank = Rank{0}}), .begin_ns = -1234, .duration_ns = 5, .name = writer->name("a")});
  ASSERT_TRUE(writer->close());
  ASSERT_TRUE(export_chrome_json(*load(native.path()), file.path()));
  EXPECT_EQ(files::spans(back(file.path()).trace), "a -1234+5");
}

}  // namespace
}  // namespace shard
