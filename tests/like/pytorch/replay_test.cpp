// Does the replay agree with what PyTorch recorded, and notice where it does not?
#include "sim/like/pytorch/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace shard {
namespace {

const std::string kHeader = "what,address,bytes,stream,pool,time_us\n";

Result<AllocatorReplay> replay(const std::string& rows) {
  std::istringstream text(kHeader + rows);
  return replay_allocator(text, "test.csv");
}

AllocatorReplay replay_file(const std::string& name) {
  std::ifstream file(TEST_DATA "/data/allocator/" + name);
  Result<AllocatorReplay> result = replay_allocator(file, name);
  EXPECT_TRUE(result) << to_string(result.error());
  return result ? *result : AllocatorReplay{};
}

std::string malformed_line(const std::string& rows) {
  const Result<AllocatorReplay> result = replay(rows);
  if (result) return "accepted";
  EXPECT_EQ(result.error().code, Errc::malformed) << result.error().what;
  return result.error().where;
}

// Recorded on GPUs by torch.cuda.memory; counts are those of the files' own rows.
TEST(Replay, EveryAddressAndSegmentOfASmallTraining) {
  const AllocatorReplay result = replay_file("small.csv");
  EXPECT_EQ(result.allocation_count, 1935);
  EXPECT_EQ(result.same_address_count, 1935);
  EXPECT_EQ(result.segment_count, 7);
  EXPECT_EQ(result.same_segment_count, 7);
  EXPECT_EQ(result.unmatched_event_count, 0);
  // 25,165,824 bytes at the start, 134,217,728 at the end, nothing given back.
  EXPECT_EQ(result.peak_reserved_bytes.measured.count(), 134217728);
  EXPECT_EQ(result.peak_reserved_bytes.predicted.count(), 134217728);
  EXPECT_TRUE(result.exact()) << to_text(result);
}

TEST(Replay, EveryAddressAndSegmentAcrossAnEmptiedCache) {
  const AllocatorReplay result = replay_file("transformer_forward.csv");
  EXPECT_EQ(result.allocation_count, 2057);
  EXPECT_EQ(result.same_address_count, 2057);
  EXPECT_EQ(result.segment_count, 471);
  EXPECT_EQ(result.same_segment_count, 471);
  EXPECT_EQ(result.segment_free_count, 287);
  EXPECT_EQ(result.same_segment_free_count, 287);
  EXPECT_EQ(result.unmatched_event_count, 0);
  EXPECT_EQ(result.peak_reserved_bytes.predicted, result.peak_reserved_bytes.measured);
  EXPECT_TRUE(result.exact()) << to_text(result);
}

TEST(Replay, JsonHasTheDocumentedKeys) {
  const nlohmann::json json = to_json(replay_file("small.csv"));
  EXPECT_EQ(json.at("allocation_count"), 1935);
  EXPECT_EQ(json.at("same_address_count"), 1935);
  EXPECT_EQ(json.at("segment_count"), 7);
  EXPECT_EQ(json.at("same_segment_count"), 7);
  EXPECT_EQ(json.at("peak_reserved_bytes").at("predicted"), 134217728);
  EXPECT_EQ(json.at("peak_reserved_bytes").at("measured"), 134217728);
}

TEST(Replay, WrongRulesAreNoticedInEveryFigure) {
  CachingAllocatorOptions other;
  other.large_segment = Bytes{32 << 20};
  std::ifstream file(TEST_DATA "/data/allocator/small.csv");
  const Result<AllocatorReplay> result = replay_allocator(file, "small.csv", other);
  ASSERT_TRUE(result);
  EXPECT_LT(result->same_address_count, result->allocation_count);
  EXPECT_LT(result->same_segment_count, result->segment_count);
  EXPECT_NE(result->peak_reserved_bytes.predicted, result->peak_reserved_bytes.measured);
  EXPECT_FALSE(result->mismatches.empty());
}

TEST(Replay, StreamsHavePoolsOfTheirOwn) {
  const Result<AllocatorReplay> result = replay(
      "segment,2097152,2097152,0,small,\n"
      "segment,8388608,2097152,7,small,\n"
      "block,2097152,512,,,\n"
      "alloc,8388608,100,7,,0\n"
      "alloc,2097664,100,0,,1\n"
      "segment_alloc,16777216,2097152,9,,2\n"
      "alloc,16777216,100,9,,3\n");
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_TRUE(result->exact()) << to_text(*result);
  EXPECT_EQ(result->same_address_count, 3);
}

TEST(Replay, AFreeThatWaitsKeepsItsBlock) {
  const Result<AllocatorReplay> result = replay(
      "segment,2097152,2097152,0,small,\n"
      "alloc,2097152,512,0,,0\n"
      "free_requested,2097152,512,0,,1\n"
      "alloc,2097664,512,0,,2\n"
      "free_completed,2097152,512,0,,3\n"
      "snapshot,0,0,,,4\n"
      "alloc,2097152,512,0,,5\n");
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_TRUE(result->exact()) << to_text(*result);
}

TEST(Replay, GoesOnAfterASegmentThatOnlyTheRecordingTook) {
  const Result<AllocatorReplay> result = replay(
      "segment,2097152,2097152,0,small,\n"
      "segment_alloc,16777216,2097152,0,,0\n"
      "alloc,16777216,512,0,,1\n"  // the model had room at 2097152
      "free_completed,16777216,512,0,,2\n"
      "segment_free,16777216,2097152,0,,3\n"
      "alloc,2097152,512,0,,4\n");
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->allocation_count, 2);
  EXPECT_EQ(result->same_address_count, 1);
  EXPECT_EQ(result->segment_count, 1);
  EXPECT_EQ(result->same_segment_count, 0);
  EXPECT_EQ(result->same_segment_free_count, 0);
  EXPECT_EQ(result->peak_reserved_bytes.predicted.count(), 2 << 20);
  EXPECT_EQ(result->peak_reserved_bytes.measured.count(), 4 << 20);
}

