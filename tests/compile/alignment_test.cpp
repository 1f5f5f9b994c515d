// Where do operands of products begin, and does that say more of the strategy than of the model?
#include "sim/target/alignment.h"

#include <gtest/gtest.h>

#include "tests/compile/random_cases.h"

namespace shard::plan {
namespace {

ParameterList of_sizes(std::initializer_list<std::int64_t> sizes) {
  ParameterList list;
  for (const std::int64_t size : sizes) list.push_back({.name = "p", .shape = {size}, .elems = Elems{size}});
  return list;
}

TEST(ProductAlignment, IsThatOfTheSizeThatHasLeast) {
  EXPECT_EQ(product_alignment(of_sizes({64, 8}), Dtype::bf16), Bytes{16});
  EXPECT_EQ(product_alignment(of_sizes({64, 12}), Dtype::bf16), Bytes{8});
  EXPECT_EQ(product_alignment(of_sizes({64, 12}), Dtype::f32), Bytes{16});
  EXPECT_EQ(product_alignment(of_sizes({64, 10}), Dtype::f32), Bytes{8});
  EXPECT_EQ(product_alignment(of_sizes({64, 7, 10}), Dtype::f16), Bytes{2});
}

/// The largest power of two, 16 at most, at a multiple of which every operand of every product of the steps begins.
std::int64_t least_of(const PlanSet& plans) {
  std::int64_t begins = 16;
  for (std::size_t rank = 0; rank < plans.class_of_rank.size(); ++rank) {
    const Plan& plan = plans.classes[static_cast<std::size_t>(plans.class_of_rank[rank])];
    const std::int32_t shard = position(plan.topology, static_cast<std::int32_t>(rank)).shard;
    for (const Op& op : plan.find(Phase::steady_step)->ops)
      if (const auto* compute = std::get_if<Compute>(&op.action);
          compute != nullptr && compute->kind == model::OperatorKind::linear)
        for (const Operand& o : op.operands) begins |= plan.buffer(o.buffer).offset + o.offset_on(shard);
  }
  return begins & -begins;
}

TEST(ProductAlignment, HoldsUnderEveryStrategy) {
  std::int64_t odd = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    RandomCases random(seed);
    const ModelPtr model = random.model();
    Strategy strategy = random.strategy(*model);
    strategy.device = Device::cuda;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_string(strategy));
    const std::int64_t said = product_alignment(model->parameters, strategy.storage()).count();
    const std::int64_t found = least_of(compiled(model, strategy));
    ASSERT_EQ(found % said, 0) << found << " and " << said;
    odd += found < 16 ? 1 : 0;
  }
  EXPECT_GT(odd, 5) << "models whose parameters all end at vectors show nothing";
}

}  // namespace
}  // namespace shard::plan
