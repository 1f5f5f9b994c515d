// Which calls are on their way, in the places that a communicator keeps for them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shard {

/// A fixed number of places, each free or taken by a ticket. Calls may end in any order.
class InFlight {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// All places free, tickets from 1 on.
  void reserve(std::size_t places) {
    tickets_.assign(places, 0);
    moving_.assign(places, {});
    order_.clear();
    order_.reserve(places);
  }
  [[nodiscard]] bool full() const { return order_.size() == tickets_.size(); }
  /// A free place for the next ticket, which is then last(). Not when full.
  std::size_t take() {
    const auto place = static_cast<std::size_t>(std::ranges::find(tickets_, std::uint64_t{0}) - tickets_.begin());
    tickets_[place] = ++last_;
    time_of(last_) = {};
    order_.push_back(place);
    return place;
  }
  [[nodiscard]] std::uint64_t last() const { return last_; }
  /// The place of a ticket, kNone when it is not in flight (any more).
  [[nodiscard]] std::size_t place_of(std::uint64_t ticket) const {
    const auto found = std::ranges::find(tickets_, ticket);
    return ticket == 0 || found == tickets_.end() ? kNone : static_cast<std::size_t>(found - tickets_.begin());
  }
  /// Calls `visit(place)` oldest first; a place for which it returns true is free from then on.
  template <class Visit>
  void visit(Visit visit) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::size_t place = order_[i];
      if (visit(place))
        tickets_[place] = 0;
      else
        order_[kept++] = place;
    }
    order_.resize(kept);
  }
  /// Adds to the time that the call in a place has moved data.
  void moved(std::size_t place, std::chrono::nanoseconds time) { time_of(tickets_[place]) += time; }
  /// Of one of the last `places` tickets.
  [[nodiscard]] std::chrono::nanoseconds moving_time(std::uint64_t ticket) const {
    return moving_[ticket % moving_.size()];
  }
  /// The places taken, oldest call first.
  [[nodiscard]] const std::vector<std::size_t>& order() const { return order_; }

 private:
  [[nodiscard]] std::chrono::nanoseconds& time_of(std::uint64_t ticket) { return moving_[ticket % moving_.size()]; }

  std::vector<std::uint64_t> tickets_;            ///< per place; 0: free
  std::vector<std::chrono::nanoseconds> moving_;  ///< by ticket, modulo the places
  std::vector<std::size_t> order_;
  std::uint64_t last_ = 0;
};

}  // namespace shard
