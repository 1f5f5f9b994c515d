// Segments and blocks from the snapshot's start on, event by event; then sums over what is left.
#include "traces/fragmentation.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "traces/base/numbers.h"
#include "traces/base/wrapping.h"
#include "traces/sites.h"

namespace shard {
namespace {

/// Blocks that take no more than this part of a segment, and are no more than so many, keep it for little.
constexpr std::int64_t kLittle = 4;
constexpr std::size_t kFewBlocks = 8;

/// Follows one device.
class Replay {
 public:
  Replay(const Snapshot& snapshot, std::int32_t device) : snapshot_(snapshot) {
    timed_ = std::ranges::any_of(snapshot.events, [](const SnapshotEvent& event) { return event.time_us != 0; });
    for (std::size_t i = 0; i < snapshot.events.size(); ++i) {
      if (snapshot.events[i].device == device) events_.push_back(i);
    }
    for (const SnapshotSegment& segment : snapshot.at_start.segments) {
      if (segment.device != device) continue;
      segments_[segment.address] = {.address = segment.address,
                                    .bytes = segment.bytes,
                                    .stream = segment.stream,
                                    .expandable = segment.expandable};
    }
    for (const Snapshot::Start::Live& block : snapshot.at_start.blocks) {
      if (block.device == device) add({block.address, block.bytes, block.requested_bytes, block.stack});
    }
    map_.device = device;
    map_.time_ns = events_.empty() ? 0 : time_of(events_.front());
  }

  [[nodiscard]] std::size_t size() const { return events_.size(); }
  void apply(std::size_t n) {
    const std::size_t i = events_[n];
    const SnapshotEvent& event = snapshot_.events[i];
    map_.time_ns = time_of(i);
    switch (event.action) {
      case SnapshotAction::alloc: return add({event.address, snapshot_.block_bytes[i], event.bytes, event.stack});
      case SnapshotAction::free_completed: return remove(event.address);
      case SnapshotAction::segment_alloc:
        segments_[event.address] = {.address = event.address, .bytes = event.bytes, .stream = event.stream};
        return;
      case SnapshotAction::segment_map: return map(event);
      case SnapshotAction::segment_free: segments_.erase(event.address); return;
      case SnapshotAction::segment_unmap: return cut(event.address, event.bytes);
      case SnapshotAction::free_requested:
      case SnapshotAction::oom:
      case SnapshotAction::snapshot:
      case SnapshotAction::user_defined: return;
    }
  }
  [[nodiscard]] std::int64_t allocated() const { return allocated_; }
  [[nodiscard]] std::int64_t event_time(std::size_t n) const { return time_of(events_[n]); }

  /// How many events lead to the peak.
  [[nodiscard]] static std::size_t peak_of(Replay replay) {
    std::size_t peak = 0;
    std::int64_t most = replay.allocated();
    for (std::size_t n = 0; n < replay.size(); ++n) {
      replay.apply(n);
      if (replay.allocated() > most) {
        most = replay.allocated();
        peak = n + 1;
      }
    }
    return peak;
  }

  /// Whether anything was ever reserved.
  [[nodiscard]] bool has_segments() const {
    return !segments_.empty() || std::ranges::any_of(events_, [&](std::size_t i) {
      const SnapshotAction action = snapshot_.events[i].action;
      return action == SnapshotAction::segment_alloc || action == SnapshotAction::segment_map;
    });
  }

