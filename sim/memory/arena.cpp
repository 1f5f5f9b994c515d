// Keeps the arena's books and refuses entries that contradict them.
#include "sim/memory/arena.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shard {

Error ArenaLedger::broken(std::string what) const {
  return Error{Errc::internal, std::move(what), std::string(to_string(memory_)) + " arena",
               "report this as a fault of the program"};
}

std::string ArenaLedger::describe(BufferId buffer, std::int64_t begin, std::int64_t end) {
  return "buffer " + std::to_string(buffer.value) + " [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

Result<void> ArenaLedger::acquire(BufferId buffer, Bytes offset, Bytes bytes, Category category) {
  const std::int64_t begin = offset.count();
  const std::int64_t end = begin + bytes.count();
  if (begin < 0 || bytes < Bytes{0} || begin % alignment_ != 0) {
    return broken(describe(buffer, begin, end) + " is not a range aligned to " + std::to_string(alignment_));
  }
  if (is_live(buffer)) return broken(describe(buffer, begin, end) + " is acquired while it is live");
  Entry entry{.bytes = bytes, .category = category, .live = true, .range = {}};
  if (end > begin) {
    const auto above = ranges_.lower_bound(begin);
    const auto refuse = [&](std::int64_t other_begin, const Range& other) {
      return broken(describe(buffer, begin, end) + " overlaps live " + describe(other.buffer, other_begin, other.end));
    };
    if (above != ranges_.end() && above->first < end) return refuse(above->first, above->second);
    if (above != ranges_.begin()) {
      const auto below = std::prev(above);
      if (below->second.end > begin) return refuse(below->first, below->second);
    }
    entry.range = insert(above, begin, {end, buffer});
  }
  const auto b = static_cast<std::size_t>(buffer.value);
  if (b >= buffers_.size()) buffers_.resize(std::max(b + 1, 2 * buffers_.size()));
  buffers_[b] = entry;
  ++live_count_;
  live_ += bytes;
  live_by_category_[static_cast<std::size_t>(category)] += bytes;
  if (live_ > live_peak_) {
    live_peak_ = live_;
    by_category_at_peak_ = live_by_category_;
  }
  if (end > begin) extent_ = std::max(extent_, round_up(Bytes{end}, alignment_));
  return {};
}

ArenaLedger::Ranges::iterator ArenaLedger::insert(Ranges::iterator above, std::int64_t begin, Range range) {
  if (unused_.empty()) return ranges_.emplace_hint(above, begin, range);
  Ranges::node_type node = std::move(unused_.back());
  unused_.pop_back();
  node.key() = begin;
  node.mapped() = range;
  return ranges_.insert(above, std::move(node));
}

Result<void> ArenaLedger::release(BufferId buffer) {
  if (!is_live(buffer)) return broken("buffer " + std::to_string(buffer.value) + " is released but not live");
  Entry& held = buffers_[static_cast<std::size_t>(buffer.value)];
  live_ -= held.bytes;
  live_by_category_[static_cast<std::size_t>(held.category)] -= held.bytes;
  if (held.bytes > Bytes{0}) unused_.push_back(ranges_.extract(held.range));
  held.live = false;
  --live_count_;
  return {};
}

void ArenaLedger::reset_peaks() {
  live_peak_ = live_;
  by_category_at_peak_ = live_by_category_;
  extent_ = ranges_.empty() ? Bytes{0} : round_up(Bytes{ranges_.rbegin()->second.end}, alignment_);
}

}  // namespace shard
