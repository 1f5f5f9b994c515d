// What the blocks of a snapshot take, which its events do not say: they say what was asked for.
//
// The allocator (c10/cuda/CUDACachingAllocator.cpp) gives out the beginning of a free block and splits off the rest,
// but of the large pool no rest of 1 MiB or less. So no free block of that pool is that small, and what is free behind
// a block and no larger belongs to it. The neighbours at the moment of an allocation thus tell its block's size.
#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "traces/snapshot.h"

namespace shard {
namespace {

constexpr std::int64_t kUnit = 512;
constexpr std::int64_t kLargestSmall = 1 << 20;  // blocks up to this are of the small pool
constexpr std::int64_t kLargestTail = 1 << 20;   // of a large block, what is not split off
constexpr std::int64_t kSmallSegment = 2 << 20;  // what the small pool takes, and nothing else does

using DeviceAddress = std::pair<std::int32_t, std::uint64_t>;  // device, address

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct LiveBlock {
  std::int64_t bytes = 0;
  std::int64_t requested_bytes = 0;
  StackId stack{};
  bool certain = false;       ///< `bytes` is what the block takes
  std::size_t event = kNone;  ///< that allocated it
};

class Sizes {
 public:
  explicit Sizes(const Snapshot& snapshot) : snapshot_(snapshot) {}

  void run(Snapshot& out) {
    undo();
    const std::map<DeviceAddress, LiveBlock> at_start = live_;
    const std::map<DeviceAddress, SnapshotSegment> segments_at_start = segments_;
    of_event_.assign(snapshot_.events.size(), 0);
    settle_start();
    for (std::size_t i = 0; i < snapshot_.events.size(); ++i) apply(i);
    settle_end();
    Snapshot::Start start;
    for (const auto& [key, segment] : segments_at_start) {
      start.reserved_bytes += segment.bytes;
      start.segments.push_back(segment);
    }
    for (const auto& [key, block] : at_start) {
      const auto known = start_bytes_.find(key);
      const std::int64_t bytes = known != start_bytes_.end() ? known->second : block.bytes;
      start.allocated_bytes += bytes;
      start.blocks.push_back({key.first, key.second, bytes, block.requested_bytes, block.stack});
    }
    out.block_bytes = std::move(of_event_);
    out.at_start = std::move(start);
  }