  [[nodiscard]] SegmentMap result() && {
    for (const auto& [address, segment] : segments_) {
      map_.segments.push_back(segment);
      map_.reserved_bytes = wrapping_sum(map_.reserved_bytes, segment.bytes);
    }
    std::vector<PlacedBlock> blocks;
    blocks.reserve(blocks_.size());
    for (const auto& [address, block] : blocks_) blocks.push_back(block);
    std::ranges::sort(blocks, {}, &PlacedBlock::address);
    std::size_t at = 0;
    for (const PlacedBlock& block : blocks) {
      while (at < map_.segments.size() &&
             block.address >= map_.segments[at].address + static_cast<std::uint64_t>(map_.segments[at].bytes))
        ++at;
      if (at == map_.segments.size() || block.address < map_.segments[at].address) {
        map_.elsewhere_bytes = wrapping_sum(map_.elsewhere_bytes, block.bytes);
        continue;
      }
      PlacedSegment& segment = map_.segments[at];
      segment.blocks.push_back(block);
      segment.allocated_bytes = wrapping_sum(segment.allocated_bytes, block.bytes);
      map_.allocated_bytes = wrapping_sum(map_.allocated_bytes, block.bytes);
    }
    return std::move(map_);
  }

 private:
  /// As the import gives events their times.
  [[nodiscard]] std::int64_t time_of(std::size_t event) const {
    return timed_ ? wrapping_product(snapshot_.events[event].time_us, 1000) : static_cast<std::int64_t>(event) * 1000;
  }
  void add(PlacedBlock block) {
    if (block.bytes > 0) block.number = number_++;
    remove(block.address);
    allocated_ = wrapping_sum(allocated_, block.bytes);
    blocks_[block.address] = block;
  }
  void remove(std::uint64_t address) {
    const auto at = blocks_.find(address);
    if (at == blocks_.end()) return;
    allocated_ = wrapping_sum(allocated_, wrapping_product(-1, at->second.bytes));
    blocks_.erase(at);
  }
  /// Pieces of an expandable segment that touch are one.
  void map(const SnapshotEvent& event) {
    PlacedSegment piece{.address = event.address, .bytes = event.bytes, .stream = event.stream, .expandable = true};
    auto next = segments_.upper_bound(event.address);
    if (next != segments_.begin()) {
      const auto before = std::prev(next);
      const PlacedSegment& segment = before->second;
      if (segment.expandable && segment.address + static_cast<std::uint64_t>(segment.bytes) == piece.address) {
        piece.address = segment.address;
        piece.bytes = wrapping_sum(piece.bytes, segment.bytes);
        segments_.erase(before);
      }
    }
    if (next != segments_.end() && next->second.expandable &&
        piece.address + static_cast<std::uint64_t>(piece.bytes) == next->first) {
      piece.bytes = wrapping_sum(piece.bytes, next->second.bytes);
      segments_.erase(next);
    }
    segments_[piece.address] = std::move(piece);
  }
  void cut(std::uint64_t address, std::int64_t bytes) {
    auto at = segments_.upper_bound(address);
    if (at == segments_.begin()) return;
    --at;
    const PlacedSegment whole = at->second;
    const std::uint64_t end = whole.address + static_cast<std::uint64_t>(whole.bytes);
    const std::uint64_t cut_end = address + static_cast<std::uint64_t>(bytes);
    if (cut_end > end) return;
    segments_.erase(at);
    const auto keep = [&](std::uint64_t from, std::uint64_t to) {
      if (from >= to) return;
      PlacedSegment part = whole;
      part.address = from;
      part.bytes = static_cast<std::int64_t>(to - from);
      segments_[from] = std::move(part);
    };
    keep(whole.address, address);
    keep(cut_end, end);
  }

