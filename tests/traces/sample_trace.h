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
#include <type_traits>
#include <utility>
#include <vector>

#include "traces/event.h"
#include "traces/reader.h"
#include "traces/writer.h"

namespace shard::sample {

/// Parts of the format when the samples were recorded; those of later versions stand behind them.
inline constexpr int kSampleParts = 11;

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
  std::vector<StackFrame> frames;
  std::vector<StackNode> stacks;
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

/// Gives a writer random events, extreme values among them, and keeps what it gave.
class RandomEvents {
 public:
  RandomEvents(const std::filesystem::path& path, unsigned seed, const RandomOptions& options)
      : random_(seed), flush_every_(options.flush_every), writer_(Writer::create(path, header(seed, options.others))) {
    EXPECT_TRUE(writer_) << to_string(writer_.error());
    for (int rank = 0; rank < 3; ++rank) {
      for (const Stream stream : {Stream::compute, Stream::communication}) {
        all.tracks.push_back({Rank{rank}, TrackKind::stream, stream, Memory::device, rank == 2 ? "named" : ""});
        EXPECT_EQ(writer_->track(all.tracks.back()).value, static_cast<int>(all.tracks.size()) - 1);
      }
    }
  }

  void span() {
    Span span;
    span.track = TrackId{static_cast<std::int32_t>(below(6))};
    span.begin_ns = time();
    span.duration_ns = below(3) == 0 ? 0 : below(10'000);
    span.op = OpId{id()};
    span.name = below(5) == 0 ? NameId{} : name();
    span.phase = static_cast<Phase>(below(kPhaseCount));
    span.step = id();
    span.micro_step = id();
    span.bytes = below(10) == 0 ? static_cast<std::int64_t>(random_()) : below(1 << 20);
    span.unit = UnitId{id()};
    if (span.bytes % 2 == 0) span.waiting_ns = span.duration_ns / 3;
    span.part = static_cast<Part>(span.bytes % kSampleParts + (span.bytes < 0 ? kSampleParts - 1 : 0));
    add(all.spans, span);
  }
  void memory() {
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
    if (below(3) != 0) event.requested_bytes = below(1 << 29);
    if (below(4) != 0) event.stack = stack();
    add(all.memory, event);
  }
  /// One of each other kind.
  void others() {
    const Rank rank{static_cast<std::int32_t>(below(3))};
    const Memory memory = static_cast<Memory>(below(kMemoryCount));
    add(all.counters, {rank, name(), time(), static_cast<double>(below(1000)) / 7});
    add(all.chunk_states, {rank, UnitId{id()}, time(), memory, static_cast<UnitState>(below(5))});
    add(all.flows, {TrackId{static_cast<std::int32_t>(below(6))}, time(), TrackId{static_cast<std::int32_t>(below(6))},
                    time(), static_cast<FlowKind>(below(3))});
    add(all.arenas, {rank, memory, static_cast<Phase>(below(kPhaseCount)), below(1 << 30), below(1 << 30), id()});
    add(all.collectives, {rank, static_cast<Collective>(below(kCollectiveCount)), below(1000), below(1 << 30)});
  }
  void close() {
    const Result<void> closed = writer_->close();
    EXPECT_TRUE(closed) << to_string(closed.error());
  }

  Recorded all;

 private:
  Header header(unsigned seed, std::int64_t units) {
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
    for (std::int64_t unit = 0; unit < units; ++unit)
      header.units.push_back({unit % 7 == 3 ? "" : "chunk " + std::to_string(unit), unit * 1000, (unit * 1000) << 20});
    if (units > 0) {
      header.strategy = {{"stage", "3", true}, {"chunk_elements", "1000", true}, {"distributed", "", false}};
      header.capacities = {{Rank{}, Memory::device, 1, std::int64_t{80} << 30}, {Rank{2}, Memory::host, 8, 0}};
    }
    return header;
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  NameId name() {
    const std::string text = "name" + std::to_string(below(40));
    const NameId id = writer_->name(text);
    if (static_cast<std::size_t>(id.value) == all.names.size()) all.names.push_back(text);
    return id;
  }
  /// One that was given before, or one more call, of anybody.
  StackId stack() {
    const auto known = static_cast<std::int64_t>(all.stacks.size());
    if (known > 0 && below(2) == 0) return StackId{static_cast<std::int32_t>(below(known))};
    const StackFrame frame{name(), below(5) == 0 ? NameId{} : name(), static_cast<std::int32_t>(below(100))};
    const FrameId frame_id = writer_->frame(frame);
    if (static_cast<std::size_t>(frame_id.value) == all.frames.size()) all.frames.push_back(frame);
    const StackNode node{frame_id,
                         known == 0 || below(4) == 0 ? StackId{} : StackId{static_cast<std::int32_t>(below(known))}};
    const StackId id = writer_->stack(node);
    if (id.value == known) all.stacks.push_back(node);
    return id;
  }
  std::int32_t id() { return static_cast<std::int32_t>(below(100) == 0 ? below(2) * 0x7fffffff - 1 : below(500)); }
  std::int64_t time() {
    if (below(100) == 0) return (std::int64_t{1} << 60) * (below(2) == 0 ? -1 : 1);
    return now_ += below(50);
  }
  template <class Event>
  void add(std::vector<Event>& events, const std::type_identity_t<Event>& event) {
    writer_->add(event);
    events.push_back(event);
    if (flush_every_ > 0 && ++count_ % flush_every_ == 0) {
      EXPECT_TRUE(writer_->flush());
    }
  }

  std::mt19937_64 random_;
  int flush_every_;
  int count_ = 0;
  std::int64_t now_ = -1000;
  Result<Writer> writer_;
};

/// Writes random events and returns what was written.
inline Recorded write_random(const std::filesystem::path& path, unsigned seed, const RandomOptions& options = {}) {
  RandomEvents events(path, seed, options);
  for (int i = 0; i < options.spans; ++i) events.span();
  for (int i = 0; i < options.memory_events; ++i) events.memory();
  for (int i = 0; i < options.others; ++i) events.others();
  events.close();
  return std::move(events.all);
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
       << s.bytes << " bytes, unit " << s.unit.value << ", waiting " << s.waiting_ns << ", " << to_string(s.part)
       << "}";
}
inline void PrintTo(const MemoryEvent& e, std::ostream* out) {
  *out << "memory{rank " << e.rank.value << " " << to_string(e.memory) << ", buffer " << e.buffer.value << " at "
       << e.offset_bytes << ", " << e.delta_bytes << ", " << to_string(e.category) << ", op " << e.op.value << ", t "
       << e.time_ns << ", asked for " << e.requested_bytes << ", stack " << e.stack.value << "}";
}
}  // namespace shard
