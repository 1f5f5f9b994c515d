// Do units keep quantities apart and sums exact?
#include "traces/base/units.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace shard {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};

TEST(Units, BytesAndElementsDoNotAdd) {
  static_assert(Addable<Bytes, Bytes>);
  static_assert(!Addable<Bytes, Elems>);
  EXPECT_EQ((Bytes{1} + Bytes{2}).count(), 3);
}

TEST(Units, RoundUpReachesTheNextMultipleOnly) {
  EXPECT_EQ(round_up(Elems{0}, 8).count(), 0);
  EXPECT_EQ(round_up(Elems{1}, 8).count(), 8);
  EXPECT_EQ(round_up(Elems{8}, 8).count(), 8);
  EXPECT_EQ(round_up(Elems{9}, 3).count(), 9);
}

}  // namespace
}  // namespace shard
