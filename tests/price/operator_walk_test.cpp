// Which operator does a call belong to?
#include <gtest/gtest.h>

#include "sim/price/operator_walk.h"

namespace shard::price {
namespace {

using import::KinetoOperator;

KinetoOperator made(const char* name, std::int64_t begin, std::int64_t end, std::int64_t thread, bool tensors) {
  KinetoOperator op;
  op.name = name;
  op.begin_ns = begin;
  op.end_ns = end;
  op.thread = thread;
  if (tensors) op.inputs.push_back({.sizes = {2, 3}, .strides = {}, .type = "float", .argument = 0});
  return op;
}

TEST(OperatorWalk, FindsTheInnermostWithTensorsOfEachThread) {
  // In the order in which a profiler may write them, which is no order.
  const std::vector<KinetoOperator> operators{
      made("aten::mm", 120, 180, 1, true), made("aten::linear", 100, 200, 1, true),
      made("aten::resolve_conj", 125, 130, 1, false), made("MmBackward0", 100, 300, 2, false)};
  OperatorWalk walk(operators);
  ASSERT_TRUE(walk.to(1, 127));
  EXPECT_EQ(walk.innermost_with_tensors(), 0);
  EXPECT_EQ(walk.outermost(), 1);
  EXPECT_EQ(walk.begun(), 3);
  ASSERT_TRUE(walk.to(1, 190));
  EXPECT_EQ(walk.innermost_with_tensors(), 1);
  EXPECT_EQ(walk.begun(), 0);
  ASSERT_TRUE(walk.to(2, 250));
  EXPECT_EQ(walk.innermost_with_tensors(), 3) << "the innermost, where none has tensors";
  ASSERT_TRUE(walk.to(1, 250));
  EXPECT_EQ(walk.innermost_with_tensors(), -1);
  EXPECT_EQ(walk.outermost(), -1);
  EXPECT_FALSE(walk.to(7, 250)) << "a thread without operators";
}

TEST(OperatorWalk, KnowsAnOperatorThatEndsWhereTheNextBegins) {
  const std::vector<KinetoOperator> operators{made("aten::add", 100, 200, 1, true),
                                              made("aten::mul", 201, 300, 1, true)};
  OperatorWalk walk(operators);
  ASSERT_TRUE(walk.to(1, 200));
  EXPECT_EQ(walk.innermost_with_tensors(), 0);
  ASSERT_TRUE(walk.to(1, 201));
  EXPECT_EQ(walk.innermost_with_tensors(), 1);
}

}  // namespace
}  // namespace shard::price
