// Do threads of an emulated block have CUDA's meaning: indices, shared memory, barriers, exchanges, atomics?
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/cuda/emulated_support.h"

namespace shard::cuda {
namespace {

/// out[block] = sum of the block's elements, by a tree in shared memory whose last 32 go by exchanges.
SHARD_KERNEL block_sum_kernel(std::int64_t n, const float* x, float* out) {
  auto* const sums = shared<float>();
  const std::int64_t i = first_element();
  sums[threadIdx.x] = i < n ? x[i] : 0.0F;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half >= 32; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x >= 32) return;
  float sum = sums[threadIdx.x];
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, lane);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

TEST(EmulatedBlock, SumsByTreesWhateverTheOrderOfThreads) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EmulatedDevice device({.seed = seed});
    const Stream stream = device.stream();
    std::vector<float> values(1000);
    std::iota(values.begin(), values.end(), 1.0F);
    float* const x = device.make(stream, values);
    float* const sums = device.make(stream, std::vector<float>(4));
    launch(stream, {.blocks_x = 4, .threads = 256, .shared_bytes = 1024}, block_sum_kernel, 1000, x, sums);
    const std::vector<float> got = device.read(stream, sums, 4);
    for (std::size_t block = 0; block < 4; ++block) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(256 * block);
      const auto last = block == 3 ? values.end() : first + 256;
      EXPECT_EQ(got[block], std::accumulate(first, last, 0.0F)) << "seed " << seed << " block " << block;
    }
  }
}

SHARD_KERNEL count_kernel(std::int64_t n, unsigned long long* count, long long* least) {
  for (std::int64_t i = first_element(); i < n; i += element_stride()) {
    atomicAdd(count, 1ULL);
    atomicMin(least, static_cast<long long>(7 - i));
  }
}

TEST(EmulatedBlock, EveryElementHasAThread) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  auto* const count = device.make(stream, std::vector<unsigned long long>{5});
  auto* const least = device.make(stream, std::vector<long long>{100});
  launch(stream, {.blocks_x = 3, .threads = 37}, count_kernel, 1001, count, least);
  EXPECT_EQ(device.read(stream, count, 1)[0], 1006U);
  EXPECT_EQ(device.read(stream, least, 1)[0], 7 - 1000);
}

}  // namespace
}  // namespace shard::cuda