TEST(Replay, GoesOnAfterASegmentThatOnlyTheModelTook) {
  const Result<AllocatorReplay> result = replay(
      "alloc,2097152,512,0,,0\n"
      "alloc,2097664,512,0,,1\n");
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->allocation_count, 2);
  EXPECT_EQ(result->same_address_count, 0);
  EXPECT_EQ(result->segment_count, 1);
  EXPECT_EQ(result->same_segment_count, 0);
}

TEST(Replay, AWrongSegmentSizeIsAMismatchEvenAtTheRightAddress) {
  const Result<AllocatorReplay> result = replay(
      "segment_alloc,16777216,4194304,0,,0\n"
      "alloc,16777216,512,0,,1\n");
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->same_address_count, 1);
  EXPECT_EQ(result->segment_count, 1);
  EXPECT_EQ(result->same_segment_count, 0);
}

TEST(Replay, EventsAboutUnknownBlocksAreCountedAndPassedOver) {
  const Result<AllocatorReplay> result = replay(
      "segment,2097152,2097152,0,small,\n"
      "free_completed,2098176,512,0,,0\n"
      "free_requested,2098176,512,0,,0\n"
      "alloc,2097152,512,0,,1\n");
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->unmatched_event_count, 2);
  EXPECT_EQ(result->same_address_count, 1);
}

TEST(Replay, MalformedRowsAreNamedByLine) {
  EXPECT_EQ(malformed_line("alloc,1,2\n"), "test.csv:2");
  EXPECT_EQ(malformed_line("alloc,1,2,0,,0\nalloc,1,2,0,,0,9\n"), "test.csv:3");
  EXPECT_EQ(malformed_line("grow,1,2,0,,0\n"), "test.csv:2");
  EXPECT_EQ(malformed_line("alloc,-1,2,0,,0\n"), "test.csv:2");
  EXPECT_EQ(malformed_line("alloc,1x,2,0,,0\n"), "test.csv:2");
  EXPECT_EQ(malformed_line("alloc,1,,0,,0\n"), "test.csv:2");
  EXPECT_EQ(malformed_line("alloc,1,2,,,0\n"), "test.csv:2");
  EXPECT_EQ(malformed_line("alloc,1,99999999999999999999,0,,0\n"), "test.csv:2");
  EXPECT_EQ(malformed_line("alloc,1,2,0,,soon\n"), "test.csv:2");
  EXPECT_EQ(malformed_line("segment,2097152,2097152,0,medium,\n"), "test.csv:2");
  EXPECT_EQ(malformed_line(std::string(1000, '1')), "test.csv:2");
  EXPECT_EQ(malformed_line("segment_alloc,2097152,0,0,,0\n"), "test.csv:2");
}

TEST(Replay, AnImpossibleStartIsMalformed) {
  const std::string segment = "segment,2097152,2097152,0,small,\n";
  EXPECT_EQ(malformed_line(segment + "segment,3145728,2097152,0,small,\n"), "test.csv:3");
  EXPECT_EQ(malformed_line(segment + "block,4194304,512,,,\n"), "test.csv:3");
  EXPECT_EQ(malformed_line("block,4194304,512,,,\n"), "test.csv:2");
  EXPECT_EQ(malformed_line(segment + "block,4193792,1024,,,\n"), "test.csv:2");
  EXPECT_EQ(malformed_line(segment + "block,2097152,1024,,,\nblock,2097664,512,,,\n"), "test.csv:2");
  EXPECT_EQ(malformed_line(segment + "alloc,2097152,512,0,,0\nsegment,8388608,2097152,0,small,\n"), "test.csv:4");
}

TEST(Replay, AWrongHeaderAndAnEmptyFileAreMalformed) {
  for (const std::string text : {"", "what,address\n", "alloc,1,2,0,,0\n"}) {
    std::istringstream input(text);
    const Result<AllocatorReplay> result = replay_allocator(input, "test.csv");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::malformed);
    EXPECT_EQ(result.error().where, "test.csv:1");
  }
}

TEST(Replay, ExpandableSegmentsAreRefusedByName) {
  const Result<AllocatorReplay> result = replay("segment_map,2097152,2097152,0,,0\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::contradiction);
  EXPECT_THAT(result.error().what, testing::HasSubstr("expandable"));
}

}  // namespace
}  // namespace shard
