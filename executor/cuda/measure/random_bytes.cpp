// Copies of one pinned block of random numbers.
#include "executor/cuda/measure/random_bytes.h"

#include <algorithm>
#include <cstring>

namespace shard::cuda {

Result<std::byte*> random_memory(Api& api, const Stopwatch& watch, Bytes bytes) {
  const std::int64_t block = std::min<std::int64_t>(bytes.count(), std::int64_t{8} << 20);
  const Result<std::byte*> pinned = api.allocate_pinned(Bytes{block});
  if (!pinned) return pinned.error();
  const Result<std::byte*> memory = api.allocate(bytes);
  if (!memory) return memory.error();
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i + 2 <= block; i += 2) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
    // Sign and ten bits at random; 0x3c00 is 1 in fp16 and 2^-7 in bf16 and, as the upper half, in fp32.
    const auto half = static_cast<std::uint16_t>(0x3c00U | ((state >> 33U) & 0x83ffU));
    std::memcpy(*pinned + i, &half, sizeof half);
  }
  Result<void> done;
  for (std::int64_t at = 0; at < bytes.count() && done; at += block)
    done = api.copy(watch.stream(), *memory + at, *pinned, std::min(block, bytes.count() - at));
  if (done) done = watch.finish();
  api.free_pinned(*pinned);
  if (!done) return done.error();
  return *memory;
}

}  // namespace shard::cuda
