// Is the stand-in's device memory address space that is given out once, within the card's size?
#include "profiler/standin/device_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "profiler/standin/card.h"
#include "profiler/standin/expected.h"
#include "profiler/standin/host_memory.h"
#include "profiler/standin/values.h"

namespace shard::standin {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// What a kernel found is read once, as a number of 4 or 8 bytes, and nothing that the host knows gives way to it.
TEST(DeviceMemory, ANumberThatIsExpectedIsReadOnce) {
  auto* const memory = static_cast<std::byte*>(allocate(kMiB));
  const std::int64_t known = 5;
  std::int64_t read = -1;
  expect(7);
  standin::copy(memory, &known, sizeof known);
  standin::copy(&read, memory, sizeof read);
  EXPECT_EQ(read, 5);
  std::byte other[24];
  standin::copy(other, memory + 64, sizeof other);
  EXPECT_EQ(other[0], std::byte{0}) << "of another length";
  std::int32_t found = -1;
  standin::copy(&found, memory + 64, sizeof found);
  EXPECT_EQ(found, 7);
  standin::copy(&found, memory + 64, sizeof found);
  EXPECT_EQ(found, 0);
  EXPECT_TRUE(release(memory));
}

/// Ranks' objects are of several lengths, in buffers as long as the longest: what is known of one goes with a copy.
void copy_known_begin(std::size_t length) {
  auto* const memory = static_cast<std::byte*>(allocate(kMiB));
  auto* const other = static_cast<std::byte*>(allocate(kMiB));
  constexpr std::size_t kBuffer = 10'000;
  std::array<std::byte, kBuffer> object{}, read{};
  object.fill(std::byte{7});
  standin::copy(other, object.data(), kBuffer);
  standin::copy(memory, object.data(), length);
  standin::copy(other, memory, kBuffer);
  read.fill(std::byte{9});
  standin::copy(read.data(), other, kBuffer);
  EXPECT_EQ(std::ranges::count(read, std::byte{7}), length);
  EXPECT_EQ(std::ranges::count(read, std::byte{0}), kBuffer - length)
      << "what was there before, or in the host's buffer";
  EXPECT_EQ(read[length - 1], std::byte{7});
  EXPECT_FALSE(has_values(other, kBuffer));
  EXPECT_FALSE(values_of(other, kBuffer));
  EXPECT_TRUE(values_of(other, kBuffer, /*known_begin=*/true));
  EXPECT_TRUE(release(memory) && release(other));
}

TEST(DeviceMemory, TheKnownBeginOfABufferIsCopied) {
  copy_known_begin(1);
  copy_known_begin(300);
  copy_known_begin(5000);
}

TEST(DeviceMemory, IsGivenOutOnceAndWithinTheCard) {
  std::mt19937_64 random(3);
  std::map<std::uintptr_t, std::size_t> live;
  std::size_t used = used_bytes();
  for (int i = 0; i < 20'000; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      const auto block = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      ASSERT_TRUE(release(reinterpret_cast<void*>(block->first)));
      used -= block->second;
      live.erase(block);
    } else {
      const std::size_t bytes = 1 + random() % (2000 * kMiB);
      const std::size_t size = (bytes + 2 * kMiB - 1) / (2 * kMiB) * 2 * kMiB;
      void* const pointer = allocate(bytes);
      ASSERT_EQ(pointer == nullptr, used + size > card().bytes);
      if (pointer == nullptr) continue;
      const auto address = reinterpret_cast<std::uintptr_t>(pointer);
      EXPECT_EQ(address % (2 * kMiB), 0u);
      const auto next = live.lower_bound(address);
      EXPECT_TRUE(next == live.end() || address + size <= next->first);
      EXPECT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= address);
      live[address] = size;
      used += size;
    }
    ASSERT_EQ(used_bytes(), used);
  }
  for (const auto& [address, size] : live) EXPECT_TRUE(release(reinterpret_cast<void*>(address)));
}

TEST(DeviceMemory, ReadsAsZerosUntilItIsWrittenTo) {
  void* const pointer = allocate(8 * kMiB);
  ASSERT_NE(pointer, nullptr);
  EXPECT_TRUE(is_device(pointer));
  int value = 7, seen = -1;
  copy(&seen, pointer, sizeof(seen));
  EXPECT_EQ(seen, 0);
  copy(pointer, &value, sizeof(value));
  copy(&seen, pointer, sizeof(seen));
  EXPECT_EQ(seen, 7);
  fill(pointer, 0, sizeof(value));
  copy(&seen, pointer, sizeof(seen));
  EXPECT_EQ(seen, 0);
  copy(pointer, &value, sizeof(value));
  ASSERT_TRUE(release(pointer));
  void* const again = allocate(8 * kMiB);
  EXPECT_EQ(again, pointer) << "the lowest gap that fits";
  copy(&seen, again, sizeof(seen));
  EXPECT_EQ(seen, 0) << "what was written is forgotten";
  EXPECT_TRUE(release(again));
  EXPECT_FALSE(release(again));
  EXPECT_FALSE(is_device(&value));
}

