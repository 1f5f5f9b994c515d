// Do our own exports come back equal: tracks, spans, and memory over time?
#include <algorithm>
#include <tuple>

#include "tests/trace_import/files.h"
#include "tests/traces/sample_trace.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"
#include "traces/export/timeline.h"

namespace shard {
namespace {

using sample::TempFile;

/// Two ranks, crossing spans, a track with a name of its own, memory in two categories, a counter, a flow. Times from
/// 0.
Trace sample_of(unsigned seed) {
  const TempFile file;
  std::mt19937 generator(seed);
  const auto random = [&] { return static_cast<std::int64_t>(generator()); };
  Header header;
  header.kind = TraceKind::predicted;
  header.world_size = 2;
  header.plan_hash = "00ff";
  header.metadata["model"] = "tiny";
  Result<Writer> writer = Writer::create(file.path(), header);
  EXPECT_TRUE(writer);
  std::vector<TrackId> tracks;
  for (int rank = 0; rank < 2; ++rank) {
    tracks.push_back(writer->track({.rank = Rank{rank}, .stream = Stream::compute}));
    tracks.push_back(writer->track({.rank = Rank{rank}, .stream = Stream::communication}));
    tracks.push_back(writer->track({.rank = Rank{rank}, .kind = TrackKind::other, .name = "loader"}));
  }
  std::int64_t now = 0;
  std::array<std::array<std::int64_t, 2>, 2> live{};
  for (int i = 0; i < 300; ++i) {
    now += random() % 50;
    writer->add(Span{.track = tracks[static_cast<std::size_t>(random()) % tracks.size()],
                     .begin_ns = now,
                     .duration_ns = random() % 200,
                     .op = OpId{i},
                     .name = writer->name("op" + std::to_string(random() % 20)),
                     .phase = static_cast<Phase>(random() % kPhaseCount),
                     .step = static_cast<std::int32_t>(random() % 3),
                     .micro_step = static_cast<std::int32_t>(random() % 3) - 1,
                     .bytes = random() % 1000,
                     .unit = UnitId{static_cast<std::int32_t>(random() % 5) - 1}});
    const int rank = static_cast<int>(random() % 2), category = static_cast<int>(random() % 2);
    std::int64_t& bytes = live[static_cast<std::size_t>(rank)][static_cast<std::size_t>(category)];
    const std::int64_t delta = bytes > 500 ? -bytes / 2 - 1 : 1 + random() % 400;
    bytes += delta;
    writer->add(MemoryEvent{.rank = Rank{rank},
                            .buffer = BufferId{i},
                            .delta_bytes = delta,
                            .category = category == 0 ? Category::parameter : Category::activation,
                            .time_ns = now});
  }
  writer->add(Counter{Rank{1}, writer->name("loss"), 5, 2.5});
  writer->add(Flow{tracks[0], 1, tracks[4], 9, FlowKind::dependency});
  EXPECT_TRUE(writer->close());
  return *load(file.path());
}

/// Spans by what they say, whatever the numbers of tracks and names are.
auto rows(const Trace& trace) {
  std::vector<std::tuple<int, int, int, std::string, std::int64_t, std::int64_t, int, std::string, int, int, int,
                         std::int64_t, int>>
      result;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const Span s = trace.spans[i];
    const Track& track = trace.track_of(s.track);
    const int stream = track.kind == TrackKind::stream ? static_cast<int>(track.stream) : -1;
    result.emplace_back(track.rank.value, static_cast<int>(track.kind), stream, track.name, s.begin_ns, s.duration_ns,
                        s.op.value, trace.name_of(s.name), static_cast<int>(s.phase), s.step, s.micro_step, s.bytes,
                        s.unit.value);
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
    const Trace trace = sample_of(seed);
    const TempFile file(".json");
    ASSERT_TRUE(export_chrome_json(trace, file.path()));
    const LoadedTrace again = back(file.path());
    expect_equal(trace, again);
    EXPECT_EQ(again.format, TraceFormat::chrome);
    EXPECT_EQ(again.trace.header.plan_hash, "00ff");
    EXPECT_EQ(again.trace.header.kind, TraceKind::predicted);
    EXPECT_EQ(again.trace.header.metadata.at("model"), "tiny");
  }
}

TEST(RoundTrip, Perfetto) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Trace trace = sample_of(seed);
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
