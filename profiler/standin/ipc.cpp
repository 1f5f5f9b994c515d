// Memory and events that one process hands to another (cudaIpc...). What the other opens is an address of its own; the
// memory stays the first one's, in the card's account, too. What it holds the other does not see: it reads as zeros.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "profiler/standin/card.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/handles.h"

using namespace shard::standin;

namespace {

/// cudaErrorDeviceUninitialized: of who opens what it has handed out itself.
constexpr int kInvalidValue = 1, kOutOfMemory = 2, kOwn = 201, kInvalidHandle = 400;

constexpr std::uint64_t kOfMemory = 0x796d656d63706973, kOfEvent = 0x746e6576636970;

/// cudaIpcMemHandle_t and cudaIpcEventHandle_t.
struct Handle {
  std::uint64_t kind;
  std::int64_t process, card;
  std::uint64_t address, bytes;
  std::uint64_t rest[3];
};
static_assert(sizeof(Handle) == 64);

struct Opened {
  std::uint64_t bytes;
  int count;
  std::pair<std::int64_t, std::uint64_t> whose;
};
struct AllOpened {
  std::mutex mutex;
  std::map<std::pair<std::int64_t, std::uint64_t>, void*> by_owner;
  std::map<void*, Opened> by_address;
};
AllOpened& opened() {
  static auto* const opened = new AllOpened;
  return *opened;
}

int hand_out(Handle* handle, const void* pointer) {
  const auto [begin, bytes] = block_around(pointer);
  if (begin == nullptr) return kInvalidValue;
  *handle = {.kind = kOfMemory,
             .process = ::getpid(),
             .card = card_of_device(device_of(begin)),
             .address = reinterpret_cast<std::uint64_t>(begin),
             .bytes = bytes,
             .rest = {}};
  return kSuccess;
}

/// Who opens the same again gets the same.
int open_memory(void** pointer, const Handle& handle) {
  if (handle.kind != kOfMemory) return kInvalidHandle;
  if (handle.process == ::getpid()) return kOwn;
  AllOpened& all = opened();
  const std::lock_guard lock(all.mutex);
  const std::pair whose(handle.process, handle.address);
  if (const auto again = all.by_owner.find(whose); again != all.by_owner.end()) {
    ++all.by_address[again->second].count;
    *pointer = again->second;
    return kSuccess;
  }
  *pointer = reserve(handle.bytes, device_of_card(static_cast<int>(handle.card)));
  if (*pointer == nullptr) return kOutOfMemory;
  all.by_owner[whose] = *pointer;
  all.by_address[*pointer] = {.bytes = handle.bytes, .count = 1, .whose = whose};
  return kSuccess;
}

int close_memory(void* pointer) {
  AllOpened& all = opened();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_address.find(pointer);
  if (found == all.by_address.end()) return kInvalidValue;
  if (--found->second.count > 0) return kSuccess;
  unreserve(pointer, found->second.bytes);
  all.by_owner.erase(found->second.whose);
  all.by_address.erase(found);
  return kSuccess;
}

int hand_out_event(Handle* handle, void* event) {
  *handle = {};
  handle->kind = kOfEvent;
  handle->process = ::getpid();
  handle->address = reinterpret_cast<std::uint64_t>(event);
  return kSuccess;
}
/// It is over when it is asked about.
int open_event(void** event, const Handle& handle) {
  if (handle.kind != kOfEvent) return kInvalidHandle;
  *event = fresh_handle();
  return kSuccess;
}

}  // namespace

STANDIN int cudaIpcGetMemHandle(Handle* handle, void* pointer) {
  return hand_out(handle, pointer);
}
STANDIN int cudaIpcOpenMemHandle(void** pointer, Handle handle, unsigned) {
  return open_memory(pointer, handle);
}
STANDIN int cudaIpcCloseMemHandle(void* pointer) {
  return close_memory(pointer);
}
STANDIN int cudaIpcGetEventHandle(Handle* handle, void* event) {
  return hand_out_event(handle, event);
}
STANDIN int cudaIpcOpenEventHandle(void** event, Handle handle) {
  return open_event(event, handle);
}
STANDIN int cuIpcGetMemHandle(Handle* handle, void* pointer) {
  return hand_out(handle, pointer);
}
STANDIN int cuIpcOpenMemHandle_v2(void** pointer, Handle handle, unsigned) {
  return open_memory(pointer, handle);
}
STANDIN int cuIpcCloseMemHandle(void* pointer) {
  return close_memory(pointer);
}
STANDIN int cuIpcGetEventHandle(Handle* handle, void* event) {
  return hand_out_event(handle, event);
}
STANDIN int cuIpcOpenEventHandle(void** event, Handle handle) {
  return open_event(event, handle);
}
