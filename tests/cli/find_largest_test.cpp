// Does the search of --find end at the largest number that fits, and say what stopped it?
#include "sim/commands/find_largest.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace shard::commands {
namespace {

TEST(FindLargest, EndsAtTheLastThatFits) {
  std::mt19937 random(7);
  for (int run = 0; run < 500; ++run) {
    const std::int64_t step = std::int64_t{1} << random() % 8;
    const std::int64_t last = random() % 5000;
    std::set<std::int64_t> asked;
    const Result<Largest> found = find_largest(step, [&](std::int64_t n) -> Result<bool> {
      EXPECT_TRUE(asked.insert(n).second) << n << " is asked for twice";
      EXPECT_EQ(n % step, 0);
      return n <= last;
    });
    ASSERT_TRUE(found);
    EXPECT_EQ(found->value, last / step * step);
    EXPECT_FALSE(found->contradiction);
    EXPECT_LE(asked.size(), 26U);  // twice the bits of 5000
  }
}

TEST(FindLargest, SaysWhyALargerOneCannotBe) {
  const Result<Largest> found = find_largest(1, [](std::int64_t n) -> Result<bool> {
    if (n > 1024) return Error{Errc::contradiction, "the model has 1024 positions", "", ""};
    return true;
  });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, 1024);
  ASSERT_TRUE(found->contradiction);
  EXPECT_EQ(found->contradiction->what, "the model has 1024 positions");
}

TEST(FindLargest, MemoryIsTheReasonWhereItEndsBeforeAContradiction) {
  const Result<Largest> found = find_largest(1, [](std::int64_t n) -> Result<bool> {
    if (n > 20) return Error{Errc::contradiction, "no", "", ""};
    return n <= 13;
  });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, 13);
  EXPECT_FALSE(found->contradiction);
}

TEST(FindLargest, WhatIsWrongWithTheFirstIsTheError) {
  const Result<Largest> found = find_largest(1, [](std::int64_t) -> Result<bool> {
    return Error{Errc::contradiction, "stage 7", "", ""};
  });
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().what, "stage 7");
}

TEST(FindLargest, ZeroWhereNotEvenTheFirstFits) {
  const Result<Largest> found = find_largest(1, [](std::int64_t) -> Result<bool> { return false; });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, 0);
}

}  // namespace
}  // namespace shard::commands
