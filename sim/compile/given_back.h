// Who had which bytes of an arena last: what a buffer that takes them has to wait for.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace shard::plan {

/// A set of small numbers with its predecessor and successor queries in a few steps, whatever its size: one bit each,
/// and one bit for every 64 that are not all zero.
class NumberSet {
 public:
  explicit NumberSet(std::size_t numbers);
  void insert(std::size_t n);
  void erase(std::size_t n);
  /// The least member that is at least `n`; size() where there is none.
  [[nodiscard]] std::size_t at_least(std::size_t n) const;
  /// The greatest member that is at most `n`; size() where there is none.
  [[nodiscard]] std::size_t at_most(std::size_t n) const;
  [[nodiscard]] std::size_t size() const { return numbers_; }

 private:
  std::size_t numbers_;
  std::vector<std::vector<std::uint64_t>> levels_;  ///< levels_[0]: the members; above: which words below hold one
};

/// Disjoint ranges of places, each with a value of the caller's (a number), where a new one replaces what it covers.
/// Places are numbers below `places`, in the order of the bytes that they stand for.
class RangeOwners {
 public:
  explicit RangeOwners(std::size_t places) : begins_(places), ranges_(places) {}
  /// Calls f(owner) for each range that has a part of [begin, end).
  template <class F>
  void for_each(std::size_t begin, std::size_t end, const F& f) const {
    if (const std::size_t r = begins_.at_most(begin); r != begins_.size() && r != begin && ranges_[r].end > begin)
      f(ranges_[r].owner);
    for (std::size_t r = begins_.at_least(begin); r < end; r = begins_.at_least(r + 1)) f(ranges_[r].owner);
  }
  /// [begin, end), not empty, is `owner`'s from now on; what others had of it is cut off.
  void assign(std::size_t begin, std::size_t end, std::int32_t owner);

 private:
  struct Range {
    std::size_t end = 0;
    std::int32_t owner = -1;
  };
  NumberSet begins_;
  std::vector<Range> ranges_;  ///< by the place where they begin
};

}  // namespace shard::plan
