// Ranges downwards, gaps upwards.
#include "sim/like/pytorch/linux_device.h"

#include <algorithm>
#include <iterator>

namespace shard {
namespace {

constexpr std::int64_t kGranule = 2 << 20;
constexpr std::int64_t kRange = 32 << 20;

Address end_of(Address address, Bytes bytes) {
  return address + static_cast<Address>(bytes.count());
}

}  // namespace

std::optional<Address> LinuxDevice::take(Bytes requested, AllocatorStream, Pool) {
  const Bytes bytes = round_up(requested, kGranule);
  if (capacity_ && in_use_ + bytes > *capacity_) return std::nullopt;
  const auto fits = [&](const auto& gap) { return gap.second >= bytes; };
  auto gap = std::find_if(gaps_.begin(), gaps_.end(), fits);
  if (gap == gaps_.end()) {
    const Bytes range = round_up(requested, kRange);
    lowest_ -= static_cast<Address>(range.count());
    add_gap(lowest_, range);
    gap = std::find_if(gaps_.begin(), gaps_.end(), fits);
  }
  const auto [address, size] = *gap;
  gaps_.erase(gap);
  if (size > bytes) gaps_.emplace(end_of(address, bytes), size - bytes);
  in_use_ += bytes;
  return address;
}

void LinuxDevice::give_back(Address address, Bytes requested) {
  const Bytes bytes = round_up(requested, kGranule);
  in_use_ -= bytes;
  add_gap(address, bytes);
}

bool LinuxDevice::take_pages(Bytes bytes) {
  if (capacity_ && in_use_ + bytes > *capacity_) return false;
  in_use_ += bytes;
  return true;
}

void LinuxDevice::add_gap(Address address, Bytes bytes) {
  const auto above = gaps_.lower_bound(address);
  if (above != gaps_.end() && above->first == end_of(address, bytes)) {
    bytes += above->second;
    gaps_.erase(above);
  }
  const auto next = gaps_.lower_bound(address);
  if (next != gaps_.begin()) {
    const auto below = std::prev(next);
    if (end_of(below->first, below->second) == address) {
      below->second += bytes;
      return;
    }
  }
  gaps_.emplace_hint(next, address, bytes);
}

}  // namespace shard
