// Hundreds of items at a time: a bit of a few words says which of them are live.
#include "sim/memory/meetings.h"

#include <algorithm>
#include <array>
#include <bit>

namespace shard::packing {
namespace {

using Word = std::uint64_t;
constexpr std::size_t kWordItems = 64;
constexpr std::size_t kWords = 8;
constexpr std::size_t kGroupItems = kWords * kWordItems;
using Group = std::array<Word, kWords>;  // of items next to one another in order of first acquisition

/// How many words had each bit set: one bit of all 64 counts beside another, so that adding a word is a carry.
class BitCounts {
 public:
  void add(Word word) {
    for (std::size_t plane = 0; word != 0; ++plane) {
      const Word carry = planes_[plane] & word;
      planes_[plane] ^= word;
      word = carry;
    }
  }
  [[nodiscard]] std::int64_t of(std::size_t bit) const {
    std::int64_t count = 0;
    for (std::size_t plane = 0; plane < planes_.size(); ++plane)
      count += static_cast<std::int64_t>(planes_[plane] >> bit & 1) << plane;
    return count;
  }

 private:
  std::array<Word, 32> planes_{};
};

struct Event {
  std::uint32_t item;  // in order of first acquisition
  bool acquire;
};

/// Per item, which of a group's are live when it is acquired.
void meet(std::span<const Event> events, std::size_t first_item, std::vector<Group>& met) {
  Group now{};
  for (const Event& event : events) {
    const std::size_t place = event.item - first_item;  // past the group: of another
    if (event.acquire) {
      Group& others = met[event.item];
      for (std::size_t word = 0; word < kWords; ++word) others[word] |= now[word];
    }
    if (place < kGroupItems) now[place / kWordItems] ^= Word{1} << place % kWordItems;
  }
}

}  // namespace

std::vector<std::int64_t> count_meetings(std::size_t items, std::span<const PackEvent> events,
                                         const std::vector<bool>& counts) {
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<Event> kept;
  kept.reserve(events.size());
  std::vector<std::uint32_t> order;  // those of a group live about together
  std::vector<std::uint32_t> place(items, kNone);
  struct Span {
    std::size_t first;
    std::size_t last;
  };
  std::vector<Span> spans;  // by group: the events of its items
  for (const PackEvent& event : events) {
    const auto item = static_cast<std::size_t>(event.item);
    if (!counts[item]) continue;
    if (place[item] == kNone) {
      place[item] = static_cast<std::uint32_t>(order.size());
      order.push_back(static_cast<std::uint32_t>(item));
      if (place[item] % kGroupItems == 0) spans.push_back({kept.size(), kept.size()});
    }
    spans[place[item] / kGroupItems].last = kept.size();
    kept.push_back({place[item], event.acquire});
  }
  std::vector<bool> live(order.size(), false);
  for (const Event& event : kept) live[event.item] = event.acquire;
  for (std::size_t item = 0; item < order.size(); ++item)  // never released
    if (live[item]) spans[item / kGroupItems].last = kept.size() - 1;

  std::vector<std::int64_t> result(items, 0);
  std::vector<Group> met(order.size());
  for (std::size_t group = 0; group < spans.size(); ++group) {
    const Span span = spans[group];
    const std::size_t first = group * kGroupItems;
    meet(std::span(kept).subspan(span.first, span.last + 1 - span.first), first, met);
    std::array<BitCounts, kWords> counted;
    for (std::size_t item = 0; item < order.size(); ++item) {
      for (std::size_t word = 0; word < kWords; ++word) {
        const Word others = met[item][word];
        if (others == 0) continue;
        counted[word].add(others);
        result[order[item]] += std::popcount(others);
      }
      met[item] = {};
    }
    for (std::size_t i = 0; i < std::min(kGroupItems, order.size() - first); ++i)
      result[order[first + i]] += counted[i / kWordItems].of(i % kWordItems);
  }
  return result;
}

}  // namespace shard::packing
