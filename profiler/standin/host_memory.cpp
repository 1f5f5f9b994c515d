// A list of ranges, by address.
#include "profiler/standin/host_memory.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>

#include "profiler/standin/counters.h"

namespace shard::standin {
namespace {

constexpr std::size_t kPage = 4096;

/// Never destroyed: threads of the program may outlive main().
struct Pinned {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> ranges;
};
Pinned& pinned() {
  static auto* const pinned = new Pinned;
  return *pinned;
}

}  // namespace

void pin(void* address, std::size_t bytes) {
  {
    const std::lock_guard lock(pinned().mutex);
    if (!pinned().ranges.try_emplace(reinterpret_cast<std::uintptr_t>(address), bytes).second) return;
  }
  count_pinned(static_cast<std::int64_t>(bytes));
}

bool unpin(void* address) {
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(pinned().mutex);
    const auto found = pinned().ranges.find(reinterpret_cast<std::uintptr_t>(address));
    if (found == pinned().ranges.end()) return false;
    bytes = found->second;
    pinned().ranges.erase(found);
  }
  count_pinned(-static_cast<std::int64_t>(bytes));
  return true;
}

void* allocate_pinned(std::size_t bytes) {
  void* const address = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (address != nullptr) pin(address, bytes);
  return address;
}

bool release_pinned(void* address) {
  if (!unpin(address)) return false;
  std::free(address);
  return true;
}

bool is_pinned(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(pinned().mutex);
  const auto next = pinned().ranges.upper_bound(at);
  if (next == pinned().ranges.begin()) return false;
  const auto& [begin, bytes] = *std::prev(next);
  return at < begin + bytes;
}

}  // namespace shard::standin