  const Snapshot& snapshot_;
  bool timed_ = false;
  std::vector<std::size_t> events_;
  std::map<std::uint64_t, PlacedSegment> segments_;
  std::unordered_map<std::uint64_t, PlacedBlock> blocks_;
  std::int64_t allocated_ = 0, number_ = 0;
  SegmentMap map_;
};

[[nodiscard]] std::string counted(std::int64_t count, const char* one, const char* several) {
  return with_commas(count) + " " + (count == 1 ? one : several);
}

[[nodiscard]] std::int64_t free_bytes(const PlacedSegment& segment) {
  return wrapping_sum(segment.bytes, wrapping_product(-1, segment.allocated_bytes));
}

[[nodiscard]] FrameId site_of(const std::vector<FrameId>& site, StackId stack) {
  return stack.valid() ? site[static_cast<std::size_t>(stack.value)] : FrameId{};
}

/// The blocks of a segment, those of one site together: "512 KiB of train.py:7 step".
[[nodiscard]] std::string keepers(const Trace& trace, const std::vector<FrameId>& site, const PlacedSegment& segment) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> sums;  // bytes, blocks
  for (const PlacedBlock& block : segment.blocks) {
    auto& [bytes, blocks] = sums[site_text(trace, site_of(site, block.stack))];
    bytes = wrapping_sum(bytes, block.bytes);
    ++blocks;
  }
  std::string text;
  for (const auto& [name, sum] : sums) {
    text += (text.empty() ? "" : ", ") + show_bytes(Bytes{sum.first});
    if (sum.second > 1) text += " in " + std::to_string(sum.second) + " blocks";
    text += name.empty() ? " without a stack" : " of " + name;
  }
  return text;
}

}  // namespace

std::optional<SegmentMap> segments_at(const Snapshot& snapshot, std::int32_t device,
                                      std::optional<std::int64_t> time_ns) {
  Replay replay(snapshot, device);
  if (!replay.has_segments()) return std::nullopt;
  if (time_ns) {
    for (std::size_t n = 0; n < replay.size(); ++n) {
      if (replay.event_time(n) <= *time_ns) replay.apply(n);
    }
  } else {
    const std::size_t peak = Replay::peak_of(replay);
    for (std::size_t n = 0; n < peak; ++n) replay.apply(n);
  }
  SegmentMap map = std::move(replay).result();
  if (time_ns) map.time_ns = *time_ns;
  return map;
}

std::vector<Gap> gaps_of(const SegmentMap& map, std::size_t index) {
  const PlacedSegment& segment = map.segments[index];
  std::vector<Gap> gaps;
  std::uint64_t at = segment.address;
  const auto gap_until = [&](std::uint64_t end) {
    if (end > at) gaps.push_back({index, at, static_cast<std::int64_t>(end - at)});
  };
  for (const PlacedBlock& block : segment.blocks) {
    gap_until(block.address);
    at = std::max(at, block.address + static_cast<std::uint64_t>(block.bytes));
  }
  gap_until(segment.address + static_cast<std::uint64_t>(segment.bytes));
  return gaps;
}

Fragmentation fragmentation_of(const SegmentMap& map) {
  Fragmentation result{.reserved_bytes = map.reserved_bytes,
                       .allocated_bytes = map.allocated_bytes,
                       .elsewhere_bytes = map.elsewhere_bytes,
                       .segments = static_cast<std::int64_t>(map.segments.size())};
  for (std::size_t i = 0; i < map.segments.size(); ++i) {
    const PlacedSegment& segment = map.segments[i];
    if (segment.blocks.empty()) {
      ++result.free_segments;
      result.free_segment_bytes = wrapping_sum(result.free_segment_bytes, segment.bytes);
      continue;
    }
    for (const Gap& gap : gaps_of(map, i)) {
      ++result.gaps;
      result.gap_bytes = wrapping_sum(result.gap_bytes, gap.bytes);
      if (!result.largest_gap || gap.bytes > result.largest_gap->bytes) result.largest_gap = gap;
    }
    const bool few = segment.blocks.size() <= kFewBlocks && segment.allocated_bytes <= segment.bytes / kLittle;
    if (!few || segment.expandable) continue;
    result.kept.push_back(i);
    result.kept_bytes = wrapping_sum(result.kept_bytes, segment.bytes);
    result.keeping_bytes = wrapping_sum(result.keeping_bytes, segment.allocated_bytes);
    result.keeping_blocks += static_cast<std::int64_t>(segment.blocks.size());
  }
  std::ranges::stable_sort(result.kept, std::ranges::greater{},
                           [&](std::size_t i) { return free_bytes(map.segments[i]); });
  return result;
}

