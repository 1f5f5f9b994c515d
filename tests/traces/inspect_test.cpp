// Are counts, peaks, steps and lanes of a trace what its events say?
#include "traces/inspect.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/traces/sample_trace.h"
#include "traces/lanes.h"

namespace shard {
namespace {

using sample::TempFile;

/// A trace with one track per list; spans as {begin, end}.
Trace with_spans(const std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>>& tracks) {
  const TempFile file;
  Result<Writer> writer = Writer::create(file.path(), {});
  EXPECT_TRUE(writer);
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    const TrackId track = writer->track({.rank = Rank{static_cast<int>(t)}});
    for (const auto& [begin, end] : tracks[t]) {
      writer->add(Span{.track = track, .begin_ns = begin, .duration_ns = end - begin});
    }
  }
  EXPECT_TRUE(writer->close());
  return *load(file.path());
}

TEST(Lanes, NestedAndDisjointStayTogetherCrossingPart) {
  EXPECT_EQ(assign_lanes(with_spans({{{0, 10}, {2, 5}, {5, 8}, {10, 12}}})).lane,
            (std::vector<std::int32_t>{0, 0, 0, 0}));
  EXPECT_EQ(assign_lanes(with_spans({{{0, 10}, {5, 15}, {7, 9}}})).lane, (std::vector<std::int32_t>{0, 1, 0}));
  EXPECT_EQ(assign_lanes(with_spans({{{0, 0}, {0, 5}, {5, 5}, {0, 5}}})).count(), 1);
  const Lanes two = assign_lanes(with_spans({{{0, 3}, {1, 4}, {2, 5}}, {{0, 1}}}));
  EXPECT_EQ(two.lanes_of_track, (std::vector<std::int32_t>{3, 1}));
}

TEST(Lanes, NoTwoSpansOfALaneCross) {
  std::mt19937 random(3);
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> tracks(3);
  for (auto& track : tracks) {
    for (int i = 0; i < 150; ++i) {
      const auto begin = static_cast<std::int64_t>(random() % 100);
      track.emplace_back(begin, begin + static_cast<std::int64_t>(random() % 20));
    }
  }
  const Trace trace = with_spans(tracks);
  const Lanes lanes = assign_lanes(trace);
  const SpanTable& s = trace.spans;
  const auto end = [&](std::size_t i) { return s.begin_ns[i] + s.duration_ns[i]; };
  for (std::size_t i = 0; i < s.size(); ++i) {
    for (std::size_t j = 0; j < s.size(); ++j) {
      if (s.track[i] != s.track[j] || lanes.lane[i] != lanes.lane[j]) continue;
      const bool crosses = s.begin_ns[i] < s.begin_ns[j] && s.begin_ns[j] < end(i) && end(i) < end(j);
      ASSERT_FALSE(crosses) << i << " " << j;
    }
  }
}

Trace with_memory(const std::vector<MemoryEvent>& events) {
  const TempFile file;
  Result<Writer> writer = Writer::create(file.path(), {});
  EXPECT_TRUE(writer);
  for (const MemoryEvent& event : events) writer->add(event);
  EXPECT_TRUE(writer->close());
  return *load(file.path());
}

MemoryEvent event(int buffer, std::int64_t offset, std::int64_t delta, Category category, Phase phase) {
  return {.rank = Rank{0},
          .buffer = BufferId{buffer},
          .offset_bytes = offset,
          .delta_bytes = delta,
          .category = category,
          .op = OpId{buffer},
          .phase = phase};
}

TEST(Peaks, ByHand) {
  const auto a = Category::activation, p = Category::parameter;
  const Trace trace = with_memory({event(0, 0, 100, p, Phase::creation), event(1, 100, 50, p, Phase::creation),
                                   event(1, 100, -50, p, Phase::creation), event(2, 300, 20, a, Phase::steady_step),
                                   event(2, 300, -20, a, Phase::steady_step), event(0, 0, -100, p, Phase::save)});
  const std::vector<MemoryPeak> peaks = memory_peaks(trace);
  ASSERT_EQ(peaks.size(), 3u);
  EXPECT_EQ(peaks[0].peak_bytes, 150);
  EXPECT_EQ(peaks[0].live_peak_bytes, 150);
  EXPECT_EQ(peaks[0].peak_op, OpId{1});
  EXPECT_EQ(peaks[1].peak_bytes, 320);  // a hole below: the extent is more than what is live
  EXPECT_EQ(peaks[1].live_peak_bytes, 120);
  EXPECT_EQ(peaks[1].at_peak_bytes[static_cast<std::size_t>(a)], 20);
  EXPECT_EQ(peaks[1].at_peak_bytes[static_cast<std::size_t>(p)], 100);
  EXPECT_EQ(peaks[2].peak_bytes, 100);  // live since creation
  EXPECT_EQ(peaks[2].live_peak_bytes, 100);
}

TEST(Peaks, RandomLedgersAgreeWithRecounting) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<MemoryEvent> events;
    std::vector<MemoryEvent> live;
    std::int64_t extent = 0, most = 0;
    for (int i = 0; i < 100; ++i) {
      if (live.empty() || random() % 2 == 0) {
        live.push_back(event(i, random() % 1000, 1 + random() % 100, static_cast<Category>(random() % kCategoryCount),
                             Phase::steady_step));
        events.push_back(live.back());
      } else {
        const std::size_t k = random() % live.size();
        events.push_back(live[k]);
        events.back().delta_bytes = -live[k].delta_bytes;
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(k));
      }
      std::int64_t sum = 0;
      for (const MemoryEvent& e : live) {
        sum += e.delta_bytes;
        extent = std::max(extent, e.offset_bytes + e.delta_bytes);
      }
      most = std::max(most, sum);
    }
    const std::vector<MemoryPeak> peaks = memory_peaks(with_memory(events));
    ASSERT_EQ(peaks.size(), 1u);
    EXPECT_EQ(peaks[0].peak_bytes, extent);
    EXPECT_EQ(peaks[0].live_peak_bytes, most);
    EXPECT_EQ(std::accumulate(peaks[0].at_peak_bytes.begin(), peaks[0].at_peak_bytes.end(), std::int64_t{0}), most);
  }
}

