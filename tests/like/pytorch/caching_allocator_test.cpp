// Does the allocator model follow its published rules, and keep its books, whatever the sequence?
#include "sim/like/pytorch/caching_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace shard {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

BlockId must(Result<BlockId> block) {
  EXPECT_TRUE(block) << to_string(block.error());
  return block ? *block : BlockId{};
}

class CachingAllocatorTest : public testing::Test {
 protected:
  SimulatedDevice device;
  CachingAllocator allocator{device};

  BlockId take(std::int64_t bytes, AllocatorStream stream = 0) {
    return must(allocator.allocate(Bytes{bytes}, stream));
  }
  std::int64_t real(std::int64_t bytes) { return allocator.bytes(take(bytes)).count(); }
  std::int64_t reserved() { return allocator.statistics().reserved.current.count(); }
  std::int64_t allocated() { return allocator.statistics().allocated.current.count(); }
};

TEST_F(CachingAllocatorTest, RequestsRoundTo512) {
  EXPECT_EQ(real(0), 512);
  EXPECT_EQ(real(1), 512);
  EXPECT_EQ(real(512), 512);
  EXPECT_EQ(real(513), 1024);
}

TEST_F(CachingAllocatorTest, SegmentSizesFollowTheRequest) {
  const auto segment = [&](std::int64_t bytes) {
    return allocator.segment_bytes(allocator.rounded(Bytes{bytes})).count();
  };
  EXPECT_EQ(segment(kMiB), 2 * kMiB);
  EXPECT_EQ(segment(kMiB + 1), 20 * kMiB);
  EXPECT_EQ(segment(10 * kMiB - 512), 20 * kMiB);
  EXPECT_EQ(segment(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(segment(10 * kMiB + 1), 12 * kMiB);
}

TEST_F(CachingAllocatorTest, ALargeBlockIsSplitOnlyWhenMoreThanOneMiBIsLeft) {
  EXPECT_EQ(real(13 * kMiB), 14 * kMiB);  // exactly 1 MiB left: kept whole
  EXPECT_EQ(real(13 * kMiB - 512), 14 * kMiB - kMiB - 512);
}

TEST_F(CachingAllocatorTest, ASmallBlockIsSplitDownToTheLastUnit) {
  const BlockId first = take(kMiB);
  const BlockId second = take(kMiB - 512);
  EXPECT_EQ(allocator.address(second), allocator.address(first) + kMiB);
  EXPECT_EQ(real(512), 512);
  EXPECT_EQ(reserved(), 2 * kMiB);
}

TEST_F(CachingAllocatorTest, BestFitTakesTheSmallestThenTheLowest) {
  std::vector<BlockId> blocks;
  for (const std::int64_t bytes : {4096, 512, 1024, 512, 1024, 512}) blocks.push_back(take(bytes));
  const Address lower = allocator.address(blocks[2]);
  const Address higher = allocator.address(blocks[4]);
  const Address biggest = allocator.address(blocks[0]);
  for (const std::size_t i : {4u, 0u, 2u}) ASSERT_TRUE(allocator.free(blocks[i]));
  EXPECT_EQ(allocator.address(take(1024)), lower);
  EXPECT_EQ(allocator.address(take(1024)), higher);
  EXPECT_EQ(allocator.address(take(1024)), biggest);
}

TEST_F(CachingAllocatorTest, FreedNeighboursMerge) {
  const BlockId a = take(6 * kMiB);
  const BlockId b = take(6 * kMiB);
  const BlockId c = take(6 * kMiB);
  ASSERT_TRUE(allocator.free(a));
  ASSERT_TRUE(allocator.free(c));
  EXPECT_EQ(allocator.snapshot().front().blocks.size(), 3u);  // c joined the rest of the segment
  ASSERT_TRUE(allocator.free(b));
  EXPECT_EQ(allocator.snapshot().front().blocks.size(), 1u);
  EXPECT_EQ(allocated(), 0);
  EXPECT_EQ(reserved(), 20 * kMiB);
}

TEST_F(CachingAllocatorTest, PeaksAreThoseOfBlocksAndReset) {
  const BlockId a = take(16000000);  // rounds to 16 MiB, less than 1 MiB would be left
  EXPECT_EQ(allocator.statistics().allocated.peak.count(), 16 * kMiB);
  ASSERT_TRUE(allocator.free(a));
  allocator.reset_peak();
  EXPECT_EQ(allocator.statistics().allocated.peak.count(), 0);
  EXPECT_EQ(allocator.statistics().reserved.peak.count(), 16 * kMiB);
  EXPECT_EQ(allocator.empty_cache().count(), 16 * kMiB);
  EXPECT_EQ(reserved(), 0);
}

// PyTorch's ZeroRedundancyOptimizer recipe: 20 x Linear(2000, 2000), fp32, batch 20, DDP, Adam. It publishes, in MB,
// 335 after the local model, 656 after DDP, 992 before step, 1697 after step, and 1361 with sharded optimizer state.
TEST_F(CachingAllocatorTest, TheZeroRedundancyRecipe) {
  constexpr std::int64_t kWeight = 2000 * 2000 * 4, kBias = 2000 * 4, kBatch = 20 * 2000 * 4;
  std::vector<std::int64_t> parameters;  // in forward order
  for (int layer = 0; layer < 20; ++layer) parameters.insert(parameters.end(), {kWeight, kBias});
  const auto peak = [&] { return allocator.statistics().allocated.peak.count(); };
  // DDP closes a bucket as soon as it holds the limit or more.
  const auto bucket_sizes = [&](std::int64_t first_limit, std::int64_t limit) {
    std::vector<std::int64_t> sizes{0};
    for (const std::int64_t bytes : parameters) {
      if (sizes.back() >= (sizes.size() == 1 ? first_limit : limit)) sizes.push_back(0);
      sizes.back() += bytes;
    }
    return sizes;
  };

  for (const std::int64_t bytes : parameters) take(bytes);
  EXPECT_EQ(peak(), 335708160);

  std::vector<BlockId> broadcast;
  for (const std::int64_t bytes : bucket_sizes(250 * kMiB, 250 * kMiB)) broadcast.push_back(take(bytes));
  EXPECT_EQ(broadcast.size(), 2u);
  EXPECT_EQ(peak(), 656572416);
  for (const BlockId block : broadcast) ASSERT_TRUE(allocator.free(block));

  for (const std::int64_t bytes : bucket_sizes(kMiB, 25 * kMiB)) take(bytes);
  for (const std::int64_t bytes : parameters) take(bytes);  // gradients, apart from the buckets
  take(kBatch);                                             // output
  take(kBatch);                                             // labels
  const BlockId input = take(kBatch);
  const BlockId entering = take(kBatch);  // the gradient of layer 0's output
  EXPECT_EQ(peak(), 992921600);

  ASSERT_TRUE(allocator.free(input));
  ASSERT_TRUE(allocator.free(entering));
  std::vector<BlockId> temporaries;
  const auto adam = [&](std::size_t count) {  // state, and two temporaries of a weight's size
    for (std::size_t i = 0; i < count; ++i) {
      take(parameters[i]);
      take(parameters[i]);
    }
    for (int i = 0; i < 2; ++i) temporaries.push_back(take(kWeight));
  };
  adam(parameters.size() / 2);  // the greedy partition gives each of two ranks ten weights and ten biases
  EXPECT_EQ(peak(), 1361863680);
  for (const BlockId block : temporaries) ASSERT_TRUE(allocator.free(block));
  adam(parameters.size() / 2);
  EXPECT_EQ(peak(), 1697571840);
}

TEST_F(CachingAllocatorTest, ARequestedFreeNoLongerCountsButKeepsItsBytes) {
  const BlockId a = take(512);
  const Address address = allocator.address(a);
  ASSERT_TRUE(allocator.request_free(a));
  EXPECT_EQ(allocated(), 0);
  EXPECT_EQ(allocator.statistics().active.current.count(), 512);
  EXPECT_NE(allocator.address(take(512)), address);
  ASSERT_TRUE(allocator.free(a));
  EXPECT_EQ(allocator.statistics().active.current.count(), 512);
  EXPECT_EQ(allocator.address(take(512)), address);
}

TEST_F(CachingAllocatorTest, AFreedNameIsRefusedForEver) {
  const BlockId a = take(512);
  ASSERT_TRUE(allocator.free(a));
  const BlockId b = take(512);
  EXPECT_NE(a, b);
  const Result<void> again = allocator.free(a);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::internal);
  EXPECT_FALSE(allocator.request_free(a));
  EXPECT_TRUE(allocator.free(b));
}

TEST(CachingAllocator, AFullDeviceEmptiesTheCacheAndRetries) {
  SimulatedDevice device(Bytes{40 * kMiB});
  CachingAllocator allocator(device);
  const BlockId a = must(allocator.allocate(Bytes{30 * kMiB}));
  ASSERT_TRUE(allocator.free(a));
  const BlockId b = must(allocator.allocate(Bytes{32 * kMiB}));
  EXPECT_EQ(allocator.statistics().reserved.current.count(), 32 * kMiB);
  const Result<BlockId> c = allocator.allocate(Bytes{10 * kMiB});
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, Errc::does_not_fit);
  EXPECT_TRUE(allocator.free(b));
}

