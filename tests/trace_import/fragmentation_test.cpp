// Is what lies idle of an allocator's segments counted to the byte, and are the blocks named that keep a segment?
#include "traces/fragmentation.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/trace_import/files.h"
#include "traces/holders.h"

namespace shard {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

/// Words for the events of a snapshot, whose every moment is a microsecond.
class Story {
 public:
  Story& segment(std::uint64_t address, std::int64_t bytes) {
    return event(SnapshotAction::segment_alloc, address, bytes);
  }
  Story& release(std::uint64_t address, std::int64_t bytes) {
    return event(SnapshotAction::segment_free, address, bytes);
  }
  Story& map(std::uint64_t address, std::int64_t bytes) { return event(SnapshotAction::segment_map, address, bytes); }
  Story& unmap(std::uint64_t address, std::int64_t bytes) {
    return event(SnapshotAction::segment_unmap, address, bytes);
  }
  Story& alloc(std::uint64_t address, std::int64_t bytes, StackId stack = {}) {
    return event(SnapshotAction::alloc, address, bytes, stack);
  }
  Story& free(std::uint64_t address, std::int64_t bytes) {
    return event(SnapshotAction::free_completed, address, bytes);
  }
  [[nodiscard]] Snapshot told() const {
    Snapshot result = snapshot_;
    for (const SnapshotEvent& each : result.events)
      result.block_bytes.push_back(each.action == SnapshotAction::alloc ? each.bytes : 0);
    return result;
  }

 private:
  Story& event(SnapshotAction action, std::uint64_t address, std::int64_t bytes, StackId stack = {}) {
    snapshot_.events.push_back({.action = action,
                                .address = address,
                                .bytes = bytes,
                                .time_us = static_cast<std::int64_t>(snapshot_.events.size()) + 1,
                                .stack = stack});
    return *this;
  }
  Snapshot snapshot_;
};

/// Of one file: site 0 is train.py:7 step.
Trace one_site() {
  Trace trace;
  trace.names = {"step", "/me/train.py"};
  trace.frames = {{NameId{0}, NameId{1}, 7}};
  trace.stacks = {{FrameId{0}, {}}};
  return trace;
}

TEST(Fragmentation, GapsFreeSegmentsAndTheLargestGapAddUpToWhatIsNotAllocated) {
  const Snapshot snapshot = Story()
                                .segment(100 * kMiB, 20 * kMiB)
                                .segment(200 * kMiB, 2 * kMiB)
                                .alloc(102 * kMiB, 3 * kMiB)
                                .alloc(110 * kMiB, 4 * kMiB)
                                .told();
  const std::optional<SegmentMap> map = segments_at(snapshot, 0);
  ASSERT_TRUE(map);
  const Fragmentation of = fragmentation_of(*map);
  EXPECT_EQ(of.reserved_bytes, 22 * kMiB);
  EXPECT_EQ(of.allocated_bytes, 7 * kMiB);
  EXPECT_EQ(of.free_segments, 1);
  EXPECT_EQ(of.free_segment_bytes, 2 * kMiB);
  EXPECT_EQ(of.gaps, 3) << "before, between and after the blocks";
  EXPECT_EQ(of.gap_bytes, 13 * kMiB);
  ASSERT_TRUE(of.largest_gap);
  EXPECT_EQ(*of.largest_gap, (Gap{0, 114 * kMiB, 6 * kMiB}));
}

TEST(Fragmentation, ThePeakIsTheFirstMomentOfMostAllocatedBytes) {
  const Snapshot snapshot = Story()
                                .segment(100 * kMiB, 20 * kMiB)
                                .alloc(100 * kMiB, 8 * kMiB)
                                .free(100 * kMiB, 8 * kMiB)
                                .alloc(104 * kMiB, 8 * kMiB)
                                .told();
  EXPECT_EQ(segments_at(snapshot, 0)->segments[0].blocks[0].address, 100u * kMiB);
  EXPECT_EQ(segments_at(snapshot, 0)->time_ns, 2000);
  EXPECT_EQ(segments_at(snapshot, 0, 3000)->allocated_bytes, 0) << "after the free";
  EXPECT_EQ(segments_at(snapshot, 0, 1000)->reserved_bytes, 20 * kMiB) << "an event at the time has happened";
}

TEST(Fragmentation, TimesOutsideOfTheRecordingAreItsBeginAndItsEnd) {
  const Snapshot snapshot = Story().segment(100 * kMiB, 20 * kMiB).alloc(100 * kMiB, 8 * kMiB).told();
  EXPECT_EQ(segments_at(snapshot, 0, INT64_MIN)->reserved_bytes, 0);
  EXPECT_TRUE(segments_at(snapshot, 0, INT64_MIN)->segments.empty());
  EXPECT_EQ(segments_at(snapshot, 0, INT64_MAX)->allocated_bytes, 8 * kMiB);
}

TEST(Fragmentation, WithoutSegmentsOrOfAnotherDeviceNothingIsSaid) {
  EXPECT_FALSE(segments_at(Snapshot{}, 0));
  EXPECT_FALSE(segments_at(Story().alloc(1, 512).told(), 0));
  EXPECT_FALSE(segments_at(Story().segment(100 * kMiB, 20 * kMiB).told(), 1));
}

TEST(Fragmentation, ABlockOutsideOfEverySegmentIsCountedApart) {
  const std::optional<SegmentMap> map =
      segments_at(Story().segment(100 * kMiB, 2 * kMiB).alloc(10 * kMiB, 512).alloc(300 * kMiB, 1024).told(), 0);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->elsewhere_bytes, 1536);
  EXPECT_EQ(map->allocated_bytes, 0);
}

