// Virtual memory management: room on the card and addresses apart, which PyTorch's expandable segments and symmetric
// memory are made of. Another process takes part by a file descriptor; there is neither a fabric nor multicast.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include "profiler/standin/card.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/handles.h"

using namespace shard::standin;

namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNotSupported = 801;
constexpr std::size_t kGranule = std::size_t{2} << 20;
/// CUmemAllocationHandleType, and what else is asked of properties.
constexpr int kFileDescriptor = 1, kFabric = 8, kPinned = 1, kOfDevice = 1;

using Number = unsigned long long;
/// Memory without an address.
struct Physical {
  std::size_t bytes;
  int device;
  int count;    ///< of those who have the handle
  bool is_own;  ///< in this process's account
};
/// CUmemAllocationProp, up to what is looked at.
struct Properties {
  int type, requested_handles, location_type, device;
};
/// What a file descriptor leads to.
struct Shared {
  std::uint64_t kind;
  std::uint64_t bytes;
  std::int64_t card;
};
constexpr std::uint64_t kKind = 0x6c61636973796870;

struct All {
  std::mutex mutex;
  std::map<Number, Physical> handles;
  std::map<Number, Number> mapped;  ///< handles by the address that they begin at
};
All& all() {
  static auto* const all = new All;
  return *all;
}

Number remember(const Physical& physical) {
  const auto handle = reinterpret_cast<Number>(fresh_handle());
  const std::lock_guard lock(all().mutex);
  all().handles[handle] = physical;
  return handle;
}

/// The descriptor; -1 where the system has none.
int descriptor_of(const Physical& physical) {
  const int file = ::memfd_create("memory of a card", MFD_CLOEXEC);
  if (file < 0) return file;
  const Shared shared{kKind, physical.bytes, card_of_device(physical.device)};
  if (::write(file, &shared, sizeof(shared)) == sizeof(shared)) return file;
  ::close(file);
  return -1;
}

}  // namespace

STANDIN int cuMemGetAllocationGranularity(std::size_t* bytes, const void*, int) {
  *bytes = kGranule;
  return kSuccess;
}
STANDIN int cuMemAddressReserve(Number* address, std::size_t bytes, std::size_t, Number, Number) {
  *address = reinterpret_cast<Number>(reserve(bytes));
  return *address == 0 ? kOutOfMemory : kSuccess;
}
STANDIN int cuMemAddressFree(Number address, std::size_t bytes) {
  unreserve(reinterpret_cast<void*>(address), bytes);
  return kSuccess;
}
STANDIN int cuMemCreate(Number* handle, std::size_t bytes, const Properties* properties, Number) {
  if (properties != nullptr && (properties->requested_handles & kFabric) != 0) return kNotSupported;
  const int device = properties == nullptr ? 0 : properties->device;
  if (!take(bytes, device)) return kOutOfMemory;
  *handle = remember({.bytes = bytes, .device = device, .count = 1, .is_own = true});
  return kSuccess;
}
STANDIN int cuMemRelease(Number handle) {
  const std::lock_guard lock(all().mutex);
  const auto found = all().handles.find(handle);
  if (found == all().handles.end()) return kInvalidValue;
  if (--found->second.count > 0) return kSuccess;
  if (found->second.is_own) give_back(found->second.bytes, found->second.device);
  all().handles.erase(found);
  return kSuccess;
}

// Where handles are mapped matters to nobody but who asks whose an address is.
STANDIN int cuMemMap(Number address, std::size_t bytes, std::size_t, Number handle, Number) {
  const std::lock_guard lock(all().mutex);
  const auto found = all().handles.find(handle);
  if (found == all().handles.end()) return kInvalidValue;
  all().mapped[address] = handle;
  place(reinterpret_cast<void*>(address), bytes, found->second.device);
  return kSuccess;
}
STANDIN int cuMemSetAccess(Number, std::size_t, const void*, std::size_t) {
  return kSuccess;
}
STANDIN int cuMemUnmap(Number address, std::size_t bytes) {
  const std::lock_guard lock(all().mutex);
  all().mapped.erase(address);
  unplace(reinterpret_cast<void*>(address), bytes);
  return kSuccess;
}
STANDIN int cuMemRetainAllocationHandle(Number* handle, void* address) {
  const std::lock_guard lock(all().mutex);
  const auto next = all().mapped.upper_bound(reinterpret_cast<Number>(address));
  if (next == all().mapped.begin()) return kInvalidValue;
  const auto& [begin, mapped] = *std::prev(next);
  const auto found = all().handles.find(mapped);
  if (found == all().handles.end() || reinterpret_cast<Number>(address) - begin >= found->second.bytes)
    return kInvalidValue;
  ++found->second.count;
  *handle = mapped;
  return kSuccess;
}
STANDIN int cuMemGetAllocationPropertiesFromHandle(void* to, Number handle) {
  constexpr std::size_t kBytes = 32;  // of CUmemAllocationProp
  const std::lock_guard lock(all().mutex);
  const auto found = all().handles.find(handle);
  if (found == all().handles.end()) return kInvalidValue;
  const Properties properties{kPinned, kFileDescriptor, kOfDevice, found->second.device};
  std::memset(to, 0, kBytes);
  std::memcpy(to, &properties, sizeof(properties));
  return kSuccess;
}

// --- Between processes ---

STANDIN int cuMemExportToShareableHandle(void* to, Number handle, int type, Number) {
  if (type != kFileDescriptor) return kNotSupported;
  const std::lock_guard lock(all().mutex);
  const auto found = all().handles.find(handle);
  if (found == all().handles.end()) return kInvalidValue;
  const int file = descriptor_of(found->second);
  if (file < 0) return kOutOfMemory;
  std::memcpy(to, &file, sizeof(file));
  return kSuccess;
}
STANDIN int cuMemImportFromShareableHandle(Number* handle, void* from, int type) {
  if (type != kFileDescriptor) return kNotSupported;
  Shared shared{};
  const int file = static_cast<int>(reinterpret_cast<std::intptr_t>(from));
  if (::pread(file, &shared, sizeof(shared), 0) != sizeof(shared) || shared.kind != kKind) return kInvalidValue;
  *handle = remember(
      {.bytes = shared.bytes, .device = device_of_card(static_cast<int>(shared.card)), .count = 1, .is_own = false});
  return kSuccess;
}

// --- Multicast: cudaDevAttrMulticastSupported is 0 (properties.cpp) ---

STANDIN int cuMulticastCreate(Number*, const void*) {
  return kNotSupported;
}
STANDIN int cuMulticastAddDevice(Number, int) {
  return kNotSupported;
}
STANDIN int cuMulticastBindMem(Number, std::size_t, Number, std::size_t, std::size_t, Number) {
  return kNotSupported;
}
STANDIN int cuMulticastBindAddr(Number, std::size_t, Number, std::size_t, Number) {
  return kNotSupported;
}
STANDIN int cuMulticastUnbind(Number, int, std::size_t, std::size_t) {
  return kNotSupported;
}
STANDIN int cuMulticastGetGranularity(std::size_t*, const void*, int) {
  return kNotSupported;
}
