// Running sums in plan order, with whole stacks every 16 events and whole live sets every 1024 or more.
#include "viewer/index/memory.h"
#include "traces/base/wrapping.h"
#include "traces/memory_by_op.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace shard::view {
namespace {

constexpr std::size_t kBlock = 16;
constexpr std::size_t kLiveSetEvery = 1024;

void apply(BytesByCategory& stack, const MemoryTable& table, std::uint32_t event) {
  std::int64_t& bytes = stack[static_cast<std::size_t>(table.category[event])];
  bytes = wrapping_sum(bytes, table.delta_bytes[event]);
}

/// Consecutive numbers for buffers: the ids themselves where those are small, as all of ours are.
class BufferNumbers {
 public:
  BufferNumbers(const MemoryTable& table, const std::vector<std::uint32_t>& events) {
    std::int32_t least = INT32_MAX, most = -1;
    for (const std::uint32_t event : events) {
      least = std::min(least, table.buffer[event].value);
      most = std::max(most, table.buffer[event].value);
    }
    direct_ = least >= 0 && static_cast<std::size_t>(most) < 4 * events.size() + 1024;
    if (direct_) count_ = static_cast<std::size_t>(most) + 1;
    if (events.empty()) count_ = 0;
    if (direct_) return;
    numbers_.reserve(events.size() / 2);
    for (const std::uint32_t event : events) numbers_.try_emplace(table.buffer[event].value, numbers_.size());
    count_ = numbers_.size();
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t operator()(BufferId buffer) const {
    return direct_ ? static_cast<std::size_t>(buffer.value) : numbers_.find(buffer.value)->second;
  }

 private:
  bool direct_ = false;
  std::size_t count_ = 0;
  std::unordered_map<std::int32_t, std::size_t> numbers_;
};

}  // namespace

MemorySeries::MemorySeries(const Trace& trace, Rank rank, Memory memory, std::vector<std::uint32_t> events)
    : rank_(rank), memory_(memory), events_(std::move(events)) {
  const MemoryTable& table = trace.memory;
  for (const ArenaSummary& arena : trace.arenas) {
    if (arena.rank != rank || arena.memory != memory) continue;
    capacity_bytes_ = std::max(capacity_bytes_, arena.capacity_bytes);
    arena_peak_bytes_ = std::max(arena_peak_bytes_, arena.peak_bytes);
  }
  for (const MemoryCapacity& known : trace.header.capacities) {
    const bool here = known.memory == memory && (!known.rank.valid() || known.rank == rank);
    if (here && known.sharers == 1) capacity_bytes_ = known.bytes;
  }
  shown_ns_.reserve(events_.size());
  live_bytes_.reserve(events_.size());
  stacks_.reserve(events_.size() / kBlock + 1);
  std::array<bool, kCategoryCount> seen{};
  BytesByCategory stack{};
  std::int64_t live = 0, shown = INT64_MIN;
  for (std::size_t n = 0; n < events_.size(); ++n) {
    const std::uint32_t event = events_[n];
    if (n % kBlock == 0) stacks_.push_back(stack);
    apply(stack, table, event);
    seen[static_cast<std::size_t>(table.category[event])] = true;
    live = wrapping_sum(live, table.delta_bytes[event]);
    shown = std::max(shown, table.time_ns[event]);
    live_bytes_.push_back(live);
    shown_ns_.push_back(shown);
  }
  if (events_.size() % kBlock == 0) stacks_.push_back(stack);
  for (int c = 0; c < kCategoryCount; ++c) {
    if (seen[static_cast<std::size_t>(c)]) categories_.push_back(static_cast<Category>(c));
  }
  extremes_ = Extremes<std::int64_t>(live_bytes_);
  if (!live_bytes_.empty()) {
    const std::size_t highest = extremes_.highest(live_bytes_, 0, live_bytes_.size());
    if (live_bytes_[highest] > 0) peak_moment_ = highest + 1;
  }
  index_live_sets(table);
}

void MemorySeries::index_live_sets(const MemoryTable& table) {
  const BufferNumbers number(table, events_);
  constexpr auto kDead = static_cast<std::uint32_t>(-1);
  std::vector<std::uint32_t> slot(number.count(), kDead);  // of each buffer in `live`
  std::vector<Holding> live;
  live_sets_.push_back({0, {}});
  for (std::size_t n = 0; n < events_.size(); ++n) {
    if (n - live_sets_.back().moment >= std::max(kLiveSetEvery, 2 * live.size())) live_sets_.push_back({n, live});
    const std::uint32_t event = events_[n];
    const BufferId buffer = table.buffer[event];
    std::uint32_t& at = slot[number(buffer)];
    if (at == kDead) {
      at = static_cast<std::uint32_t>(live.size());
      live.push_back({buffer.value, event, 0});
    }
    Holding& holding = live[at];
    holding.bytes = wrapping_sum(holding.bytes, table.delta_bytes[event]);
    if (table.delta_bytes[event] > 0) holding.event = event;
    if (holding.bytes == 0) {
      holding = live.back();
      slot[number(BufferId{holding.buffer})] = at;
      at = kDead;  // after the line above: the last one may be this one
      live.pop_back();
    }
  }
}

std::size_t MemorySeries::moment_at(std::int64_t time_ns) const {
  return static_cast<std::size_t>(std::upper_bound(shown_ns_.begin(), shown_ns_.end(), time_ns) - shown_ns_.begin());
}

std::int64_t MemorySeries::time_of(std::size_t moment) const {
  if (shown_ns_.empty()) return 0;
  return shown_ns_[moment == 0 ? 0 : moment - 1];
}

BytesByCategory MemorySeries::stack_at(const MemoryTable& table, std::size_t moment) const {
  BytesByCategory stack = stacks_[moment / kBlock];
  for (std::size_t n = moment / kBlock * kBlock; n < moment; ++n) apply(stack, table, events_[n]);
  return stack;
}

void MemorySeries::moments(const PixelRange& view, std::vector<MomentColumn>& out) const {
  out.resize(static_cast<std::size_t>(view.width));
  const auto before = [&](std::int64_t time_ns) {
    return static_cast<std::size_t>(std::lower_bound(shown_ns_.begin(), shown_ns_.end(), time_ns) - shown_ns_.begin());
  };
  for (std::int32_t c = 0; c < view.width; ++c) {
    const std::size_t first = before(view.begin(c)), last = before(view.end(c));
    MomentColumn& column = out[static_cast<std::size_t>(c)];
    column.highest_moment = first;
    column.lowest_bytes = bytes_at(first);
    if (first < last) {
      const std::size_t high = extremes_.highest(live_bytes_, first, last) + 1;
      const std::size_t low = extremes_.lowest(live_bytes_, first, last) + 1;
      if (bytes_at(high) > bytes_at(first)) column.highest_moment = high;
      column.lowest_bytes = std::min(column.lowest_bytes, bytes_at(low));
    }
    column.highest_bytes = bytes_at(column.highest_moment);
    column.last_bytes = bytes_at(last);
  }
}

void MemorySeries::columns(const MemoryTable& table, const PixelRange& view, std::vector<MemoryColumn>& out) const {
  std::vector<MomentColumn> found;
  moments(view, found);
  out.resize(found.size());
  std::size_t stacked = static_cast<std::size_t>(-1);
  BytesByCategory stack{};
  for (std::size_t c = 0; c < found.size(); ++c) {
    if (stacked != found[c].highest_moment) stack = stack_at(table, stacked = found[c].highest_moment);
    out[c] = {found[c].highest_bytes, found[c].lowest_bytes, found[c].last_bytes, stack};
  }
}

std::int64_t MemorySeries::highest_in(TimeRange range) const {
  const auto before = [&](std::int64_t time_ns) {
    return static_cast<std::size_t>(std::lower_bound(shown_ns_.begin(), shown_ns_.end(), time_ns) - shown_ns_.begin());
  };
  const std::size_t first = before(range.begin_ns), last = before(range.end_ns);
  if (first >= last) return bytes_at(first);
  return std::max(bytes_at(first), live_bytes_[extremes_.highest(live_bytes_, first, last)]);
}

std::vector<LiveBuffer> MemorySeries::live_at(const MemoryTable& table, std::size_t moment) const {
  const auto after = std::upper_bound(live_sets_.begin(), live_sets_.end(), moment,
                                      [](std::size_t m, const LiveSet& set) { return m < set.moment; });
  const LiveSet& start = *std::prev(after);
  std::unordered_map<std::int32_t, Holding> live;
  live.reserve(start.holdings.size() + 64);
  for (const Holding& holding : start.holdings) live.emplace(holding.buffer, holding);
  for (std::size_t n = start.moment; n < moment; ++n) {
    const std::uint32_t event = events_[n];
    const std::int32_t buffer = table.buffer[event].value;
    const auto [at, added] = live.try_emplace(buffer, Holding{buffer, event, 0});
    Holding& holding = at->second;
    holding.bytes = wrapping_sum(holding.bytes, table.delta_bytes[event]);
    if (table.delta_bytes[event] > 0) holding.event = event;
    if (holding.bytes == 0) live.erase(at);
  }
  std::vector<LiveBuffer> result;
  result.reserve(live.size());
  for (const auto& [buffer, holding] : live) {
    const MemoryEvent event = table[holding.event];
    result.push_back({event.buffer, holding.event, event.unit, event.category, holding.bytes, event.offset_bytes,
                      event.time_ns, event.op, event.phase, event.step});
  }
  std::sort(result.begin(), result.end(), [](const LiveBuffer& a, const LiveBuffer& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer < b.buffer;
  });
  return result;
}

std::vector<MemorySeries> memory_series(const Trace& trace) {
  auto events = memory_events(trace);
  std::vector<MemorySeries> result;
  result.reserve(events.size());
  for (auto& [key, list] : events) result.emplace_back(trace, key.first, key.second, std::move(list));
  return result;
}

}  // namespace shard::view
