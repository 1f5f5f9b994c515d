// First fit: which lane takes the next span, so that on one lane spans are only nested or disjoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace shard {

/// Lanes of one track. Spans come by begin, then longest first. A span goes on the first lane where it is disjoint from
/// every open span or lies inside the innermost; one that ends where the next begins is disjoint from it. Costs a step
/// per lane while those are few, else the logarithm of their number.
class LaneFit {
 public:
  struct Slot {
    std::size_t lane = 0;
    std::size_t depth = 0;  ///< open spans around it on its lane
  };
  [[nodiscard]] Slot place(std::int64_t begin, std::int64_t end);
  [[nodiscard]] std::size_t lane_count() const { return open_.size(); }
  /// As new.
  void clear();

 private:
  /// Takes off what has ended.
  void close(std::size_t lane, std::int64_t begin);
  [[nodiscard]] std::size_t first_fit_of_many(std::int64_t begin, std::int64_t end);
  void build_tree();
  void set_room(std::size_t lane);

  std::vector<std::vector<std::int64_t>> open_;  ///< per lane: ends of its open spans, the innermost last
  /// With many lanes: per node the latest end that a lane below it takes; leaves are lanes, those not in use take all.
  std::vector<std::int64_t> room_;
  std::size_t leaves_ = 0;
  std::vector<std::pair<std::int64_t, std::size_t>> closings_;  ///< a heap of (end, lane), the earliest first
};

}  // namespace shard
