// Do threads of an emulated block have CUDA's meaning: indices, shared memory, barriers, exchanges, atomics?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "executor/cuda/emulated/read_options.h"
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

TEST(EmulatedBlock, OneThreadOfTheHostAfterTheOtherRunsThem) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  float* const x = device.make(stream, std::vector<float>(1000, 1.0F));
  float* const sums = device.room<float>(4);
  for (int turn = 0; turn < 20; ++turn) {
    std::thread([&] {
      launch(stream, {.blocks_x = 4, .threads = 256, .shared_bytes = 1024}, block_sum_kernel, 1000, x, sums);
      EXPECT_THAT(device.read(stream, sums, 4), testing::ElementsAre(256, 256, 256, 232));
    }).join();
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

/// Each thread's exchanges with its warp: out[0..3] of each thread.
SHARD_KERNEL exchange_kernel(double* out) {
  const int t = static_cast<int>(threadIdx.x);
  const unsigned all = 0xFFFFFFFFU;
  out[4 * t] = __shfl_xor_sync(all, static_cast<double>(t), 5);
  out[4 * t + 1] = __shfl_down_sync(all, static_cast<double>(t), 3U);
  out[4 * t + 2] = static_cast<double>(__shfl_sync(all, static_cast<long long>(t) << 40, 7)) / 0x1p40;
  out[4 * t + 3] = static_cast<double>(__shfl_down_sync(all, static_cast<float>(t), 2U, 8));
}

TEST(EmulatedBlock, ExchangesGiveTheOtherLanesValues) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const std::uint32_t threads : {64U, 96U, 32U}) {
      EmulatedDevice device({.seed = seed});
      const Stream stream = device.stream();
      auto* const out = device.make(stream, std::vector<double>(std::size_t{4} * threads));
      launch(stream, {.threads = threads}, exchange_kernel, out);
      const std::vector<double> got = device.read(stream, out, std::size_t{4} * threads);
      for (std::uint32_t t = 0; t < threads; ++t) {
        const std::uint32_t lane = t % 32;
        const std::uint32_t warp = t - lane;
        EXPECT_EQ(got[4 * t], t ^ 5U);
        EXPECT_EQ(got[4 * t + 1], lane + 3 < 32 ? t + 3 : t);
        EXPECT_EQ(got[4 * t + 2], warp + 7);
        EXPECT_EQ(got[4 * t + 3], lane % 8 + 2 < 8 ? t + 2 : t);
      }
    }
  }
}

SHARD_KERNEL tail_kernel(std::int64_t n, std::int32_t* out) {
  auto* const seen = shared<std::int32_t>();
  const std::uint32_t t = threadIdx.x;
  seen[t] = static_cast<std::int32_t>(t);
  __syncthreads();
  const std::int32_t next = seen[(t + 1) % blockDim.x];
  __syncthreads();
  seen[t] = next + __shfl_down_sync(0xFFFFFFFFU, next, 1U);
  __syncthreads();
  if (t < n) out[t] = seen[t];
}

TEST(EmulatedBlock, OddBlockSizes) {
  for (const std::uint32_t threads : {1U, 2U, 31U, 33U, 37U, 100U, 1023U, 1024U}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      EmulatedDevice device({.seed = seed});
      const Stream stream = device.stream();
      auto* const out = device.make(stream, std::vector<std::int32_t>(threads));
      launch(stream, {.threads = threads, .shared_bytes = 4 * threads}, tail_kernel, threads, out);
      const std::vector<std::int32_t> got = device.read(stream, out, threads);
      for (std::uint32_t t = 0; t < threads; ++t) {
        const auto next = [&](std::uint32_t i) { return static_cast<std::int32_t>((i + 1) % threads); };
        if (t % 32 == 31) {
          EXPECT_EQ(got[t], 2 * next(t));  // the last lane keeps its own
        } else if (t + 1 < threads) {
          EXPECT_EQ(got[t], next(t) + next(t + 1));
        } else {
          EXPECT_EQ(got[t], next(t) - 1) << "a lane that is not there gives bits of ones";
        }
      }
    }
  }
}

SHARD_KERNEL unwritten_kernel(float* out) {
  out[blockIdx.x] = shared<float>()[threadIdx.x];
  shared<float>()[threadIdx.x] = 1;
}

TEST(EmulatedBlock, SharedMemoryHoldsNothingForEveryBlock) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  auto* const out = device.make(stream, std::vector<float>(3));
  launch(stream, {.blocks_x = 3, .shared_bytes = 4}, unwritten_kernel, out);
  for (const float each : device.read(stream, out, 3)) EXPECT_NE(each, each);
}

#if defined(__SANITIZE_THREAD__)
/// Threads read what others wrote, with or without a barrier between.
SHARD_KERNEL neighbour_kernel(bool waits, std::int32_t* out) {
  auto* const seen = shared<std::int32_t>();
  seen[threadIdx.x] = 1;
  if (waits) __syncthreads();
  out[threadIdx.x] = seen[(threadIdx.x + 1) % blockDim.x];
}

TEST(EmulatedBlockDeathTest, TheThreadSanitizerSeesAMissingBarrier) {
  const auto run = [](bool waits) {
    EmulatedDevice device;
    const Stream stream = device.stream();
    auto* const out = device.make(stream, std::vector<std::int32_t>(64));
    launch(stream, {.threads = 64, .shared_bytes = 256}, neighbour_kernel, waits, out);
    std::exit(device.finish(stream) ? 0 : 1);
  };
  EXPECT_EXIT(run(false), testing::ExitedWithCode(66), "data race.*\n.*\n.*neighbour_kernel");
  EXPECT_EXIT(run(true), testing::ExitedWithCode(0), "");
}
#else
/// Which thread came last: CUDA does not say.
SHARD_KERNEL race_kernel(std::int32_t* out) {
  out[0] = static_cast<std::int32_t>(threadIdx.x);
  __syncthreads();
  out[1] = static_cast<std::int32_t>(threadIdx.x);
}

