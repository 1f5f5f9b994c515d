// Is the table of operands in sim/ir/SPEC.md that of the rows, and is an operand found by its role?
// After a change that is meant: SHARDSCOPE_UPDATE_GOLDEN=1 tests/model_test --gtest_filter='Signature.*', then read the
// diff.
#include "sim/model/signature.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace shard::model {
namespace {

constexpr Direction kDirections[] = {Direction::forward, Direction::backward, Direction::backward_input,
                                     Direction::backward_weight};

/// All that an operator may have: three inputs of attention, a bias, nothing frozen.
Attributes everything() {
  Attributes a;
  a.columns = a.heads = a.head_dim = 1;
  a.has_bias = true;
  return a;
}

std::string of(const Names& names, int i) {
  return names[static_cast<std::size_t>(i)];
}

/// "d weight", but "dx" of an operator with one input.
std::string words(const OperatorRow& row, Role role, int i) {
  switch (role) {
    case Role::x: return of(row.inputs, i);
    case Role::p: return of(row.parameters, i);
    case Role::y: return "y";
    case Role::statistic: return of(row.statistics, i);
    case Role::dy: return "dy";
    case Role::dx: return row.inputs[1] == nullptr ? "dx" : "d " + of(row.inputs, i);
    case Role::dp: return "d " + of(row.parameters, i);
    case Role::loss_scale: return "loss scale";
    case Role::workspace: return "workspace";
    case Role::none: break;
  }
  return "?";
}

std::string words(const OperatorRow& row, const Signature& signature) {
  std::string text;
  for (const Slot& slot : signature) {
    if (!text.empty()) text += ", ";
    const bool gradient = slot.becomes == Role::none && (slot.role == Role::dx || slot.role == Role::dp);
    if (!gradient) text += slot.access == Access::read ? "r " : slot.access == Access::write ? "w " : "u ";
    if (slot.extent == Extent::all_columns) text += "all ranks' ";
    if (slot.extent == Extent::own_columns) text += "own columns of ";
    text += words(row, slot.role, slot.index);
    if (slot.becomes != Role::none) text += ", which becomes " + words(row, slot.becomes, slot.index);
  }
  return text;
}

std::string line(const OperatorRow& row, Direction d) {
  const Attributes a = everything();
  const std::string apart = words(row, signature(row.kind, d, a, {.input_gradient = true}));
  if (apart.empty()) return {};
  const std::string in_place = words(row, signature(row.kind, d, a, {.input_gradient = true, .in_place = true}));
  return std::string("| ") + row.name + " | " + to_string(d) + " | " +
         (in_place == apart ? apart : in_place + "; or " + apart) + " |\n";
}

TEST(Signature, IsTheTableOfTheSpecification) {
  std::string table = "| kind | direction | operands |\n|---|---|---|\n";
  for (const OperatorRow& row : operators::kTable)
    for (Direction d : kDirections) table += line(row, d);
  const std::string path = std::string(TEST_DATA) + "/../sim/ir/SPEC.md";
  std::string text;
  {
    std::ifstream in(path);
    ASSERT_TRUE(in) << path;
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  const std::string begin = "<!-- operands: begin, written by tests/model/signature_test.cpp -->\n";
  const std::string end = "<!-- operands: end -->\n";
  const std::size_t from = text.find(begin) + begin.size();
  const std::size_t to = text.find(end);
  ASSERT_TRUE(text.find(begin) != std::string::npos && to != std::string::npos && from <= to) << path;
  if (std::getenv("SHARDSCOPE_UPDATE_GOLDEN") != nullptr)
    std::ofstream(path) << text.substr(0, from) + table + text.substr(to);
  else
    EXPECT_EQ(text.substr(from, to - from), table) << path;
}

TEST(Signature, SaysWhatOneOpHas) {
  Attributes a = everything();
  a.frozen = 1;  // the weight
  const Signature norm =
      signature(OperatorKind::layer_norm, Direction::backward, a, {.accumulate_weight = true, .workspace = true});
  // x, weight, mean, rstd, dy, d bias, workspace
  ASSERT_EQ(norm.size(), 7U);
  EXPECT_FALSE(norm.has(Role::dx));
  EXPECT_FALSE(norm.has(Role::dp, 0));
  EXPECT_EQ(norm.position(Role::dp, 1), 5U);
  EXPECT_EQ(norm[5].access, Access::update);
  EXPECT_EQ(norm.position(Role::workspace), 6U);
  const Signature bias = signature(OperatorKind::linear, Direction::backward_weight, a, {});
  EXPECT_FALSE(bias.has(Role::x));
  a.frozen = 3;
  EXPECT_FALSE(signature(OperatorKind::linear, Direction::backward_weight, a, {}).makes_gradient());
  a.has_bias = false;
  EXPECT_FALSE(signature(OperatorKind::linear, Direction::forward, a, {}).has(Role::p, 1));
}

TEST(Signature, OneOperandIsFoundByWhatItWasAndWhatItBecomes) {
  const Signature loss = signature(OperatorKind::cross_entropy, Direction::backward, everything(),
                                   {.input_gradient = true, .scaled = true});
  EXPECT_EQ(loss.position(Role::x, 0), loss.position(Role::dx, 0));
  EXPECT_EQ(loss.position(Role::loss_scale), loss.size() - 1);
  for (const bool in_place : {true, false}) {
    const Signature gelu = signature(OperatorKind::gelu, Direction::backward, everything(),
                                     {.input_gradient = true, .in_place = in_place});
    EXPECT_EQ(gelu.position(Role::dy) == gelu.position(Role::dx), in_place);
  }
}

// What a kind has one of, it has at one place.
TEST(Signature, NoRoleIsThereTwice) {
  for (const OperatorRow& row : operators::kTable)
    for (Direction d : kDirections) {
      const Signature s =
          signature(row.kind, d, everything(), {.input_gradient = true, .scaled = true, .workspace = true});
      for (std::size_t i = 0; i < s.size(); ++i) {
        EXPECT_EQ(s.position(s[i].role, s[i].index), i) << row.name;
        EXPECT_EQ(s.position(s[i].made(), s[i].index), i) << row.name;
      }
    }
}

}  // namespace
}  // namespace shard::model
