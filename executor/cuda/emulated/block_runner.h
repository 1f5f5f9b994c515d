// Runs a kernel's blocks: one thread after another, each until it ends or waits, in an order drawn from a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "executor/cuda/emulated/block.h"

namespace shard::cuda::emulated {

class BlockRunner {
 public:
  explicit BlockRunner(std::uint64_t seed);
  ~BlockRunner();

  struct Sizes {
    Index grid;
    std::uint32_t threads = 1;
    std::uint32_t shared_bytes = 0;
  };
  static constexpr std::uint32_t kMostThreads = 1024;
  static constexpr std::uint32_t kMostSharedBytes = 227 * 1024;

  /// Whether CUDA would take the sizes.
  [[nodiscard]] static bool takes(const Sizes& sizes);

  /// Calls thread() for each thread of each block. A misuse of barriers or exchanges aborts the program with a message
  /// that begins with `what`. False where a block wrote beyond its shared memory.
  [[nodiscard]] bool run(const Sizes& sizes, const std::function<void()>& thread, std::string_view what);

 private:
  friend void wait_for_block(const Where& where);
  friend std::uint64_t exchange(Exchange how, std::uint32_t mask, std::uint64_t value, std::uint32_t number,
                                std::uint32_t width, const Where& where);
  friend std::byte* shared_memory();
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::cuda::emulated
