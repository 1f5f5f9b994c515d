// Next-fit of ordered sizes into chunks of one size, on prefix sums: a chunk costs O(log parameters), not
// O(parameters).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shard {

/// What becomes of a parameter larger than the chunk size: a chunk of exactly its size (Colossal-AI v0.1.8, v0.1.9), or
/// of its size rounded up to a multiple of the world size (Colossal-AI v0.1.10 to today).
enum class Oversize { exact, round_up };

/// How many chunks a size makes. Oversize chunks are those opened by a parameter larger than the size.
struct NextFitTally {
  std::int64_t uniform_chunks = 0;
  std::int64_t oversize_chunks = 0;
  std::int64_t oversize_elems = 0;  ///< sum of the oversize chunks' sizes

  [[nodiscard]] std::int64_t chunks() const { return uniform_chunks + oversize_chunks; }
  /// Elements of all chunks together.
  [[nodiscard]] std::int64_t capacity(std::int64_t chunk) const { return uniform_chunks * chunk + oversize_elems; }
  friend bool operator==(const NextFitTally&, const NextFitTally&) = default;
};

/// Next-fit, the rule of Colossal-AI's chunk manager: parameters are taken in order; one that fits into what is left of
/// the last opened chunk goes there, otherwise a new chunk is opened; none is split, and no older chunk is looked at
/// again. The room that rounding leaves in an oversize chunk counts like any other: a parameter smaller than the world
/// size may land there.
///
/// With chunk sizes that are multiples of the world size, next-fit makes the fewest chunks of all contiguous
/// partitions, because every part of an admissible chunk is admissible; and what is admissible at one size is
/// admissible at any larger one. So the number of chunks, and that of oversize chunks, never rise with the size.
class NextFit {
 public:
  /// sizes: at least one, each at least 1, their sum at most kMaxTotalElems. world_size >= 1.
  NextFit(std::vector<std::int64_t> sizes, std::int64_t world_size, Oversize oversize);

  [[nodiscard]] std::size_t parameters() const { return sizes_.size(); }
  [[nodiscard]] std::span<const std::int64_t> sizes() const { return sizes_; }
  [[nodiscard]] std::int64_t total() const { return prefix_.back(); }
  [[nodiscard]] std::int64_t world_size() const { return world_size_; }
  /// Sum of parameters [first, last).
  [[nodiscard]] std::int64_t sum(std::size_t first, std::size_t last) const { return prefix_[last] - prefix_[first]; }

  /// visit(first, last, elems) for each chunk in order: it holds parameters [first, last) and has `elems` elements.
  template <class Visit>
  void for_each_chunk(std::int64_t chunk, Visit&& visit) const {
    for (std::size_t first = 0; first < sizes_.size();) {
      const std::int64_t elems = sizes_[first] > chunk ? oversize_elems(sizes_[first]) : chunk;
      const std::size_t last = end_of(first, elems);
      visit(first, last, elems);
      first = last;
    }
  }

  [[nodiscard]] NextFitTally tally(std::int64_t chunk) const;

  /// The smallest size above `chunk` at which a chunk takes one more parameter or an oversize parameter stops being
  /// one; at all sizes between, every parameter stays in its chunk. INT64_MAX when there is none.
  [[nodiscard]] std::int64_t next_change(std::int64_t chunk) const;

 private:
  [[nodiscard]] std::int64_t oversize_elems(std::int64_t size) const {
    return oversize_ == Oversize::exact ? size : (size + world_size_ - 1) / world_size_ * world_size_;
  }
  /// One past the last parameter of a chunk of `elems` elements that starts with parameter `first`.
  [[nodiscard]] std::size_t end_of(std::size_t first, std::int64_t elems) const {
    const auto begin = prefix_.begin() + static_cast<std::ptrdiff_t>(first) + 1;
    return static_cast<std::size_t>(std::upper_bound(begin, prefix_.end(), prefix_[first] + elems) - prefix_.begin()) -
           1;
  }

  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> prefix_;  ///< prefix_[i] = sum of the first i sizes
  std::int64_t world_size_;
  Oversize oversize_;
};

}  // namespace shard