TEST(Fragmentation, FewSmallBlocksThatKeepASegmentAreNamedWithTheirSite) {
  const Trace trace = one_site();
  const Snapshot snapshot = Story()
                                .segment(100 * kMiB, 20 * kMiB)
                                .segment(200 * kMiB, 40 * kMiB)
                                .segment(300 * kMiB, 20 * kMiB)
                                .alloc(105 * kMiB, kMiB, StackId{0})
                                .alloc(106 * kMiB, kMiB, StackId{0})
                                .alloc(200 * kMiB, 2 * kMiB)
                                .alloc(300 * kMiB, 6 * kMiB)  // more than a quarter
                                .told();
  const std::optional<SegmentMap> map = segments_at(snapshot, 0);
  ASSERT_TRUE(map);
  const Fragmentation of = fragmentation_of(*map);
  EXPECT_THAT(of.kept, ::testing::ElementsAre(1, 0)) << "what holds more free bytes first";
  EXPECT_EQ(of.kept_bytes, 60 * kMiB);
  EXPECT_EQ(of.keeping_bytes, 4 * kMiB);
  EXPECT_EQ(of.keeping_blocks, 3);
  const std::vector<std::string> words = in_words(trace, *map, of, 5);
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[1],
            "2 segments of 60.00 MiB are kept by blocks of 4.00 MiB alone: 40.00 MiB by 2.00 MiB without a stack; "
            "20.00 MiB by 2.00 MiB in 2 blocks of train.py:7 step.");
  EXPECT_THAT(in_words(trace, *map, of, 1)[1], ::testing::EndsWith("without a stack; and 1 more."));
  const nlohmann::ordered_json json = to_json(trace, *map, of, 1);
  EXPECT_EQ(json.at("kept").size(), 1u);
  EXPECT_EQ(json.at("unused_bytes"), 70 * kMiB);
  EXPECT_EQ(to_json(trace, *map, of, 2).at("kept")[1].at("blocks")[0].at("line"), 7);
}

TEST(Fragmentation, PiecesOfAnExpandableSegmentAreOneAndKeptByNobody) {
  Story story;
  story.map(100 * kMiB, 2 * kMiB).map(104 * kMiB, 2 * kMiB).map(102 * kMiB, 2 * kMiB).alloc(100 * kMiB, 512);
  const std::optional<SegmentMap> whole = segments_at(story.told(), 0);
  ASSERT_TRUE(whole);
  ASSERT_EQ(whole->segments.size(), 1u);
  EXPECT_EQ(whole->segments[0].bytes, 6 * kMiB);
  EXPECT_TRUE(fragmentation_of(*whole).kept.empty()) << "its free pages go back by themselves";
  const std::optional<SegmentMap> cut = segments_at(story.unmap(102 * kMiB, 2 * kMiB).told(), 0, INT64_MAX);
  ASSERT_EQ(cut->segments.size(), 2u);
  EXPECT_EQ(cut->reserved_bytes, 4 * kMiB);
}

TEST(Fragmentation, AReleasedSegmentIsReservedNoMore) {
  const Snapshot snapshot = Story().segment(100 * kMiB, 20 * kMiB).release(100 * kMiB, 20 * kMiB).told();
  EXPECT_EQ(segments_at(snapshot, 0, INT64_MAX)->reserved_bytes, 0);
}

/// After all events it is what the snapshot says of its end, and at the peak what holders add up to.
class Recorded : public ::testing::TestWithParam<const char*> {};

TEST_P(Recorded, TheEndIsTheSnapshotsOwnAndThePeakTheHolders) {
  const std::filesystem::path path =
      GetParam()[0] == '/' ? std::filesystem::path(TEST_DATA + std::string(GetParam())) : files::recording(GetParam());
  SKIP_WITHOUT(path);
  const Result<LoadedTrace> loaded = load_any(path);
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  const Snapshot& snapshot = *loaded->snapshot;
  const std::optional<SegmentMap> end = segments_at(snapshot, 0, INT64_MAX);
  ASSERT_TRUE(end);
  ASSERT_EQ(end->segments.size(), snapshot.segments.size());
  EXPECT_EQ(end->reserved_bytes, snapshot.reserved_bytes());
  std::vector<std::pair<std::uint64_t, std::int64_t>> expected, found;
  for (const SnapshotSegment& segment : snapshot.segments) {
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.active) expected.emplace_back(block.address, block.bytes);
    }
  }
  for (const PlacedSegment& segment : end->segments) {
    for (const PlacedBlock& block : segment.blocks) found.emplace_back(block.address, block.bytes);
  }
  std::ranges::sort(expected);
  EXPECT_EQ(found, expected);
  const Result<Held> held = held_at(loaded->trace, {.rank = Rank{0}});
  ASSERT_TRUE(held);
  EXPECT_EQ(segments_at(snapshot, 0)->allocated_bytes, held->allocated_bytes);
  EXPECT_EQ(segments_at(snapshot, 0)->time_ns, held->time_ns);
}

INSTANTIATE_TEST_SUITE_P(Snapshots, Recorded,
                         ::testing::Values("/fuzz/corpus/snapshot_fuzz/protocol4.pickle",
                                           "pytorch-snapshot-small.pickle"));

}  // namespace
}  // namespace shard