TEST(CachingAllocator, NamesOfRuleSets) {
  for (const char* name : {"pytorch", "pytorch@1.8", "pytorch@1.13.1", "pytorch@2", "pytorch@2.7.0"}) {
    EXPECT_TRUE(caching_allocator_options(name)) << name;
  }
  for (const char* name :
       {"", "torch", "pytorch1.8", "pytorch@", "pytorch@1.7", "pytorch@1", "pytorch@1x", "pytorch@2.x"}) {
    const Result<CachingAllocatorOptions> options = caching_allocator_options(name);
    ASSERT_FALSE(options) << name;
    EXPECT_EQ(options.error().code, Errc::usage);
  }
}

// Properties over random sequences: blocks tile their segments, no two free neighbours, books equal the blocks, and
// every choice is the one that a search over all free blocks makes.
TEST(CachingAllocator, BooksAndChoicesHoldOverRandomSequences) {
  std::mt19937 random(7);
  SimulatedDevice device;
  CachingAllocator allocator(device);
  std::vector<BlockId> live;
  for (int i = 0; i < 3000; ++i) {
    if (!live.empty() && random() % 100 < 48) {
      const std::size_t pick = random() % live.size();
      ASSERT_TRUE(allocator.free(live[pick]));
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(pick));
    } else if (random() % 200 == 0) {
      allocator.empty_cache();
    } else {
      const Bytes requested{static_cast<std::int64_t>(random() % (std::uint64_t{1} << (5 + random() % 21)))};
      const AllocatorStream stream = random() % 3;
      const Bytes bytes = allocator.rounded(requested);
      std::pair<std::int64_t, Address> best{INT64_MAX, 0};
      for (const SegmentView& segment : allocator.snapshot()) {
        if (segment.stream != stream || segment.pool != allocator.pool_of(bytes)) continue;
        for (const BlockView& block : segment.blocks) {
          if (block.state == BlockState::free && block.bytes >= bytes) {
            best = std::min(best, std::pair{block.bytes.count(), block.address});
          }
        }
      }
      const std::int64_t segments = allocator.statistics().segment_count;
      live.push_back(must(allocator.allocate(requested, stream)));
      if (best.first != INT64_MAX) {
        ASSERT_EQ(allocator.address(live.back()), best.second);
      } else {
        ASSERT_EQ(allocator.statistics().segment_count, segments + 1);
      }
    }
    if (i % 10 != 0) continue;
    Bytes reserved{0}, allocated{0};
    for (const SegmentView& segment : allocator.snapshot()) {
      Address cursor = segment.address;
      bool previous_free = false;
      for (const BlockView& block : segment.blocks) {
        ASSERT_EQ(block.address, cursor);
        ASSERT_GT(block.bytes.count(), 0);
        const bool free = block.state == BlockState::free;
        ASSERT_FALSE(free && previous_free);
        previous_free = free;
        if (!free) allocated += block.bytes;
        cursor += static_cast<Address>(block.bytes.count());
      }
      reserved += segment.bytes;
    }
    ASSERT_EQ(reserved, allocator.statistics().reserved.current);
    ASSERT_EQ(allocated, allocator.statistics().allocated.current);
  }
  for (const BlockId block : live) ASSERT_TRUE(allocator.free(block));
  allocator.empty_cache();
  EXPECT_TRUE(allocator.snapshot().empty());
  EXPECT_EQ(allocator.statistics().reserved.current.count(), 0);
}

}  // namespace
}  // namespace shard
