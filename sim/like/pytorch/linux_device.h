// Where cudaMalloc puts segments on Linux, as far as recordings show it.
#pragma once

#include <optional>

#include "sim/like/pytorch/caching_allocator.h"
#include "traces/base/segment_placement.h"

namespace shard {

/// Source: recordings of Linux drivers, whose addresses and reserved bytes it gives exactly; other drivers place
/// upwards, which decides between free blocks of one size.
class LinuxDevice final : public SegmentSource {
 public:
  /// Without a capacity nothing is ever refused.
  explicit LinuxDevice(std::optional<Bytes> capacity = std::nullopt) : capacity_(capacity) {}
  std::optional<Address> take(Bytes bytes, AllocatorStream stream, Pool pool) override;
  void give_back(Address address, Bytes bytes) override;
  bool take_pages(Bytes bytes) override;
  void give_back_pages(Bytes bytes) override { in_use_ -= bytes; }

 private:
  std::optional<Bytes> capacity_;
  Bytes in_use_{0};
  SegmentPlacement placement_{0, Address{1} << 46};
};

}  // namespace shard