TEST(EmulatedBlock, TheOrderOfThreadsComesFromTheSeed) {
  std::vector<std::vector<std::int32_t>> seen;
  for (const std::uint64_t seed : {1U, 2U, 3U, 1U}) {
    EmulatedDevice device({.seed = seed});
    const Stream stream = device.stream();
    auto* const out = device.make(stream, std::vector<std::int32_t>(2));
    launch(stream, {.threads = 256}, race_kernel, out);
    seen.push_back(device.read(stream, out, 2));
  }
  EXPECT_NE(seen[0][0], seen[1][0]);
  EXPECT_NE(seen[0][1], seen[1][1]);
  EXPECT_NE(seen[1], seen[2]);
  EXPECT_EQ(seen[0], seen[3]);
}

#endif

SHARD_KERNEL beyond_kernel(std::int64_t at) {
  shared<std::byte>()[at] = std::byte{1};
}

TEST(EmulatedBlock, AWriteBeyondSharedMemoryIsTold) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  launch(stream, {.shared_bytes = 40}, beyond_kernel, 39);
  EXPECT_TRUE(device.finish(stream));
  launch(stream, {.shared_bytes = 40}, beyond_kernel, 41);
  EXPECT_THAT(said(device.finish(stream)), testing::HasSubstr("beyond its shared memory"));
}

TEST(EmulatedBlock, SizesThatNoDeviceTakesAreTold) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  EXPECT_TRUE(device->begin_op(stream, {Rank{0}, OpId{3}, "gelu_forward", {}}));
  launch(stream, {.threads = 1025}, beyond_kernel, 0);
  EXPECT_THAT(said(device->end_op(stream)),
              testing::HasSubstr("rank 0 op 3 'gelu_forward': a kernel is launched with"));
}

/// What the card says to a launch with so much shared memory.
std::string said_of_shared(std::int32_t compute_capability, std::uint32_t bytes) {
  EmulatedOptions options;
  options.compute_capability = compute_capability;
  EmulatedDevice device(options);
  const Stream stream = device.stream();
  EXPECT_TRUE(device->begin_op(stream, {Rank{0}, OpId{3}, "attention", {}}));
  launch(stream, {.shared_bytes = bytes}, beyond_kernel, 0);
  return said(device->end_op(stream));
}

// CUDA's table of compute capabilities.
TEST(EmulatedBlock, ACardRefusesMoreSharedMemoryThanItHas) {
  for (const auto& [capability, kb] : {std::pair{80, 163U}, {86, 99U}, {89, 99U}, {90, 227U}, {120, 99U}, {0, 227U}}) {
    EXPECT_EQ(said_of_shared(capability, kb * 1024), "no error") << capability;
    EXPECT_THAT(said_of_shared(capability, kb * 1024 + 1), testing::HasSubstr("op 3 'attention'")) << capability;
  }
  EXPECT_THAT(said_of_shared(86, 100'000'000), testing::HasSubstr("sizes that no device takes"));
}

TEST(EmulatedBlock, ACardIsToldInWords) {
  EXPECT_EQ(read_emulated_options("card=8.6,seed=2", {}).value().compute_capability, 86);
  EXPECT_EQ(read_emulated_options("card=12.0", {}).value().compute_capability, 120);
  for (const char* const words : {"card=", "card=86", "card=8.", "card=8.x", "card=-1.0", "card=8.10"})
    EXPECT_FALSE(read_emulated_options(words, {})) << words;
}

SHARD_KERNEL early_exit_kernel() {
  if (threadIdx.x == 5) return;
  __syncthreads();
}
SHARD_KERNEL two_barriers_kernel() {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
SHARD_KERNEL mixed_exchanges_kernel(float* out) {
  out[0] = threadIdx.x % 2 == 0 ? __shfl_xor_sync(0xFFFFFFFFU, 1.0F, 1) : __shfl_down_sync(0xFFFFFFFFU, 1.0F, 1U);
}
SHARD_KERNEL half_at_barrier_kernel() {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncwarp();
  }
}
SHARD_KERNEL left_out_kernel() {
  __syncwarp(1U);
}

template <class... P, class... A>
void run_misused(std::uint32_t threads, void (*kernel)(P...), A... args) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  static_cast<void>(device->begin_op(stream, {Rank{2}, OpId{7}, "misused", {}}));
  launch(stream, {.threads = threads}, kernel, args...);
  static_cast<void>(device->end_op(stream));
  static_cast<void>(device.finish(stream));
}

TEST(EmulatedBlockDeathTest, MisuseNamesTheOp) {
  EXPECT_DEATH(run_misused(64, early_exit_kernel), "rank 2 op 7 'misused': a thread (ended while|waits at)");
  EXPECT_DEATH(run_misused(64, two_barriers_kernel), "rank 2 op 7 'misused': threads of a block wait at different");
  EXPECT_DEATH(run_misused(64, mixed_exchanges_kernel, static_cast<float*>(nullptr)),
               "lanes of a warp take part in different exchanges");
  EXPECT_DEATH(run_misused(64, half_at_barrier_kernel), "some threads wait at __syncthreads");
  EXPECT_DEATH(run_misused(2, left_out_kernel), "whose mask leaves it out");
}

}  // namespace
}  // namespace shard::cuda
