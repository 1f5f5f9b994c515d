// Does a trace written as a PyTorch memory snapshot hold every event, and does our own importer read it back?
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "tests/trace_import/files.h"
#include "tests/traces/sample_trace.h"
#include "traces/export/pickle_writer.h"
#include "traces/export/pytorch_snapshot.h"
#include "traces/import/pickle.h"

namespace shard {
namespace {

using sample::TempFile;

void add(Trace& trace, const MemoryEvent& event) {
  trace.memory.push_back(event);
}

/// A span of no length, for its op's name.
void name_op(Trace& trace, OpId op, NameId name) {
  trace.spans.push_back({.track = TrackId{0}, .op = op, .name = name});
}

/// Buffers come and go at random in an arena of slots, on two ranks; some stay.
Trace random_trace(unsigned seed, bool with_offsets) {
  std::mt19937 generator(seed);
  Trace trace;
  trace.header.world_size = 3;
  trace.names = {"forward", "bad \xff name"};
  trace.tracks.push_back({.rank = Rank{0}});
  for (int op = 0; op < 2; ++op) name_op(trace, OpId{op}, NameId{op});
  struct Live {
    std::int32_t buffer;
    std::int64_t bytes;
  };
  std::array<std::array<std::optional<Live>, 8>, 2> slots;
  for (int i = 0; i < 400; ++i) {
    const std::size_t arena = generator() % 2;
    const std::size_t slot = generator() % 8;
    std::optional<Live>& live = slots[arena][slot];
    MemoryEvent event{.rank = Rank{arena == 0 ? 0 : 2},
                      .offset_bytes = with_offsets ? static_cast<std::int64_t>(slot) * 4096 : 0,
                      .category = static_cast<Category>(generator() % kCategoryCount),
                      .op = OpId{static_cast<std::int32_t>(generator() % 3)},
                      .time_ns = i * 1'000'000,
                      .step = i / 100};
    if (live) {
      event.buffer = BufferId{live->buffer};
      event.delta_bytes = -live->bytes;
      live.reset();
    } else {
      live = Live{i, 512 * static_cast<std::int64_t>(1 + generator() % 8)};
      event.buffer = BufferId{i};
      event.delta_bytes = live->bytes;
    }
    add(trace, event);
  }
  return trace;
}

class SnapshotExport : public ::testing::TestWithParam<bool> {};

TEST_P(SnapshotExport, ComesBackEventForEvent) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Trace trace = random_trace(seed, GetParam());
    const TempFile file(".pickle");
    ASSERT_TRUE(export_pytorch_snapshot(trace, file.path()));
    const Result<LoadedTrace> back = load_any(file.path());
    ASSERT_TRUE(back) << to_string(back.error());
    EXPECT_EQ(back->format, TraceFormat::pytorch_snapshot);
    EXPECT_TRUE(back->trace.complete());
    for (const Rank rank : {Rank{0}, Rank{2}}) {
      std::vector<std::pair<std::int64_t, std::int64_t>> written, read;
      std::int64_t live = 0;
      for (std::size_t i = 0; i < trace.memory.size(); ++i) {
        const MemoryEvent event = trace.memory[i];
        if (event.rank != rank) continue;
        written.emplace_back(event.time_ns, event.delta_bytes);
        live += event.delta_bytes;
      }
      for (std::size_t i = 0; i < back->trace.memory.size(); ++i) {
        const MemoryEvent event = back->trace.memory[i];
        if (event.rank == rank) read.emplace_back(event.time_ns, event.delta_bytes);
      }
      EXPECT_EQ(read, written);
      std::int64_t allocated = 0;
      for (const SnapshotSegment& segment : back->snapshot->segments)
        if (segment.device == rank.value) allocated += segment.allocated_bytes;
      EXPECT_EQ(allocated, live);
    }
    // Undone to the start nothing is left, and blocks tile their segments.
    EXPECT_EQ(back->snapshot->at_start.allocated_bytes, 0);
    EXPECT_EQ(back->snapshot->at_start.reserved_bytes, 0);
    for (const SnapshotSegment& segment : back->snapshot->segments) {
      std::uint64_t next = segment.address;
      for (const SnapshotBlock& block : segment.blocks) {
        EXPECT_EQ(block.address, next);
        next += static_cast<std::uint64_t>(block.bytes);
      }
      EXPECT_EQ(next, segment.address + static_cast<std::uint64_t>(segment.bytes));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Offsets, SnapshotExport, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "Known" : "Unknown"; });

TEST(SnapshotExportRules, WithoutDeviceMemoryItIsRefused) {
  Trace trace;
  add(trace, {.rank = Rank{0}, .memory = Memory::host, .buffer = BufferId{1}, .delta_bytes = 5});
  const TempFile file(".pickle");
  const Result<void> written = export_pytorch_snapshot(trace, file.path());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::contradiction);
  EXPECT_FALSE(std::filesystem::exists(file.path()));
}

TEST(SnapshotExportRules, WhatWasNeverAcquiredIsNotReleased) {
  Trace trace;
  add(trace, {.rank = Rank{0}, .buffer = BufferId{1}, .delta_bytes = -512});
  add(trace, {.rank = Rank{0}, .buffer = BufferId{2}, .delta_bytes = 512, .time_ns = 1000});
  const TempFile file(".pickle");
  ASSERT_TRUE(export_pytorch_snapshot(trace, file.path()));
  const Result<LoadedTrace> back = load_any(file.path());
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_THAT(back->trace.memory.delta_bytes, ::testing::ElementsAre(512));
}

TEST(PickleWriter, NumbersComeBack) {
  const TempFile file(".pickle");
  Result<OutputFile> out = OutputFile::create(file.path());
  ASSERT_TRUE(out);
  const std::vector<std::int64_t> numbers{0,
                                          1,
                                          255,
                                          256,
                                          -1,
                                          INT32_MAX,
                                          INT32_MIN,
                                          std::int64_t{1} << 31,
                                          (std::int64_t{1} << 58) + 3,
                                          -(std::int64_t{1} << 58)};
  PickleWriter writer(*out);
  writer.begin_list();
  for (const std::int64_t number : numbers) writer.integer(number);
  writer.end_list();
  writer.finish();
  ASSERT_TRUE(out->finish());
  Result<import::ByteSource> source = import::ByteSource::open(file.path());
  ASSERT_TRUE(source);
  import::PickleReader reader(*source);
  ASSERT_TRUE(reader.run());
  std::vector<std::int64_t> read;
  for (const auto value : reader.items(reader.result())) read.push_back(reader.integer(value).value_or(7));
  EXPECT_EQ(read, numbers);
}

}  // namespace
}  // namespace shard