 private:
  [[nodiscard]] std::int64_t rounded(std::int64_t bytes) const {
    const auto power = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes))) - 1;
    const std::int64_t divisions =
        snapshot_.roundup_power2_divisions[static_cast<std::size_t>(std::clamp(power - 20, 0, 15))];
    const std::int64_t units = (bytes + kUnit - 1) / kUnit * kUnit;
    if (divisions <= 1 || bytes <= kUnit * divisions) return units;
    const auto floor = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
    const std::int64_t step = std::max<std::int64_t>(1, floor / divisions);
    return (bytes + step - 1) / step * step;
  }

  /// The end with every event undone: what is live and which segments there are at the start.
  void undo() {
    for (const SnapshotSegment& segment : snapshot_.segments) {
      SnapshotSegment& copy = segments_[{segment.device, segment.address}];
      copy = {.device = segment.device,
              .address = segment.address,
              .bytes = segment.bytes,
              .stream = segment.stream,
              .large = segment.large,
              .expandable = segment.expandable};
      for (const SnapshotBlock& block : segment.blocks) {
        if (block.active)
          live_[{segment.device, block.address}] = {
              .bytes = block.bytes, .requested_bytes = block.requested_bytes, .stack = block.stack, .certain = true};
      }
    }
    for (auto event = snapshot_.events.rbegin(); event != snapshot_.events.rend(); ++event) {
      const DeviceAddress key{event->device, event->address};
      switch (event->action) {
        case SnapshotAction::alloc: live_.erase(key); break;
        case SnapshotAction::free_completed:
          live_[key] = {.bytes = rounded(event->bytes), .requested_bytes = event->bytes};
          break;
        case SnapshotAction::segment_alloc: segments_.erase(key); break;
        case SnapshotAction::segment_map: cut(key, event->bytes); break;
        case SnapshotAction::segment_free:
        case SnapshotAction::segment_unmap:
          segments_[key] = {.device = event->device,
                            .address = event->address,
                            .bytes = event->bytes,
                            .stream = event->stream,
                            .large = event->bytes > kSmallSegment,
                            .expandable = event->action == SnapshotAction::segment_unmap};
          break;
        case SnapshotAction::free_requested:
        case SnapshotAction::oom:
        case SnapshotAction::snapshot:
        case SnapshotAction::user_defined: break;
      }
    }
  }

  /// Takes a piece out of expandable segments: it may reach over several that were mapped one by one.
  void cut(const DeviceAddress& at, std::int64_t bytes) {
    const std::uint64_t cut_end = at.second + static_cast<std::uint64_t>(bytes);
    const auto end_of = [](const SnapshotSegment& s) { return s.address + static_cast<std::uint64_t>(s.bytes); };
    auto segment = segments_.upper_bound(at);
    if (segment != segments_.begin()) --segment;
    while (segment != segments_.end() && segment->first < DeviceAddress{at.first, cut_end}) {
      const SnapshotSegment whole = segment->second;
      if (whole.device != at.first || end_of(whole) <= at.second) {
        ++segment;
        continue;
      }
      segment = segments_.erase(segment);
      const auto keep = [&](std::uint64_t begin, std::uint64_t end) {
        if (begin >= end) return;
        SnapshotSegment& kept = segments_[{at.first, begin}];
        kept = whole;
        kept.address = begin;
        kept.bytes = static_cast<std::int64_t>(end - begin);
      };
      keep(whole.address, at.second);
      keep(cut_end, end_of(whole));
    }
  }

  /// The bytes from `at` on up to the next block in use or the segment's end; -1 outside of segments, and where the
  /// rule above does not hold: what is expandable is split to the last unit.
  [[nodiscard]] std::int64_t room(const DeviceAddress& at) const {
    auto segment = segments_.upper_bound(at);
    if (segment == segments_.begin()) return -1;
    --segment;
    const std::uint64_t end = segment->first.second + static_cast<std::uint64_t>(segment->second.bytes);
    if (segment->first.first != at.first || end <= at.second || segment->second.expandable) return -1;
    const auto next = live_.upper_bound(at);
    const bool neighbour = next != live_.end() && next->first.first == at.first && next->first.second < end;
    return static_cast<std::int64_t>((neighbour ? next->first.second : end) - at.second);
  }

  [[nodiscard]] bool is_tail(std::int64_t block_bytes, std::int64_t behind) const {
    if (block_bytes <= kLargestSmall || behind < 0) return false;
    const bool never_split = snapshot_.max_split_bytes > 0 && block_bytes >= snapshot_.max_split_bytes;
    return behind <= kLargestTail || never_split;
  }

  /// Blocks that were there before the first event: what is behind them tells now, or when it is taken.
  void settle_start() {
    for (auto& [key, block] : live_) {
      if (block.certain) continue;
      const std::int64_t behind = room(key) - block.bytes;
      if (block.bytes <= kLargestSmall) {
        block.certain = true;
      } else if (is_tail(block.bytes, behind)) {
        settle(key, block, block.bytes + behind);
      }
    }
  }

  void settle(const DeviceAddress& key, LiveBlock& block, std::int64_t bytes) {
    block.bytes = bytes;
    block.certain = true;
    if (block.event == kNone) start_bytes_[key] = bytes;
  }

  void apply(std::size_t i) {
    const SnapshotEvent& event = snapshot_.events[i];
    const DeviceAddress key{event.device, event.address};
    switch (event.action) {
      case SnapshotAction::alloc: return alloc(i, key, event);
      case SnapshotAction::free_completed: live_.erase(key); return;
      case SnapshotAction::segment_alloc:
      case SnapshotAction::segment_map:
        segments_[key] = {.device = event.device,
                          .address = event.address,
                          .bytes = event.bytes,
                          .expandable = event.action == SnapshotAction::segment_map};
        return;
      case SnapshotAction::segment_free: segments_.erase(key); return;
      case SnapshotAction::segment_unmap: cut(key, event.bytes); return;
      case SnapshotAction::free_requested:
      case SnapshotAction::oom:
      case SnapshotAction::snapshot:
      case SnapshotAction::user_defined: return;
    }
  }

  void alloc(std::size_t i, const DeviceAddress& key, const SnapshotEvent& event) {
    // It begins where a free block began, which is where the block before it ends.
    if (auto before = live_.lower_bound(key); before != live_.begin()) {
      --before;
      const std::int64_t bytes = static_cast<std::int64_t>(key.second - before->first.second);
      if (before->first.first == key.first && !before->second.certain && bytes >= before->second.bytes &&
          is_tail(before->second.bytes, bytes - before->second.bytes))
        settle(before->first, before->second, bytes);
    }
    LiveBlock block{.bytes = rounded(event.bytes), .requested_bytes = event.bytes, .certain = true, .event = i};
    const std::int64_t behind = room(key) - block.bytes;
    if (is_tail(block.bytes, behind)) block.bytes += behind;
    of_event_[i] = block.bytes;
    live_[key] = block;
  }

  /// Where the snapshot says what a block takes, that counts.
  void settle_end() {
    for (const SnapshotSegment& segment : snapshot_.segments)
      for (const SnapshotBlock& block : segment.blocks) {
        const auto at = block.active ? live_.find({segment.device, block.address}) : live_.end();
        if (at != live_.end() && at->second.event != kNone) of_event_[at->second.event] = block.bytes;
      }
  }

  const Snapshot& snapshot_;
  std::map<DeviceAddress, LiveBlock> live_;
  std::map<DeviceAddress, SnapshotSegment> segments_;
  std::map<DeviceAddress, std::int64_t> start_bytes_;  // of blocks that undoing did not know exactly
  std::vector<std::int64_t> of_event_;
};

}  // namespace

void Snapshot::find_block_sizes() {
  Sizes(*this).run(*this);
}

}  // namespace shard
