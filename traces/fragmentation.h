// What the caching allocator's segments cost at a moment: where blocks and gaps are, how much of what is reserved
// nobody uses, and which few blocks keep a segment from going back to the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "traces/reader.h"
#include "traces/snapshot.h"

namespace shard {

/// A block in use.
struct PlacedBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;            ///< what it takes
  std::int64_t requested_bytes = 0;  ///< 0 where not known
  StackId stack{};                   ///< that asked for it; invalid where not known
  std::int64_t number = 0;  ///< from 0: counts the blocks of its device, those at the start first; as the memory events

  friend bool operator==(const PlacedBlock&, const PlacedBlock&) = default;
};

/// A segment with what is in use of it. Between blocks, before and after them is nothing but gaps.
struct PlacedSegment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t allocated_bytes = 0;  ///< its blocks' sum
  std::uint64_t stream = 0;
  bool expandable = false;            ///< its free pages go back by themselves
  std::vector<PlacedBlock> blocks{};  ///< by address

  friend bool operator==(const PlacedSegment&, const PlacedSegment&) = default;
};

/// A stretch of a segment that nobody uses, as long as it can be.
struct Gap {
  std::size_t segment = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;

  friend bool operator==(const Gap&, const Gap&) = default;
};

/// All segments of a device at a moment.
struct SegmentMap {
  std::int32_t device = 0;
  std::int64_t time_ns = 0;  ///< on the trace's clock
  std::int64_t reserved_bytes = 0, allocated_bytes = 0;
  std::vector<PlacedSegment> segments{};  ///< by address
  /// In use outside of every segment: the snapshot says less than all. Not part of `allocated_bytes`.
  std::int64_t elsewhere_bytes = 0;
};

/// After the events that have happened by `time_ns`; without: at the device's peak of allocated bytes, of equal ones
/// the first. Nothing where there is no segment.
[[nodiscard]] std::optional<SegmentMap> segments_at(const Snapshot& snapshot, std::int32_t device,
                                                    std::optional<std::int64_t> time_ns = {});

/// The gaps of a segment, by address; `segment` is its place in the map.
[[nodiscard]] std::vector<Gap> gaps_of(const SegmentMap& map, std::size_t segment);

/// What lies idle, in two parts: segments wholly free, which the allocator gives back when it runs short
/// (torch.cuda.empty_cache() at once), and gaps between blocks, which it cannot.
struct Fragmentation {
  std::int64_t reserved_bytes = 0, allocated_bytes = 0, elsewhere_bytes = 0;
  std::int64_t segments = 0;
  std::int64_t free_segments = 0, free_segment_bytes = 0;
  std::int64_t gaps = 0, gap_bytes = 0;  ///< of segments in use; the two parts add up to what is not allocated
  std::optional<Gap> largest_gap{};      ///< of these
  /// Segments (places in the map) that blocks of at most a quarter of them keep, no more than eight; not expandable
  /// ones. Those that hold the most free bytes first.
  std::vector<std::size_t> kept{};
  std::int64_t kept_bytes = 0;      ///< of these segments
  std::int64_t keeping_bytes = 0;   ///< of the blocks in them ...
  std::int64_t keeping_blocks = 0;  ///< ... and how many these are
};

[[nodiscard]] Fragmentation fragmentation_of(const SegmentMap& map);

/// {"reserved_bytes", "allocated_bytes", "unused_bytes", "segments", "free_segments", "free_segment_bytes", "gaps",
/// "gap_bytes", "largest_gap_bytes", "kept_segments", "kept_bytes", "keeping_blocks", "keeping_bytes",
/// "kept": [{"bytes", "free_bytes", "blocks": [{"bytes", "requested_bytes", "file", "line", "function"}]}]}: the `top`
/// segments kept. The frame of a block is its site (sites.h).
[[nodiscard]] nlohmann::ordered_json to_json(const Trace& trace, const SegmentMap& map,
                                             const Fragmentation& fragmentation, std::size_t top);

/// The same in words, a sentence an element; of the segments kept the `top` first.
[[nodiscard]] std::vector<std::string> in_words(const Trace& trace, const SegmentMap& map,
                                                const Fragmentation& fragmentation, std::size_t top);

}  // namespace shard