TEST(DeviceMemory, WhatAKernelWroteToReadsAsZeros) {
  int* const pointer = static_cast<int*>(allocate(kMiB));
  const int given[3] = {3, 5, 7};
  int seen[3] = {-1, -1, -1};
  copy(pointer, given, sizeof(given));
  copy(pointer + 100, pointer, sizeof(given));
  written_by_kernel(pointer + 1, 1);
  copy(seen, pointer, sizeof(seen));
  EXPECT_EQ(seen[2], 0) << "all that was copied there at once";
  copy(seen, pointer + 100, sizeof(seen));
  EXPECT_EQ(seen[2], 7);
  copy(pointer + 100, pointer, sizeof(given));
  copy(seen, pointer + 100, sizeof(seen));
  EXPECT_EQ(seen[2], 0) << "a copy of what has no value";
  EXPECT_TRUE(release(pointer));
}

TEST(DeviceMemory, ANumberIsNotOfALongPieceThatWasThereBefore) {
  char* const pointer = static_cast<char*>(allocate(kMiB));
  const std::vector<char> weights(8192, 1);
  std::vector<char> seen(8192);
  copy(pointer, weights.data(), weights.size());
  copy(seen.data(), pointer, seen.size());
  EXPECT_EQ(seen, weights);
  int loss = -1;
  copy(&loss, pointer, sizeof(loss));
  EXPECT_EQ(loss, 0);
  EXPECT_TRUE(release(pointer));
}

TEST(Values, PiecesSideBySideAreKnownTogether) {
  Values values;
  void* const pointer = allocate(kMiB);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (const std::size_t at : {0U, 8U, 16U, 32U}) ASSERT_TRUE(values.note(address + at, 8));
  EXPECT_TRUE(values.knows(address, 24));
  EXPECT_TRUE(values.knows(address + 4, 12));
  EXPECT_FALSE(values.knows(address, 32));
  EXPECT_FALSE(values.knows(address + 16, 24)) << "a gap";
  values.drop(address, 64);
  EXPECT_TRUE(release(pointer));
}

TEST(Values, DropsPartsOfPieces) {
  std::vector<char> room(300, 1);
  const auto at = reinterpret_cast<std::uintptr_t>(room.data());
  Values values;
  EXPECT_TRUE(values.note(at, 100));
  EXPECT_TRUE(values.note(at + 100, 200));
  values.drop(at + 50, 100);
  EXPECT_TRUE(values.knows(at, 50) && values.knows(at + 150, 150));
  EXPECT_FALSE(values.knows(at, 51) || values.knows(at + 149, 2) || values.knows(at + 60, 1));
  for (std::size_t i = 0; i < room.size(); ++i) EXPECT_EQ(room[i], i < 50 || i >= 150 ? 1 : 0) << i;
  EXPECT_FALSE(Values().note(at, std::size_t{257} << 20)) << "more than all may be";
  values.drop(at, room.size());
  EXPECT_TRUE(values.empty());
}

TEST(HostMemory, IsPinnedWhereItWasAllocatedSo) {
  char* const pointer = static_cast<char*>(allocate_pinned(10'000));
  ASSERT_NE(pointer, nullptr);
  EXPECT_TRUE(is_pinned(pointer) && is_pinned(pointer + 9'999));
  EXPECT_FALSE(is_pinned(pointer + 10'000) || is_pinned(pointer - 1));
  EXPECT_TRUE(release_pinned(pointer));
  EXPECT_FALSE(is_pinned(pointer) || release_pinned(pointer));
  int own[4];
  pin(own, sizeof(own));
  EXPECT_TRUE(is_pinned(own + 3) && unpin(own));
  EXPECT_FALSE(is_pinned(own) || unpin(own));
}

TEST(DeviceMemory, CardsHaveRoomOfTheirOwn) {
  const std::size_t half = card().bytes / 2 + 2 * kMiB;
  void *const first = allocate(half, 0), *const second = allocate(half, 1);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(allocate(half, 1), nullptr);
  EXPECT_EQ(device_of(first), 0);
  EXPECT_EQ(device_of(static_cast<char*>(second) + 100), 1);
  EXPECT_FALSE(take(half, 1));
  EXPECT_TRUE(release(second));
  EXPECT_TRUE(take(half, 1));
  give_back(half, 1);
  EXPECT_EQ(used_bytes(1), 0u);
  EXPECT_TRUE(release(first));
}

}  // namespace
}  // namespace shard::standin
