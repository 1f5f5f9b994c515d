// Does everything that was written come back, value for value?
#include <algorithm>
#include <map>

#include "tests/traces/sample_trace.h"

namespace shard {
namespace {

using sample::Recorded;
using sample::rows;
using sample::TempFile;

/// Memory events by (rank, memory): their order within one is the order of writing.
std::map<std::pair<Rank, Memory>, std::vector<MemoryEvent>> by_memory(const std::vector<MemoryEvent>& events) {
  std::map<std::pair<Rank, Memory>, std::vector<MemoryEvent>> result;
  for (const MemoryEvent& event : events) result[{event.rank, event.memory}].push_back(event);
  return result;
}

/// Spans by track, sorted by begin; equal begins stay in order of writing, frame by frame.
std::map<TrackId, std::vector<Span>> by_track(std::vector<Span> spans) {
  std::map<TrackId, std::vector<Span>> result;
  for (const Span& span : spans) result[span.track].push_back(span);
  for (auto& [track, list] : result) {
    std::stable_sort(list.begin(), list.end(), [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
  }
  return result;
}

void expect_same(const Trace& trace, const Recorded& written) {
  EXPECT_TRUE(trace.complete()) << trace.truncated.front().offset << ": " << trace.truncated.front().why;
  EXPECT_EQ(trace.header, written.header);
  for (std::size_t i = 0; i < written.tracks.size(); ++i) EXPECT_EQ(trace.tracks[i], written.tracks[i]);
  EXPECT_EQ(trace.names, written.names);
  EXPECT_EQ(trace.frames, written.frames);
  EXPECT_EQ(trace.stacks, written.stacks);
  EXPECT_EQ(by_track(rows(trace.spans)), by_track(written.spans));
  EXPECT_EQ(by_memory(rows(trace.memory)), by_memory(written.memory));
  EXPECT_EQ(trace.counters, written.counters);
  EXPECT_EQ(trace.chunk_states, written.chunk_states);
  EXPECT_EQ(trace.flows, written.flows);
  EXPECT_EQ(trace.arenas, written.arenas);
  EXPECT_EQ(trace.collectives, written.collectives);
  EXPECT_EQ(trace.skipped_frame_count, 0);
}

class RoundTrip : public ::testing::TestWithParam<unsigned> {};

TEST_P(RoundTrip, RandomTraceComesBackWhole) {
  const TempFile file;
  const Recorded written = sample::write_random(file.path(), GetParam());
  const Result<Trace> trace = load(file.path());
  ASSERT_TRUE(trace) << to_string(trace.error());
  expect_same(*trace, written);
}

TEST_P(RoundTrip, FlushingInBetweenChangesNothing) {
  const TempFile file;
  const int flush_every = static_cast<int>(1 + GetParam() * 7);
  const Recorded written = sample::write_random(file.path(), GetParam(), {.flush_every = flush_every});
  const Result<Trace> trace = load(file.path());
  ASSERT_TRUE(trace) << to_string(trace.error());
  expect_same(*trace, written);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RoundTrip, ::testing::Range(0u, 10u));

TEST(RoundTripLarge, MoreEventsThanOneFlush) {
  const TempFile file;
  const Recorded written = sample::write_random(file.path(), 1, {.spans = 150'000, .memory_events = 70'000});
  const Result<Trace> trace = load(file.path());
  ASSERT_TRUE(trace) << to_string(trace.error());
  expect_same(*trace, written);
}

TEST(RoundTripSmall, EmptyTrace) {
  const TempFile file;
  Result<Writer> writer = Writer::create(file.path(), {});
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->close());
  const Result<Trace> trace = load(file.path());
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(trace->header, Header{});
  EXPECT_TRUE(trace->spans.empty());
}

TEST(RoundTripSmall, ZeroDurationAndEqualTracks) {
  const TempFile file;
  Result<Writer> writer = Writer::create(file.path(), {});
  ASSERT_TRUE(writer);
  Span span;
  span.track = writer->track({.rank = Rank{0}});
  EXPECT_EQ(writer->track({.rank = Rank{0}}), span.track);
  EXPECT_EQ(writer->name("op"), writer->name("op"));
  span.begin_ns = 5;
  writer->add(span);
  ASSERT_TRUE(writer->close());
  const Result<Trace> trace = load(file.path());
  ASSERT_TRUE(trace);
  EXPECT_EQ(rows(trace->spans), std::vector<Span>{span});
}

TEST(RoundTripSmall, LaterMetadataAndDroppedEvents) {
  const TempFile file;
  Header header;
  header.metadata["a"] = "1";
  Result<Writer> writer = Writer::create(file.path(), header);
  ASSERT_TRUE(writer);
  writer->add_metadata("a", "2");
  writer->add_metadata("b", "3");
  writer->add_dropped(4);
  ASSERT_TRUE(writer->flush());
  writer->add_dropped(5);
  ASSERT_TRUE(writer->close());
  const Result<Trace> trace = load(file.path());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->header.metadata, (std::map<std::string, std::string>{{"a", "2"}, {"b", "3"}}));
  EXPECT_EQ(trace->dropped_count, 9);
}

TEST(RoundTripSmall, AnOlderFileStaysReadableForWhoHasItOpen) {
  const TempFile file;
  sample::write_random(file.path(), 1);
  const std::ifstream open(file.path(), std::ios::binary);
  const std::size_t before = sample::read_bytes(file.path()).size();
  Result<Writer> writer = Writer::create(file.path(), {});
  ASSERT_TRUE(writer);
  std::stringstream old;
  old << open.rdbuf();
  EXPECT_EQ(old.str().size(), before);
}

}  // namespace
}  // namespace shard
