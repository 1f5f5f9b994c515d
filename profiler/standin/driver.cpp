// The driver, which libraries ask for its functions by name.
#include <cstring>
#include <map>
#include <mutex>

#include "profiler/standin/card.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/handles.h"
#include "profiler/standin/unknown.h"

using namespace shard::standin;

namespace {

constexpr int kOutOfMemory = 2, kInvalidValue = 1;
constexpr std::size_t kGranule = std::size_t{2} << 20;

/// Memory without an address, by handle.
std::mutex mutex;
std::map<unsigned long long, std::size_t>& handles() {
  static auto* const handles = new std::map<unsigned long long, std::size_t>;
  return *handles;
}

}  // namespace

STANDIN int cuInit(unsigned) {
  return kSuccess;
}
STANDIN int cuDriverGetVersion(int* version) {
  *version = card().cuda_version;
  return kSuccess;
}
STANDIN int cuDeviceGetCount(int* count) {
  *count = card().count;
  return kSuccess;
}
STANDIN int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
STANDIN int cuDeviceGetName(char* name, int length, int) {
  std::strncpy(name, card().name, static_cast<std::size_t>(length));
  return kSuccess;
}
STANDIN int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = card().bytes;
  return kSuccess;
}
STANDIN int cuDeviceGetAttribute(int* value, int which, int device);  // properties.cpp
STANDIN int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}
STANDIN int cuCtxGetCurrent(void** context) {
  static char current;
  *context = &current;
  return kSuccess;
}
STANDIN int cuGetErrorString(int error, const char** text) {
  *text = error == kOutOfMemory ? "out of memory" : error == kSuccess ? "no error" : "invalid argument";
  return kSuccess;
}

// Virtual memory management, which PyTorch's expandable segments are made of.
STANDIN int cuMemGetAllocationGranularity(std::size_t* bytes, const void*, int) {
  *bytes = kGranule;
  return kSuccess;
}
STANDIN int cuMemAddressReserve(unsigned long long* address, std::size_t bytes, std::size_t, unsigned long long,
                                unsigned long long) {
  *address = reinterpret_cast<unsigned long long>(reserve(bytes));
  return *address == 0 ? kOutOfMemory : kSuccess;
}
STANDIN int cuMemAddressFree(unsigned long long address, std::size_t bytes) {
  give_back_range(reinterpret_cast<void*>(address), bytes);
  return kSuccess;
}
// Handles stand for room on the card; where they are mapped matters to nobody.
STANDIN int cuMemMap(unsigned long long, std::size_t, std::size_t, unsigned long long, unsigned long long) {
  return kSuccess;
}
STANDIN int cuMemSetAccess(unsigned long long, std::size_t, const void*, std::size_t) {
  return kSuccess;
}
STANDIN int cuMemUnmap(unsigned long long, std::size_t) {
  return kSuccess;
}
STANDIN int cuMemCreate(unsigned long long* handle, std::size_t bytes, const void*, unsigned long long) {
  if (!take(bytes)) return kOutOfMemory;
  *handle = reinterpret_cast<unsigned long long>(fresh_handle());
  const std::lock_guard lock(mutex);
  handles()[*handle] = bytes;
  return kSuccess;
}
STANDIN int cuMemRelease(unsigned long long handle) {
  const std::lock_guard lock(mutex);
  const auto found = handles().find(handle);
  if (found == handles().end()) return kInvalidValue;
  give_back(found->second);
  handles().erase(found);
  return kSuccess;
}

namespace {

struct Entry {
  const char* name;
  void* function;
};
template <class F>
Entry entry(const char* name, F* function) {
  return {name, reinterpret_cast<void*>(function)};
}

/// The function of that name; of others one that answers success.
void* function_named(const char* name) {
  static const Entry kEntries[] = {
      entry("cuInit", cuInit),
      entry("cuDriverGetVersion", cuDriverGetVersion),
      entry("cuDeviceGetCount", cuDeviceGetCount),
      entry("cuDeviceGet", cuDeviceGet),
      entry("cuDeviceGetAttribute", cuDeviceGetAttribute),
      entry("cuDeviceGetName", cuDeviceGetName),
      entry("cuDeviceTotalMem", cuDeviceTotalMem_v2),
      entry("cuDevicePrimaryCtxGetState", cuDevicePrimaryCtxGetState),
      entry("cuCtxGetCurrent", cuCtxGetCurrent),
      entry("cuGetErrorString", cuGetErrorString),
      entry("cuMemGetAllocationGranularity", cuMemGetAllocationGranularity),
      entry("cuMemAddressReserve", cuMemAddressReserve),
      entry("cuMemAddressFree", cuMemAddressFree),
      entry("cuMemCreate", cuMemCreate),
      entry("cuMemMap", cuMemMap),
      entry("cuMemSetAccess", cuMemSetAccess),
      entry("cuMemUnmap", cuMemUnmap),
      entry("cuMemRelease", cuMemRelease),
  };
  for (const Entry& each : kEntries)
    if (std::strcmp(each.name, name) == 0) return each.function;
  return reinterpret_cast<void*>(unknown_without_name);
}

}  // namespace

STANDIN int cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long, int* found) {
  *function = function_named(name);
  if (found != nullptr) *found = 0;  // cudaDriverEntryPointSuccess
  return kSuccess;
}
STANDIN int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long flags,
                                             int* found) {
  return cudaGetDriverEntryPoint(name, function, flags, found);
}
STANDIN int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int* found) {
  return cudaGetDriverEntryPoint(name, function, 0, found);
}
