// The driver's addresses, and a limit.
#include "sim/like/pytorch/linux_device.h"

namespace shard {
namespace {

std::uint64_t unsigned_of(Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.count());
}

Bytes taken_for(Bytes requested) {
  return Bytes{static_cast<std::int64_t>(SegmentPlacement::size_of(unsigned_of(requested)))};
}

}  // namespace

std::optional<Address> LinuxDevice::take(Bytes requested, AllocatorStream, Pool) {
  if (!take_pages(taken_for(requested))) return std::nullopt;
  return placement_.take(unsigned_of(requested));
}

void LinuxDevice::give_back(Address address, Bytes requested) {
  in_use_ -= taken_for(requested);
  placement_.give_back(address, unsigned_of(requested));
}

bool LinuxDevice::take_pages(Bytes bytes) {
  if (capacity_ && in_use_ + bytes > *capacity_) return false;
  in_use_ += bytes;
  return true;
}

}  // namespace shard
