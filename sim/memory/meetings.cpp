// Sixty-four items at a time: a word says which of them are live.
#include "sim/memory/meetings.h"

#include <algorithm>
#include <bit>

namespace shard::packing {
namespace {

using Word = std::uint64_t;
constexpr std::size_t kWordItems = 64;

/// How many words had each bit set: one bit of all 64 counts beside another, so that adding a word is a carry.
class BitCounts {
 public:
  void add(Word word) {
    for (std::size_t plane = 0; word != 0; ++plane) {
      if (plane == planes_.size()) planes_.push_back(0);
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
  std::vector<Word> planes_;
};

}  // namespace

std::vector<std::int64_t> count_meetings(std::size_t items, std::span<const PackEvent> events,
                                         const std::vector<bool>& counts) {
  std::vector<PackEvent> kept;
  std::vector<std::size_t> word_of(items, 0);  // in order of first acquisition: those of a word live about together
  std::vector<std::size_t> bit_of(items, kWordItems);
  std::vector<std::size_t> order;
  struct Span {
    std::size_t first;
    std::size_t last;
  };
  std::vector<Span> spans;  // by word: the events of its items
  for (const PackEvent& event : events) {
    const auto item = static_cast<std::size_t>(event.item);
    if (!counts[item]) continue;
    if (bit_of[item] == kWordItems) {
      word_of[item] = order.size() / kWordItems;
      bit_of[item] = order.size() % kWordItems;
      order.push_back(item);
      if (word_of[item] == spans.size()) spans.push_back({kept.size(), kept.size()});
    }
    spans[word_of[item]].last = kept.size();
    kept.push_back(event);
  }
  std::vector<bool> live(items, false);
  for (const PackEvent& event : kept) live[static_cast<std::size_t>(event.item)] = event.acquire;
  for (const std::size_t item : order)  // never released
    if (live[item]) spans[word_of[item]].last = kept.size() - 1;

  std::vector<std::int64_t> result(items, 0);
  std::vector<Word> met(items, 0);
  for (std::size_t word = 0; word < spans.size(); ++word) {
    Word now = 0;
    for (std::size_t i = spans[word].first; i <= spans[word].last; ++i) {
      const auto item = static_cast<std::size_t>(kept[i].item);
      const Word bit = word_of[item] == word ? Word{1} << bit_of[item] : Word{0};
      if (kept[i].acquire) {
        met[item] |= now;
        now |= bit;
      } else {
        now &= ~bit;
      }
    }
    BitCounts counted;
    for (std::size_t i = spans[word].first; i <= spans[word].last; ++i) {
      Word& others = met[static_cast<std::size_t>(kept[i].item)];
      if (others == 0) continue;
      counted.add(others);
      result[static_cast<std::size_t>(kept[i].item)] += std::popcount(others);
      others = 0;
    }
    const std::size_t first = word * kWordItems;
    for (std::size_t bit = 0; bit < std::min(kWordItems, order.size() - first); ++bit)
      result[order[first + bit]] += counted.of(bit);
  }
  return result;
}

}  // namespace shard::packing
