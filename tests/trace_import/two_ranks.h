// A small trace with everything that exports show.
#pragma once

#include <array>
#include <random>
#include <string>
#include <vector>

#include "tests/traces/sample_trace.h"

namespace shard::sample {

/// Two ranks, crossing spans, a track with a name of its own, memory in two categories, a counter, a flow. Times from
/// 0.
inline Trace two_ranks(unsigned seed) {
  const TempFile file;
  std::mt19937 generator(seed);
  const auto random = [&] { return static_cast<std::int64_t>(generator()); };
  Header header;
  header.kind = TraceKind::predicted;
  header.world_size = 2;
  header.plan_hash = "00ff";
  header.metadata["model"] = "tiny";
  header.units = {{"chunk 0", 10, 40}, {"", 0, 0}, {"chunk 2", 7, 28}};
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
                     .unit = UnitId{static_cast<std::int32_t>(random() % 5) - 1},
                     .waiting_ns = i % 3,
                     .part = static_cast<Part>(i % kPartCount)});
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

}  // namespace shard::sample