TEST(Steps, FromFirstBeginToLastEndAndTheirMedian) {
  const TempFile file;
  Result<Writer> writer = Writer::create(file.path(), {});
  ASSERT_TRUE(writer);
  const TrackId track = writer->track({.rank = Rank{0}});
  for (int step = 0; step < 4; ++step) {
    const Phase phase = step == 0 ? Phase::first_step : Phase::steady_step;
    const std::int64_t t = 1000 * step;
    writer->add(Span{.track = track, .begin_ns = t, .duration_ns = 10, .phase = phase, .step = step});
    writer->add(Span{.track = track, .begin_ns = t + 50, .duration_ns = 50 * step, .phase = phase, .step = step});
  }
  ASSERT_TRUE(writer->close());
  const std::vector<StepTime> steps = step_times(*load(file.path()));
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[3], (StepTime{3, Phase::steady_step, 3000, 3200}));
  EXPECT_DOUBLE_EQ(median_step_seconds(steps), 150e-9);
  EXPECT_DOUBLE_EQ(median_step_seconds({steps[0]}), 50e-9);
  EXPECT_DOUBLE_EQ(median_step_seconds({steps[1], steps[2]}), 125e-9);
  EXPECT_EQ(median_step_seconds({}), 0);
}

TEST(Inspect, JsonOfARandomTraceCounts) {
  const TempFile file;
  sample::write_random(file.path(), 3);
  const nlohmann::ordered_json json = to_json(summarize(*load(file.path())));
  EXPECT_EQ(json["format"], "sst");
  EXPECT_EQ(json["span_count"], 200);
  EXPECT_EQ(json["memory_event_count"], 100);
  EXPECT_EQ(json["dropped_count"], 0);
  EXPECT_EQ(json["complete"], true);
  EXPECT_GE(json["lane_count"], 6);
  EXPECT_LT(json["begin_ns"], json["end_ns"]);
  EXPECT_EQ(json["arenas"].size(), 20u);
}

TEST(Inspect, SaysWhatTheTablesSay) {
  Trace trace;
  trace.header.units = {{"chunk 0", 10, 40}, {"chunk 1", 1000, 4000}};
  trace.header.strategy = {{"stage", "3", true}, {"freeze", "", true}, {"distributed_storage", "true", false}};
  trace.header.capacities = {{Rank{}, Memory::device, 1, std::int64_t{1} << 30}, {Rank{2}, Memory::host, 8, 2048}};
  const TraceSummary summary = summarize(trace);
  const nlohmann::ordered_json json = to_json(summary);
  EXPECT_EQ(json["units"][1]["name"], "chunk 1");
  EXPECT_EQ(json["units"][1]["unit"], 1);
  EXPECT_EQ(json["units"][1]["elements"], 1000);
  EXPECT_EQ(json["units"][1]["gathered_bytes"], 4000);
  EXPECT_EQ(json["strategy"]["stage"], "3");
  EXPECT_TRUE(json["strategy"]["freeze"].is_null());
  EXPECT_EQ(json["strategy"]["distributed_storage"], "true");
  EXPECT_TRUE(json["capacities"][0]["rank"].is_null());
  EXPECT_EQ(json["capacities"][0]["capacity_bytes"], 1 << 30);
  EXPECT_EQ(json["capacities"][1]["sharing_ranks"], 8);
  const std::string text = to_text(summary);
  EXPECT_NE(text.find("\nstrategy: stage 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("units: 2, the largest chunk 1 of 1000 elements"), std::string::npos) << text;
  EXPECT_NE(text.find("capacity of device memory: "), std::string::npos) << text;
  EXPECT_NE(text.find("capacity of host memory of rank 2: "), std::string::npos) << text;
  EXPECT_NE(text.find(" for 8 ranks\n"), std::string::npos) << text;
}

TEST(Inspect, TextSaysWhereAFileBrokeOff) {
  const TempFile file;
  sample::write_random(file.path(), 3);
  std::vector<std::byte> bytes = sample::read_bytes(file.path());
  bytes.resize(bytes.size() - 1);
  const TraceSummary summary = summarize(*load(std::span<const std::byte>(bytes)));
  EXPECT_FALSE(summary.complete());
  EXPECT_NE(to_text(summary).find("incomplete at byte "), std::string::npos);
}

}  // namespace
}  // namespace shard
