// Do the time and the memory of packing grow as the events do? Work is counted, not timed.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "tests/memory/random_lifetimes.h"

namespace {

// Bytes that live on the heap, and the most there were.
std::atomic<std::int64_t> live_bytes{0};
std::atomic<std::int64_t> most_bytes{0};
constexpr std::size_t kHeader = alignof(std::max_align_t);

}  // namespace

void* operator new(std::size_t bytes) {
  auto* const block = static_cast<std::byte*>(std::malloc(bytes + kHeader));
  if (block == nullptr) throw std::bad_alloc();
  *reinterpret_cast<std::size_t*>(block) = bytes;
  live_bytes += static_cast<std::int64_t>(bytes);
  if (live_bytes > most_bytes) most_bytes = live_bytes.load();
  return block + kHeader;
}
// The sanitizers' run-time libraries have one of their own.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* at) noexcept {
  if (at == nullptr) return;
  auto* const block = static_cast<std::byte*>(at) - kHeader;
  live_bytes -= static_cast<std::int64_t>(*reinterpret_cast<std::size_t*>(block));
  std::free(block);
}
void operator delete(void* at, std::size_t) noexcept {
  operator delete(at);
}

namespace shard {
namespace {

struct Work {
  double steps = 0;
  double bytes = 0;
};

Work work_of(const Lifetimes& lifetimes) {
  const std::int64_t before = live_bytes;
  most_bytes = before;
  const Result<Packing> packing = pack(lifetimes.items, lifetimes.events);
  EXPECT_TRUE(packing);
  return {static_cast<double>(packing->steps), static_cast<double>(most_bytes - before)};
}

TEST(PackGrowth, StepsAreAFewPerEventAndLevelOfTheTree) {
  for (const bool gather : {false, true}) {
    for (const bool recompute : {false, true}) {
      for (const int layers : {100, 400, 1600}) {
        const Lifetimes lifetimes = transformer(layers, 1, gather, recompute, 1);
        const auto events = static_cast<double>(lifetimes.events.size());
        EXPECT_LT(work_of(lifetimes).steps, 16 * events * std::log2(events)) << layers;
      }
    }
  }
}

TEST(PackGrowth, TwiceTheLayersTakeTwiceTheMemory) {
  for (const bool gather : {false, true}) {
    for (const bool recompute : {false, true}) {
      const Work one = work_of(transformer(800, 1, gather, recompute, 1));
      const Work two = work_of(transformer(1600, 1, gather, recompute, 1));
      EXPECT_LT(two.bytes, 2.3 * one.bytes);
    }
  }
}

TEST(PackGrowth, SixteenHundredLayersTakeLessThan100Megabytes) {
  EXPECT_LT(work_of(transformer(1600, 1, true, false, 1)).bytes, 100e6);
}

TEST(PackGrowth, MoreMicroBatchesTakeWorkInProportion) {
  const Work four = work_of(transformer(24, 4, true, false, 1));
  const Work sixteen = work_of(transformer(24, 16, true, false, 1));
  EXPECT_LT(sixteen.steps, 5 * four.steps);
  EXPECT_LT(sixteen.bytes, 5 * four.bytes);
}

}  // namespace
}  // namespace shard
