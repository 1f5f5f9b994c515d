// Random and planted traces for the tests, with files that clean up after themselves.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "traces/event.h"
#include "traces/reader.h"
#include "traces/writer.h"

namespace shard::sample {

/// A path of its own per test, removed at the end.
class TempFile {
 public:
  explicit TempFile(const std::string& suffix = ".sst") {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    static int counter = 0;
    std::string name = std::string(test->test_suite_name()) + "." + test->name() + "." + std::to_string(::getpid()) +
                       "." + std::to_string(counter++) + suffix;
    std::replace(name.begin(), name.end(), '/', '_');
    path_ = std::filesystem::temp_directory_path() / name;
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

inline void write_bytes(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// Everything that was given to a writer, in the order in which it was given.
struct Recorded {
  Header header;
  std::vector<Track> tracks;
  std::vector<std::string> names;
  std::vector<Span> spans;
  std::vector<MemoryEvent> memory;
  std::vector<Counter> counters;
  std::vector<ChunkState> chunk_states;
  std::vector<Flow> flows;
  std::vector<ArenaSummary> arenas;
  std::vector<CollectiveTotal> collectives;
};

struct RandomOptions {
  int spans = 200;
  int memory_events = 100;
  int others = 20;
  int flush_every = 0;  ///< events between flushes; 0: never
};

/// Writes random events, extreme values among them, and returns what was written.
inline Recorded write_random(const std::filesystem::path& path, unsigned seed, const RandomOptions& options = {}) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Recorded all;
  Header& header = all.header;
  header.kind = below(2) == 0 ? TraceKind::predicted : TraceKind::measured;
  header.world_size = static_cast<std::int32_t>(1 + below(16));
  header.plan_hash = below(3) == 0 ? "" : "00ff" + std::to_string(below(1000));
  header.parent_plan_hash = below(3) == 0 ? "abcdef" : "";
  header.clock_ns = below(1000);
  header.wall_ns = below(1'000'000);
  for (auto& byte : header.uuid) byte = static_cast<std::uint8_t>(below(256));
  header.metadata = {{"model", "gpt2"},
                     {"", ""},
                     {"config", std::string(static_cast<std::size_t>(below(seed % 2 == 0 ? 3000 : 30)), '{')}};

  Result<Writer> writer = Writer::create(path, header);
  EXPECT_TRUE(writer) << to_string(writer.error());
  for (int rank = 0; rank < 3; ++rank) {
    for (const Stream stream : {Stream::compute, Stream::communication}) {
      all.tracks.push_back({Rank{rank}, TrackKind::stream, stream, Memory::device, rank == 2 ? "named" : ""});
      EXPECT_EQ(writer->track(all.tracks.back()).value, static_cast<int>(all.tracks.size()) - 1);
    }
  }
  int events = 0;
  const auto added = [&] {
    if (options.flush_every > 0 && ++events % options.flush_every == 0) {
      EXPECT_TRUE(writer->flush());
    }
  };
  const auto name = [&]() -> NameId {
    const std::string text = "name" + std::to_string(below(40));
    const NameId id = writer->name(text);
    if (static_cast<std::size_t>(id.value) == all.names.size()) all.names.push_back(text);
    return id;
  };
  const auto id = [&] { return static_cast<std::int32_t>(below(100) == 0 ? below(2) * 0x7fffffff - 1 : below(500)); };
  std::int64_t now = -1000;
  const auto time = [&] {
    if (below(100) == 0) return (std::int64_t{1} << 60) * (below(2) == 0 ? -1 : 1);
    return now += below(50);
  };
  for (int i = 0; i < options.spans; ++i) {
    Span span;
    span.track = TrackId{static_cast<std::int32_t>(below(6))};
    span.begin_ns = time();
    span.duration_ns = below(3) == 0 ? 0 : below(10'000);
    span.op = OpId{id()};
    span.name = below(5) == 0 ? NameId{} : name();
    span.phase = static_cast<Phase>(below(kPhaseCount));
    span.step = id();
    span.micro_step = id();
    span.bytes = below(10) == 0 ? static_cast<std::int64_t>(random()) : below(1 << 20);
    span.unit = UnitId{id()};
    if (span.bytes % 2 == 0) span.waiting_ns = span.duration_ns / 3;
    writer->add(span);
    all.spans.push_back(span);
    added();
  }
  for (int i = 0; i < options.memory_events; ++i) {
    MemoryEvent event;
    event.rank = Rank{static_cast<std::int32_t>(below(3))};
    event.memory = static_cast<Memory>(below(kMemoryCount));
    event.buffer = BufferId{id()};
    event.offset_bytes = below(std::int64_t{1} << 40);
    event.delta_bytes = below(1 << 30) - (1 << 29);
    event.category = static_cast<Category>(below(kCategoryCount));
    event.op = OpId{id()};
    event.time_ns = time();
    event.phase = static_cast<Phase>(below(kPhaseCount));
    event.step = id();
    event.unit = UnitId{id()};
    writer->add(event);
    all.memory.push_back(event);
    added();
  }
  for (int i = 0; i < options.others; ++i) {
    const Rank rank{static_cast<std::int32_t>(below(3))};
    const Memory memory = static_cast<Memory>(below(kMemoryCount));
    all.counters.push_back({rank, name(), time(), static_cast<double>(below(1000)) / 7});
    all.chunk_states.push_back({rank, UnitId{id()}, time(), memory, static_cast<UnitState>(below(5))});
    all.flows.push_back({TrackId{static_cast<std::int32_t>(below(6))}, time(),
                         TrackId{static_cast<std::int32_t>(below(6))}, time(), static_cast<FlowKind>(below(3))});
    all.arenas.push_back({rank, memory, static_cast<Phase>(below(kPhaseCount)), below(1 << 30), below(1 << 30), id()});
    all.collectives.push_back({rank, static_cast<Collective>(below(kCollectiveCount)), below(1000), below(1 << 30)});
    writer->add(all.counters.back());
    writer->add(all.chunk_states.back());
    writer->add(all.flows.back());
    writer->add(all.arenas.back());
    writer->add(all.collectives.back());
    added();
  }
  const Result<void> closed = writer->close();
  EXPECT_TRUE(closed) << to_string(closed.error());
  return all;
}

/// All rows of a table.
template <class Table>
auto rows(const Table& table) {
  std::vector<decltype(table[0])> result;
  for (std::size_t i = 0; i < table.size(); ++i) result.push_back(table[i]);
  return result;
}

/// Spans of one track in the order of a loaded trace.
inline std::vector<Span> spans_of(const Trace& trace, TrackId track) {
  std::vector<Span> result;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    if (trace.spans.track[i] == track) result.push_back(trace.spans[i]);
  }
  return result;
}

}  // namespace shard::sample

namespace shard {
/// How GoogleTest prints an event.
inline void PrintTo(const Span& s, std::ostream* out) {
  *out << "span{track " << s.track.value << ", " << s.begin_ns << "+" << s.duration_ns << ", op " << s.op.value
       << ", name " << s.name.value << ", " << to_string(s.phase) << " " << s.step << "." << s.micro_step << ", "
       << s.bytes << " bytes, unit " << s.unit.value << ", waiting " << s.waiting_ns << "}";
}
inline void PrintTo(const MemoryEvent& e, std::ostream* out) {
  *out << "memory{rank " << e.rank.value << " " << to_string(e.memory) << ", buffer " << e.buffer.value << " at "
       << e.offset_bytes << ", " << e.delta_bytes << ", " << to_string(e.category) << ", op " << e.op.value << ", t "
       << e.time_ns << "}";
}
}  // namespace shard