nlohmann::ordered_json to_json(const Trace& trace, const SegmentMap& map, const Fragmentation& of, std::size_t top) {
  using Json = nlohmann::ordered_json;
  Json json{{"reserved_bytes", of.reserved_bytes},
            {"allocated_bytes", of.allocated_bytes},
            {"unused_bytes", wrapping_sum(of.free_segment_bytes, of.gap_bytes)},
            {"segments", of.segments},
            {"free_segments", of.free_segments},
            {"free_segment_bytes", of.free_segment_bytes},
            {"gaps", of.gaps},
            {"gap_bytes", of.gap_bytes},
            {"largest_gap_bytes", of.largest_gap ? of.largest_gap->bytes : 0},
            {"kept_segments", of.kept.size()},
            {"kept_bytes", of.kept_bytes},
            {"keeping_blocks", of.keeping_blocks},
            {"keeping_bytes", of.keeping_bytes},
            {"kept", Json::array()}};
  const std::vector<FrameId> site = sites(trace);
  for (std::size_t k = 0; k < std::min(top, of.kept.size()); ++k) {
    const PlacedSegment& segment = map.segments[of.kept[k]];
    Json each{{"bytes", segment.bytes}, {"free_bytes", free_bytes(segment)}, {"blocks", Json::array()}};
    for (const PlacedBlock& block : segment.blocks) {
      const FrameId id = site_of(site, block.stack);
      const StackFrame frame = id.valid() ? trace.frame_of(id) : StackFrame{};
      each["blocks"].push_back({{"bytes", block.bytes},
                                {"requested_bytes", block.requested_bytes > 0 ? block.requested_bytes : block.bytes},
                                {"file", trace.name_of(frame.file)},
                                {"line", frame.written_line()},
                                {"function", trace.name_of(frame.function)}});
    }
    json["kept"].push_back(std::move(each));
  }
  return json;
}

std::vector<std::string> in_words(const Trace& trace, const SegmentMap& map, const Fragmentation& of, std::size_t top) {
  const auto bytes = [](std::int64_t count) { return show_bytes(Bytes{count}); };
  std::string first = bytes(of.reserved_bytes) + " reserved in " + counted(of.segments, "segment", "segments");
  const std::int64_t unused = wrapping_sum(of.free_segment_bytes, of.gap_bytes);
  if (unused == 0) return {first + ", all of it allocated."};
  first += ", " + bytes(unused) + " more than is allocated: " + bytes(of.free_segment_bytes) + " in " +
           counted(of.free_segments, "segment", "segments") + " wholly free (empty_cache() gives them back), " +
           bytes(of.gap_bytes) + " in " + counted(of.gaps, "gap", "gaps") + " between blocks";
  if (of.largest_gap && of.gaps > 1) first += ", the largest " + bytes(of.largest_gap->bytes);
  std::vector<std::string> lines{first + "."};
  if (of.kept.empty()) return lines;
  const auto count = static_cast<std::int64_t>(of.kept.size());
  const std::vector<FrameId> site = sites(trace);
  if (count == 1) {
    const PlacedSegment& segment = map.segments[of.kept.front()];
    lines.push_back("A segment of " + bytes(segment.bytes) + " is kept by little: " + keepers(trace, site, segment) +
                    ".");
    return lines;
  }
  std::string second = counted(count, "segment", "segments") + " of " + bytes(of.kept_bytes) +
                       " are kept by blocks of " + bytes(of.keeping_bytes) + " alone: ";
  const std::size_t shown = std::min(top, of.kept.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const PlacedSegment& segment = map.segments[of.kept[k]];
    second += (k == 0 ? "" : "; ") + bytes(segment.bytes) + " by " + keepers(trace, site, segment);
  }
  if (shown < of.kept.size()) second += "; and " + with_commas(count - static_cast<std::int64_t>(shown)) + " more";
  lines.push_back(second + ".");
  return lines;
}

}  // namespace shard
