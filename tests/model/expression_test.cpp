// What is the value of an expression of the families' tables, and what is none?
#include "sim/model/expression.h"

#include <gtest/gtest.h>

namespace shard::model {
namespace {

Values named() {
  Values values;
  values.set("heads", 8);
  values.set("kv_heads", 2);
  values.set("bias", 0);
  values.set("zero", 0);
  values.set("huge", std::int64_t{1} << 31);
  return values;
}

TEST(Expression, Values) {
  const Values v = named();
  for (const auto& [text, value] :
       std::initializer_list<std::pair<std::string_view, std::int64_t>>{{"7", 7},
                                                                        {"heads", 8},
                                                                        {"heads+2*kv_heads", 12},
                                                                        {"(heads+2)*kv_heads", 20},
                                                                        {"heads-kv_heads-1", 5},
                                                                        {"heads/3", 2},
                                                                        {"heads%3", 2},
                                                                        {"!bias", 1},
                                                                        {"!bias*heads", 8},
                                                                        {"true", 1},
                                                                        {"heads==8", 1},
                                                                        {"heads!=8", 0},
                                                                        {"heads>=9", 0},
                                                                        {"heads<9&!bias", 1},
                                                                        {"bias|heads>7", 1},
                                                                        {"bias&heads", 0}}) {
    EXPECT_TRUE(is_expression(text, v)) << text;
    EXPECT_EQ(evaluate(text, v), value) << text;
  }
}

TEST(Expression, NeitherOverflowsNorDividesByZero) {
  const Values v = named();
  EXPECT_EQ(evaluate("huge*huge*huge", v), kTooLarge);
  EXPECT_EQ(evaluate("huge*huge*huge+huge*huge", v), kTooLarge);
  EXPECT_EQ(evaluate("0-huge*huge*huge", v), -kTooLarge);
  EXPECT_EQ(evaluate("heads/zero", v), 0);
  EXPECT_EQ(evaluate("heads%zero", v), 0);
}

TEST(Expression, Faults) {
  const Values v = named();
  for (const char* text : {"", "heads+", "(heads", "heads)", "unknown", "heads heads", "8heads", "heads**2"})
    EXPECT_FALSE(is_expression(text, v)) << text;
}

TEST(Expression, FirstNameIsTheFieldAtFault) {
  EXPECT_EQ(first_name("3*heads/kv_heads"), "heads");
  EXPECT_EQ(first_name("!bias"), "bias");
  EXPECT_EQ(first_name("64"), "");
}

}  // namespace
}  // namespace shard::model
