// A device that says what the allocator takes from it and gives back.
#pragma once

#include "sim/like/pytorch/caching_allocator.h"

namespace shard::like {

/// What happens to a replayed allocator, in order: a segment comes before the block that it was taken for.
class ReplayListener {
 public:
  virtual ~ReplayListener() = default;
  virtual void segment_taken(Address address, Bytes bytes, AllocatorStream stream) = 0;
  virtual void segment_given_back(Address address, Bytes bytes) = 0;
  virtual void pages_mapped(Address address, Bytes bytes, AllocatorStream stream) = 0;
  virtual void pages_unmapped(Address address, Bytes bytes, AllocatorStream stream) = 0;
};

/// Another device, and whoever listens.
class WatchedDevice final : public SegmentSource {
 public:
  /// Borrows both.
  WatchedDevice(SegmentSource& device, ReplayListener& listener) : device_(device), listener_(listener) {}

  std::optional<Address> take(Bytes bytes, AllocatorStream stream, Pool pool) override {
    const std::optional<Address> address = device_.take(bytes, stream, pool);
    if (address) listener_.segment_taken(*address, bytes, stream);
    return address;
  }
  void give_back(Address address, Bytes bytes) override {
    listener_.segment_given_back(address, bytes);
    device_.give_back(address, bytes);
  }
  bool take_pages(Bytes bytes) override { return device_.take_pages(bytes); }
  void give_back_pages(Bytes bytes) override { device_.give_back_pages(bytes); }
  void mapped(Address address, Bytes bytes, AllocatorStream stream) override {
    listener_.pages_mapped(address, bytes, stream);
  }
  void unmapped(Address address, Bytes bytes, AllocatorStream stream) override {
    listener_.pages_unmapped(address, bytes, stream);
  }

 private:
  SegmentSource& device_;
  ReplayListener& listener_;
};

}  // namespace shard::like
