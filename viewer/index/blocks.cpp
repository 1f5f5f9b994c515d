// One pass with the open block of every buffer.
#include "viewer/index/blocks.h"

#include <algorithm>
#include <unordered_map>

namespace shard::view {

BlockList::BlockList(const MemoryTable& table, const MemorySeries& series) {
  const std::vector<std::uint32_t>& events = series.events();
  std::unordered_map<std::int32_t, std::uint32_t> open;  // by buffer
  open.reserve(events.size() / 2);
  of_event_.assign(events.size(), kNone);
  for (std::size_t n = 0; n < events.size(); ++n) {
    const std::uint32_t event = events[n];
    const std::int64_t delta = table.delta_bytes[event];
    const std::int32_t buffer = table.buffer[event].value;
    if (delta > 0) {
      of_event_[n] = open[buffer] = static_cast<std::uint32_t>(blocks_.size());
      blocks_.push_back({.acquired = event, .begin = n + 1, .end = events.size() + 1, .bytes = delta});
    } else if (delta < 0) {
      const auto found = open.find(buffer);
      if (found == open.end()) continue;
      of_event_[n] = found->second;
      blocks_[found->second].released = event;
      blocks_[found->second].end = n + 1;
      open.erase(found);
    }
  }
}

std::uint32_t BlockList::acquired_by(std::uint32_t event) const {
  const auto found = std::ranges::lower_bound(blocks_, event, {}, &Block::acquired);
  const bool there = found != blocks_.end() && found->acquired == event;
  return there ? static_cast<std::uint32_t>(found - blocks_.begin()) : kNone;
}

}  // namespace shard::view
