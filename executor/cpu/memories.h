// The arenas of one rank: device memory, host memory and a file, each as large as the plan says and no larger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "sim/ir/plan.h"
#include "traces/base/result.h"

namespace shard::cpu {

/// Host memory is anonymous memory of its own, apart from the device's arena, so that a move is a real copy. The disk
/// is a file without a name in a directory of the user's: it is gone when the rank ends, however it ends.
class Memories {
 public:
  Memories() = default;
  Memories(const Memories&) = delete;
  Memories& operator=(const Memories&) = delete;
  Memories(Memories&& other) noexcept { *this = std::move(other); }
  Memories& operator=(Memories&& other) noexcept;
  ~Memories();

  /// `device` is the communicator's arena and outlives this. `disk_path`: an existing directory, needed where the plan
  /// puts anything on disk. Errors: does_not_fit where host memory or the file system lacks the room, cannot_create.
  /// `pinned`: memory for the plan's pinned arena, not owned; empty where the plan has none.
  [[nodiscard]] static Result<Memories> make(const plan::Plan& plan, std::span<std::byte> device,
                                             const std::string& disk_path, std::span<std::byte> pinned = {});

  /// Device, host or pinned.
  [[nodiscard]] std::byte* at(Memory memory, std::int64_t offset) const {
    return (memory == Memory::device ? device_ : memory == Memory::pinned ? pinned_ : host_).data() + offset;
  }
  [[nodiscard]] std::span<std::byte> device() const { return device_; }

  /// Whole transfers, Errc::io otherwise.
  [[nodiscard]] Result<void> read_disk(std::int64_t offset, std::span<std::byte> to) const;
  [[nodiscard]] Result<void> write_disk(std::int64_t offset, std::span<const std::byte> from) const;
  [[nodiscard]] Result<void> zero_disk(std::int64_t offset, std::int64_t bytes) const;

 private:
  std::span<std::byte> device_{};
  std::span<std::byte> host_{};
  std::span<std::byte> pinned_{};
  bool owns_host_ = false;
  int disk_ = -1;
  std::string disk_path_{};
};

}  // namespace shard::cpu
