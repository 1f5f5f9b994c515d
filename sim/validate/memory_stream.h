// The allocations and frees of one rank of a framework, given one by one to the caching allocator's model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/like/pytorch/caching_allocator.h"
#include "sim/like/pytorch/linux_device.h"
#include "traces/base/units.h"

namespace shard::validate {

/// CUDA streams, as the allocator tells them apart: what is freed on one is not reused by another.
enum class Queue : std::uint8_t { main, gather, reduce };

/// A tensor's memory; 0: none.
using Held = std::uint32_t;

/// Counts holders, so that memory goes when the last reference does, as Python's and autograd's do.
class MemoryStream {
 public:
  explicit MemoryStream(std::optional<Bytes> capacity) : device_(capacity), allocator_(device_) {}

  /// Held once. No bytes: no memory, and nothing to drop.
  [[nodiscard]] Held take(std::int64_t bytes, Queue queue = Queue::main);
  void hold(Held held);
  void drop(Held held);
  /// Taken and dropped at once.
  void pass(std::int64_t bytes, Queue queue = Queue::main) { drop(take(bytes, queue)); }
  /// Nobody else holds it.
  [[nodiscard]] bool alone(Held held) const { return held == 0 || tensors_[held - 1].holders == 1; }
  [[nodiscard]] std::int64_t bytes(Held held) const { return held == 0 ? 0 : tensors_[held - 1].bytes; }

  /// A request was refused; all after it counts as if nothing were taken.
  [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }
  [[nodiscard]] const AllocatorStatistics& statistics() const { return allocator_.statistics(); }

 private:
  struct Tensor {
    BlockId block;
    std::int64_t bytes = 0;
    std::int32_t holders = 0;
  };
  LinuxDevice device_;
  CachingAllocator allocator_;
  std::vector<Tensor> tensors_;
  std::vector<Held> unused_;
  bool out_of_memory_ = false;
};

}  // namespace shard::validate
