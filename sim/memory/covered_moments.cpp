// Two walks over the events, a moment and the one that may cover it, and what lives in the first alone.
#include "sim/memory/covered_moments.h"

#include <cstddef>

namespace shard::packing {
namespace {

// Events that the second walk may pass, for each there is: where no two micro-steps are alike it would jump about.
constexpr std::size_t kPasses = 8;

struct Moment {
  std::size_t end = 0;    // events up to it
  std::int32_t item = 0;  // acquired last
  std::int64_t live = 0;  // bytes
};

std::vector<Moment> read_moments(std::span<const std::int64_t> sizes, std::span<const PackEvent> events) {
  std::vector<Moment> moments;
  moments.reserve(events.size() / 2 + 1);
  std::int64_t live = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto [item, acquire] = events[i];
    live += acquire ? sizes[static_cast<std::size_t>(item)] : -sizes[static_cast<std::size_t>(item)];
    if (acquire && (i + 1 == events.size() || !events[i + 1].acquire)) moments.push_back({i + 1, item, live});
  }
  return moments;
}

/// What is live at two places of the events.
class Walks {
 public:
  Walks(std::size_t items, std::span<const PackEvent> events) : events_(events), live_(items, 0) {}

  void move_first(std::size_t to) { move(first_, to, kFirst); }
  void move_second(std::size_t to) { move(second_, to, kSecond); }
  [[nodiscard]] std::size_t second() const { return second_; }
  [[nodiscard]] bool covers() const { return alone_ == 0; }

 private:
  static constexpr std::uint8_t kFirst = 1, kSecond = 2;

  void flip(std::size_t event, std::uint8_t walk) {
    std::uint8_t& live = live_[static_cast<std::size_t>(events_[event].item)];
    alone_ -= live == kFirst ? 1 : 0;
    live ^= walk;
    alone_ += live == kFirst ? 1 : 0;
  }
  void move(std::size_t& at, std::size_t to, std::uint8_t walk) {
    while (at < to) flip(at++, walk);
    while (at > to) flip(--at, walk);
  }

  std::span<const PackEvent> events_;
  std::vector<std::uint8_t> live_;  // by item: the walks in which it is live
  std::size_t first_ = 0, second_ = 0;
  std::int64_t alone_ = 0;  // items live in the first walk alone
};

}  // namespace

std::vector<std::uint8_t> covered_moments(std::span<const std::int64_t> sizes, std::span<const PackEvent> events) {
  const std::vector<Moment> moments = read_moments(sizes, events);
  // Of equal ones the last, so that none covers one that covers it.
  std::vector<std::int32_t> most(sizes.size(), -1);  // by item acquired last
  bool again = false;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    std::int32_t& best = most[static_cast<std::size_t>(moments[i].item)];
    again = again || best >= 0;
    if (best < 0 || moments[static_cast<std::size_t>(best)].live <= moments[i].live)
      best = static_cast<std::int32_t>(i);
  }
  std::vector<std::uint8_t> covered;
  if (!again) return covered;
  covered.assign(moments.size(), 0);
  Walks walks(sizes.size(), events);
  std::size_t left = kPasses * events.size();
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const auto best = static_cast<std::size_t>(most[static_cast<std::size_t>(moments[i].item)]);
    if (best == i) continue;
    const std::size_t to = moments[best].end;
    const std::size_t way = to > walks.second() ? to - walks.second() : walks.second() - to;
    if (way > left) break;
    left -= way;
    walks.move_first(moments[i].end);
    walks.move_second(to);
    covered[i] = walks.covers() ? 1 : 0;
  }
  return covered;
}

}  // namespace shard::packing
