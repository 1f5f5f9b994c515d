// Does whoever takes bytes learn of all that had them last, and of nobody else?
#include "sim/compile/given_back.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace shard::plan {
namespace {

TEST(NumberSet, NeighboursAreThoseOfAnOrderedSet) {
  std::mt19937 random(1);
  for (const std::size_t size : {1U, 2U, 63U, 64U, 65U, 4096U, 4097U, 300000U}) {
    NumberSet fast(size);
    std::set<std::size_t> slow;
    std::uniform_int_distribution<std::size_t> any(0, size - 1);
    for (int i = 0; i < 3000; ++i) {
      const std::size_t n = any(random);
      if (random() % 3 == 0) {
        fast.erase(n);
        slow.erase(n);
      } else {
        fast.insert(n);
        slow.insert(n);
      }
      const std::size_t q = any(random);
      const auto above = slow.lower_bound(q);
      ASSERT_EQ(fast.at_least(q), above == slow.end() ? size : *above) << "size " << size << ", after " << i;
      const auto behind = slow.upper_bound(q);
      ASSERT_EQ(fast.at_most(q), behind == slow.begin() ? size : *std::prev(behind)) << "size " << size;
    }
  }
}

TEST(NumberSet, AnEmptyOneHasNoNeighbours) {
  EXPECT_EQ(NumberSet(0).at_least(0), 0U);
  EXPECT_EQ(NumberSet(100).at_least(7), 100U);
  EXPECT_EQ(NumberSet(100).at_most(7), 100U);
}

TEST(RangeOwners, EveryPlaceHasItsLastOwner) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    const std::size_t places = 2 + random() % 200;
    RangeOwners ranges(places);
    std::vector<std::int32_t> owner_of(places, -1);  // of [place, place + 1)
    std::uniform_int_distribution<std::size_t> any(0, places - 1);
    for (std::int32_t owner = 0; owner < 200; ++owner) {
      std::size_t begin = any(random);
      std::size_t end = any(random);
      if (begin > end) std::swap(begin, end);
      std::set<std::int32_t> expected(owner_of.begin() + static_cast<std::ptrdiff_t>(begin),
                                      owner_of.begin() + static_cast<std::ptrdiff_t>(end));
      expected.erase(-1);
      std::set<std::int32_t> found;
      if (begin < end) ranges.for_each(begin, end, [&](std::int32_t o) { found.insert(o); });
      ASSERT_EQ(found, expected) << "round " << round << ", owner " << owner;
      if (begin == end) continue;
      ranges.assign(begin, end, owner);
      for (std::size_t p = begin; p < end; ++p) owner_of[p] = owner;
    }
  }
}

}  // namespace
}  // namespace shard::plan
