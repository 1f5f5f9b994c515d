// Two mappings of the same length: one of bytes, one of addresses.
#include "executor/cuda/emulated/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#if defined(SHARD_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace shard::cuda::emulated {
namespace {

constexpr int kPoison = 0xFF;
constexpr int kGuard = 0xA5;
constexpr std::int64_t kLong = 64 << 10;

void* map(std::int64_t bytes, int protection) {
  void* const memory =
      mmap(nullptr, static_cast<std::size_t>(bytes), protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

std::int64_t aligned(std::int64_t bytes) {
  return round_up(Bytes{bytes}, DeviceMemory::kAlignment).count();
}

bool is_guard(const std::byte* from) {
  return std::all_of(from, from + DeviceMemory::kGuardBytes, [](std::byte b) { return b == std::byte{kGuard}; });
}

}  // namespace

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::make(Bytes capacity) {
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory);
  memory->capacity_ = capacity;
  // Room for guard zones, and for addresses to rest a while after they were freed.
  memory->reserved_ = aligned(2 * capacity.count() + (std::int64_t{64} << 20));
  memory->real_ = static_cast<std::byte*>(map(memory->reserved_, PROT_READ | PROT_WRITE));
  memory->mirror_ = static_cast<std::byte*>(map(memory->reserved_, PROT_NONE));
  if (memory->real_ == nullptr || memory->mirror_ == nullptr)
    return Error{Errc::unavailable,
                 "the address space has no room for an emulated device of " + std::to_string(capacity.count()) +
                     " bytes twice over",
                 "", ""};
  // What is handed out is written whole at once: large pages cost a fifth then. Where there are none, nothing changes.
  madvise(memory->real_, static_cast<std::size_t>(memory->reserved_), MADV_HUGEPAGE);
  return memory;
}

DeviceMemory::~DeviceMemory() {
  for (const auto& [begin, block] : blocks_) {
    open(begin, block.bytes);
    if (block.pinned) std::free(const_cast<std::byte*>(begin) - kGuardBytes);
  }
  if (real_ != nullptr) munmap(real_, static_cast<std::size_t>(reserved_));
  if (mirror_ != nullptr) munmap(mirror_, static_cast<std::size_t>(reserved_));
}

void DeviceMemory::hand_out(std::byte* real, std::int64_t bytes) {
  std::memset(real - kGuardBytes, kGuard, static_cast<std::size_t>(kGuardBytes));
  std::memset(real, kPoison, static_cast<std::size_t>(bytes));
  std::memset(real + bytes, kGuard, static_cast<std::size_t>(kGuardBytes));
}

std::optional<std::int64_t> DeviceMemory::place(std::int64_t bytes) {
  // With the guard zone before it, and the one after it, which the next allocation's may not share.
  const std::int64_t needed = aligned(bytes) + 2 * kGuardBytes;
  for (const std::int64_t begin : {cursor_, std::int64_t{0}}) {
    std::int64_t at = begin;
    for (auto next = blocks_.lower_bound(mirror_ + at); at + needed <= reserved_; ++next) {
      // What begins below may reach beyond.
      if (next != blocks_.begin()) {
        const Block& before = std::prev(next)->second;
        if (is_device(before.begin)) at = std::max(at, before.begin - mirror_ + aligned(before.bytes) + kGuardBytes);
      }
      const bool last = next == blocks_.end() || !is_device(next->first);
      const std::int64_t end = last ? reserved_ : next->first - mirror_ - kGuardBytes;
      if (at + needed <= end) return cursor_ = at + needed, at + kGuardBytes;
      if (last) break;
    }
  }
  return std::nullopt;
}

Result<std::byte*> DeviceMemory::allocate(Bytes bytes) {
  const Bytes rounded = round_up(bytes, kAlignment);
  const auto short_of_memory = [&] {
    return Error{Errc::does_not_fit,
                 "the emulated device has " + std::to_string((capacity_ - used_).count()) + " of " +
                     std::to_string(capacity_.count()) + " bytes left, and " + std::to_string(bytes.count()) +
                     " are asked for",
                 "", ""};
  };
  if (bytes < Bytes{} || used_ + rounded > capacity_) return short_of_memory();
  const auto at = place(bytes.count());
  if (!at) return short_of_memory();
  std::byte* const handed = mirror_ + *at;
  hand_out(real_ + *at, bytes.count());
  used_ += rounded;
  blocks_[handed] = {handed, bytes.count(), false};
  close(handed, bytes.count());
  return handed;
}

Result<std::byte*> DeviceMemory::allocate_pinned(Bytes bytes) {
  void* const memory =
      std::aligned_alloc(kAlignment, static_cast<std::size_t>(aligned(bytes.count()) + 2 * kGuardBytes));
  if (memory == nullptr)
    return Error{Errc::does_not_fit, "the host has no " + std::to_string(bytes.count()) + " bytes to pin", "", ""};
  std::byte* const begin = static_cast<std::byte*>(memory) + kGuardBytes;
  hand_out(begin, bytes.count());
  blocks_[begin] = {begin, bytes.count(), true};
  return begin;
}

Result<DeviceMemory::Block> DeviceMemory::free(std::byte* memory, bool pinned) {
  const auto found = blocks_.find(memory);
  if (found == blocks_.end() || found->second.pinned != pinned)
    return Error{Errc::internal, "what is freed was not allocated, or is of the other memory", "", ""};
  const Block block = found->second;
  const bool held = edges_hold(block);
  open(block.begin, block.bytes);
  std::memset(real(memory), kPoison, static_cast<std::size_t>(block.bytes));
  blocks_.erase(found);
  if (pinned) {
    std::free(memory - kGuardBytes);
  } else {
    used_ -= round_up(Bytes{block.bytes}, kAlignment);
  }
  if (!held) return Error{Errc::internal, "bytes next to an allocation were written to", "", ""};
  return block;
}

const DeviceMemory::Block* DeviceMemory::find(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  const auto after = blocks_.upper_bound(byte);
  if (after == blocks_.begin()) return nullptr;
  const Block& block = std::prev(after)->second;
  return byte - block.begin <= block.bytes ? &block : nullptr;
}

bool DeviceMemory::is_device(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  return byte >= mirror_ && byte < mirror_ + reserved_;
}

std::byte* DeviceMemory::real(const void* address) const {
  auto* const byte = static_cast<std::byte*>(const_cast<void*>(address));
  return is_device(byte) ? real_ + (byte - mirror_) : byte;
}

bool DeviceMemory::edges_hold(const Block& block) const {
  const std::byte* const begin = real(block.begin);
  return is_guard(begin - kGuardBytes) && is_guard(begin + block.bytes);
}

void DeviceMemory::poison(const std::byte* begin, std::int64_t bytes) {
  const bool remembers = bytes >= kLong && is_device(begin);
  if (remembers && !poisoned_.empty()) {
    const auto after = poisoned_.upper_bound(begin);
    if (after != poisoned_.begin() && std::prev(after)->first + std::prev(after)->second >= begin + bytes) return;
  }
  std::memset(real(begin), kPoison, static_cast<std::size_t>(bytes));
  if (!remembers) return;
  note_written(begin, bytes);
  poisoned_[begin] = bytes;
}

void DeviceMemory::note_written(const std::byte* begin, std::int64_t bytes) {
  auto next = poisoned_.upper_bound(begin);
  if (next != poisoned_.begin() && std::prev(next)->first + std::prev(next)->second > begin) --next;
  while (next != poisoned_.end() && next->first < begin + bytes) next = poisoned_.erase(next);
}

void DeviceMemory::open([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::int64_t bytes) const {
#if defined(SHARD_ADDRESS_SANITIZER)
  if (is_device(begin)) ASAN_UNPOISON_MEMORY_REGION(real(begin), static_cast<std::size_t>(bytes));
#endif
}

void DeviceMemory::close([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::int64_t bytes) const {
#if defined(SHARD_ADDRESS_SANITIZER)
  if (is_device(begin)) ASAN_POISON_MEMORY_REGION(real(begin), static_cast<std::size_t>(bytes));
#endif
}

void DeviceMemory::open_all() const {
  for (const auto& [begin, block] : blocks_) open(begin, block.bytes);
}

void DeviceMemory::close_all() const {
  for (const auto& [begin, block] : blocks_) close(begin, block.bytes);
}

}  // namespace shard::cuda::emulated
