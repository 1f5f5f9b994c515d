// Where CUDA's driver puts the memory that cudaMalloc gives, as far as recordings of cards show it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace shard {

/// Memory in granules of 2 MiB. Two ways are known. Most Linux drivers: out of ranges of a multiple of 32 MiB, a new
/// one directly below the last; others upwards from the begin of the address space. Both take the lowest gap that is
/// large enough first. Addresses alone: nothing is allocated.
class SegmentPlacement {
 public:
  using Address = std::uint64_t;
  static constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;
  static constexpr std::uint64_t kRange = std::uint64_t{32} << 20;

  /// Of [begin, end).
  SegmentPlacement(Address begin, Address end, bool upwards = false)
      : high_(rounded(begin, kRange)), low_(end / kRange * kRange), upwards_(upwards) {}

  /// What so many bytes take.
  static constexpr std::uint64_t size_of(std::uint64_t bytes) { return rounded(std::max<Address>(bytes, 1), kGranule); }
  static constexpr std::uint64_t range_of(std::uint64_t bytes) { return rounded(bytes, kRange); }

  /// Nothing where the address space ends.
  std::optional<Address> take(std::uint64_t bytes) {
    const std::uint64_t size = size_of(bytes);
    const auto fits = [&](const auto& gap) { return gap.second >= size; };
    auto gap = std::find_if(gaps_.begin(), gaps_.end(), fits);
    if (gap == gaps_.end()) {
      if (!extend(upwards_ ? size : range_of(bytes))) return std::nullopt;
      gap = std::find_if(gaps_.begin(), gaps_.end(), fits);
    }
    const auto [address, room] = *gap;
    gaps_.erase(gap);
    if (room > size) gaps_.emplace(address + size, room - size);
    return address;
  }
  void give_back(Address address, std::uint64_t bytes) { add_gap(address, size_of(bytes)); }

  /// A range that no segment is taken from.
  std::optional<Address> reserve(std::uint64_t bytes) {
    const std::uint64_t range = range_of(bytes);
    if (low_ - high_ < range) return std::nullopt;
    return low_ -= range;
  }

 private:
  static constexpr std::uint64_t rounded(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }
  bool extend(std::uint64_t range) {
    if (low_ - high_ < range) return false;
    if (!upwards_) low_ -= range;
    add_gap(upwards_ ? high_ : low_, range);
    if (upwards_) high_ += range;
    return true;
  }
  /// Merged where gaps touch.
  void add_gap(Address address, std::uint64_t bytes) {
    auto next = gaps_.lower_bound(address);
    if (next != gaps_.end() && address + bytes == next->first) {
      bytes += next->second;
      next = gaps_.erase(next);
    }
    if (next != gaps_.begin())
      if (const auto below = std::prev(next); below->first + below->second == address) {
        below->second += bytes;
        return;
      }
    gaps_.emplace_hint(next, address, bytes);
  }

  Address high_, low_;  ///< up to where, and from where on the space was begun
  bool upwards_;
  std::map<Address, std::uint64_t> gaps_;
};

}  // namespace shard
