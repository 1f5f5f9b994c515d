// What a thread of an emulated block can ask for: who it is, shared memory, barriers, exchanges within its warp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shard::cuda::emulated {

struct Index {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t z = 0;
};

/// A line of a kernel's source.
struct Where {
  const char* file = "";
  int line = 0;
};

/// What lanes of a warp do together; the number that goes with it.
enum class Exchange : std::uint8_t {
  nothing,  ///< they wait for each other
  across,   ///< from lane ^ number
  down,     ///< from lane + number
  from,     ///< from lane `number`
};

/// Waits for all threads of the block.
void wait_for_block(const Where& where);

/// Waits for the lanes of `mask` that have not ended, and gives the value of another one.
std::uint64_t exchange(Exchange how, std::uint32_t mask, std::uint64_t value, std::uint32_t number, std::uint32_t width,
                       const Where& where);

/// Of the running block.
[[nodiscard]] std::byte* shared_memory();

}  // namespace shard::cuda::emulated

namespace shard::cuda {

// Of the thread that runs; CUDA's names.
extern constinit thread_local emulated::Index threadIdx;
extern constinit thread_local emulated::Index blockIdx;
extern constinit thread_local emulated::Index blockDim;
extern constinit thread_local emulated::Index gridDim;

}  // namespace shard::cuda
