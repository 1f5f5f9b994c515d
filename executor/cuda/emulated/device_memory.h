// Memory of the emulated device and pinned memory: what is handed out, where it really is, and whether its edges hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::cuda::emulated {

/// Addresses handed out lie in a part of the address space that nobody can read, at a constant distance from the bytes
/// they stand for: arithmetic on them works, and following one on the host faults. Pinned memory is the host's own.
/// Around every allocation are guard zones; what is given out or taken back holds bytes of 0xFF, NaN in every type.
/// Under the address sanitizer nothing of the device can be touched but what a Window opens.
class DeviceMemory {
 public:
  static constexpr std::int64_t kAlignment = 512;
  static constexpr std::int64_t kGuardBytes = 512;

  [[nodiscard]] static Result<std::unique_ptr<DeviceMemory>> make(Bytes capacity);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  [[nodiscard]] Bytes capacity() const { return capacity_; }
  [[nodiscard]] Bytes used() const { return used_; }

  [[nodiscard]] Result<std::byte*> allocate(Bytes bytes);
  [[nodiscard]] Result<std::byte*> allocate_pinned(Bytes bytes);

  struct Block {
    const std::byte* begin = nullptr;  ///< as handed out
    std::int64_t bytes = 0;
    bool pinned = false;
    [[nodiscard]] bool holds(const std::byte* from, std::int64_t count) const {
      return from >= begin && count >= 0 && from - begin <= bytes && count <= bytes - (from - begin);
    }
  };
  /// Takes back what began at `memory`; says why not where nothing did, or where its guard zones were written to.
  [[nodiscard]] Result<Block> free(std::byte* memory, bool pinned);

  /// The allocation that `address` is in or one past the end of; null: of nobody here. The one it is in goes before the
  /// one that ends there.
  [[nodiscard]] const Block* find(const void* address) const;
  /// Whether the address is one of the device's, allocated or not.
  [[nodiscard]] bool is_device(const void* address) const;
  /// Where a handed-out address really is; of others, themselves.
  [[nodiscard]] std::byte* real(const void* address) const;

  /// Whether the guard zones of the allocation hold what they held.
  [[nodiscard]] bool edges_hold(const Block& block) const;

  /// Writes what is given out holds, too: 0xFF in every byte. A long range of the device that holds it and that nobody
  /// wrote to since is left as it is: workspaces are long, poisoned by every op, and written to by few.
  void poison(const std::byte* begin, std::int64_t bytes);
  /// Said of what is written to by anything but poison(), or of all.
  void note_written(const std::byte* begin, std::int64_t bytes);
  void note_all_written() { poisoned_.clear(); }

  /// While it lives these bytes can be touched: matters under the address sanitizer alone.
  void open(const std::byte* begin, std::int64_t bytes) const;
  void close(const std::byte* begin, std::int64_t bytes) const;
  void open_all() const;
  void close_all() const;

 private:
  DeviceMemory() = default;
  [[nodiscard]] std::optional<std::int64_t> place(std::int64_t bytes);
  static void hand_out(std::byte* real, std::int64_t bytes);

  Bytes capacity_{};
  Bytes used_{};
  std::int64_t reserved_ = 0;
  std::byte* real_ = nullptr;
  std::byte* mirror_ = nullptr;
  std::int64_t cursor_ = 0;                            // bytes that were freed are handed out again as late as can be
  std::map<const std::byte*, Block> blocks_;           // by their beginning
  std::map<const std::byte*, std::int64_t> poisoned_;  // long ranges by their beginning, which do not meet
};

}  // namespace shard::cuda::emulated
