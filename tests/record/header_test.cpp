// Do the tables of a trace say what its plan is made of?
#include "sim/record/header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/strategy/fields.h"
#include "tests/compile/support.h"

namespace shard::record {
namespace {

using plan::Strategy;
using plan::UnitKind;

std::string value_of(const Header& header, std::string_view name) {
  const auto at = std::ranges::find(header.strategy, name, &StrategyField::name);
  return at == header.strategy.end() ? "no such field" : at->value;
}

TEST(Header, HasTheUnitsOfThePlan) {
  // 6 x 5 + 5 = 35 and 5 x 3 + 3 = 18 parameters, each rounded up to two ranks.
  const Strategy strategy{.world_size = 2, .stage = 3, .global_batch = 2, .sequence = 1};
  const Header header = header_of(plan::compiled(plan::two_layers(), strategy));
  ASSERT_EQ(header.units.size(), 2u);
  EXPECT_EQ(header.units[0].elements, 36);
  EXPECT_EQ(header.units[0].bytes, 144);
  EXPECT_EQ(header.units[1].elements, 18);
  EXPECT_EQ(header.units[1].bytes, 72);
}

TEST(Header, BytesAreThoseOfWhatIsGathered) {
  Strategy strategy{.world_size = 2, .stage = 3, .global_batch = 2, .sequence = 8};
  strategy.precision = plan::Precision::bf16;
  const Header header = header_of(plan::compiled(plan::small_gpt2(), strategy));
  for (const UnitInfo& unit : header.units) EXPECT_EQ(unit.bytes, 2 * unit.elements) << unit.name;
}

// The tables are written once for all ranks.
TEST(Header, UnitsAreEqualOnAllRanks) {
  Strategy parts{.world_size = 4, .stage = 1, .global_batch = 4, .sequence = 8};
  parts.tensor_parallel = 2;
  Strategy owners{.world_size = 3, .stage = 3, .unit = UnitKind::chunk, .global_batch = 3, .sequence = 8};
  owners.chunk_per_tensor = true;
  owners.ownership = plan::Ownership::rank;
  std::size_t most_classes = 0;
  for (const Strategy& strategy : {parts, owners}) {
    const plan::PlanSet plans = plan::compiled(plan::small_gpt2(), strategy);
    most_classes = std::max(most_classes, plans.classes.size());
    const Header first = header_of(plans);
    EXPECT_FALSE(first.units.empty());
    for (std::size_t c = 0; c < plans.classes.size(); ++c) {
      plan::PlanSet only;
      only.classes.push_back(plans.classes[c]);
      EXPECT_EQ(header_of(only).units, first.units);
    }
  }
  EXPECT_GT(most_classes, 1u);
}

TEST(Header, HasEveryFieldOfTheStrategyOnceAndInOrder) {
  const Strategy strategy{
      .world_size = 2, .stage = 3, .unit = UnitKind::chunk, .chunk_elems = Elems{40}, .global_batch = 2, .sequence = 1};
  const Header header = header_of(plan::compiled(plan::two_layers(), strategy));
  const auto fields = plan::fields();
  ASSERT_EQ(header.strategy.size(), fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) EXPECT_EQ(header.strategy[i].name, fields[i].key);
  EXPECT_EQ(value_of(header, "stage"), "3");
  EXPECT_EQ(value_of(header, "unit"), "chunk");
  EXPECT_EQ(value_of(header, "chunk_elements"), "40");
  EXPECT_EQ(value_of(header, "device_capacity_bytes"), "");
}

TEST(Header, FieldsThatSayNothingBesideTheOthersAreMarked) {
  const Strategy strategy{.world_size = 2, .stage = 3, .global_batch = 2, .sequence = 1};
  const Header header = header_of(plan::compiled(plan::two_layers(), strategy));
  const auto telling = [&](std::string_view name) {
    return std::ranges::find(header.strategy, name, &StrategyField::name)->telling;
  };
  EXPECT_TRUE(telling("stage") && telling("reproducible"));
  EXPECT_FALSE(telling("chunk_elements") || telling("keep_gathered") || telling("tensor_parallel"));
}

}  // namespace
}  // namespace shard::record
