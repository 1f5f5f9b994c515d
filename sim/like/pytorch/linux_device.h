// Where cudaMalloc puts segments on Linux, as far as recordings show it.
#pragma once

#include <map>
#include <optional>

#include "sim/like/pytorch/caching_allocator.h"

namespace shard {

/// Memory in granules of 2 MiB out of ranges of a multiple of 32 MiB. A new range lies directly below the last; the
/// lowest gap that is large enough comes first. Source: recordings of Linux drivers, whose addresses and reserved bytes
/// it gives exactly; other drivers place upwards, which decides between free blocks of one size.
class LinuxDevice final : public SegmentSource {
 public:
  /// Without a capacity nothing is ever refused.
  explicit LinuxDevice(std::optional<Bytes> capacity = std::nullopt) : capacity_(capacity) {}
  std::optional<Address> take(Bytes bytes, AllocatorStream stream, Pool pool) override;
  void give_back(Address address, Bytes bytes) override;
  bool take_pages(Bytes bytes) override;
  void give_back_pages(Bytes bytes) override { in_use_ -= bytes; }

 private:
  void add_gap(Address address, Bytes bytes);

  std::optional<Bytes> capacity_;
  Bytes in_use_{0};
  Address lowest_ = Address{1} << 46;  ///< of the lowest range
  std::map<Address, Bytes> gaps_;      ///< merged where they touch
};

}  // namespace shard
