// Is every embedded table well formed, and what does a malformed one say?
#include "sim/model/family_table.h"

#include <gtest/gtest.h>

namespace shard::model {
namespace {

TEST(FamilyTable, EveryEmbeddedTableIsRead) {
  for (const FamilyText& family : family_texts()) {
    const Result<FamilyTable> table = parse_family_table(family.text, family.name);
    ASSERT_TRUE(table) << to_string(table.error());
    EXPECT_EQ(table->model_type, family.name);
    EXPECT_FALSE(table->kind.empty()) << family.name;
    EXPECT_EQ(table->operators.empty(), table->kind != "decoder") << family.name;
  }
  EXPECT_EQ(family_tables().size(), family_texts().size());
}

TEST(FamilyTable, FaultsNameTheLine) {
  const auto fault = [](std::string_view text) {
    const Result<FamilyTable> table = parse_family_table(text, "f");
    return table ? std::string("none") : table.error().where + " " + table.error().what;
  };
  EXPECT_EQ(fault(""), "f:0 lacks a family, a class or parameters");
  EXPECT_EQ(fault("family f\nclass F\nint a\n"), "f:3 is no field");
  EXPECT_EQ(fault("family f\nclass F\nint a is hidden\n"), "f:3 is no field");
  EXPECT_EQ(fault("family f\nclass F\nfloat a = 3\n"), "f:3 is no field");
  EXPECT_EQ(fault("family f\nclass F\nrope\n"), "f:3 is a word alone");
  EXPECT_EQ(fault("family f\nclass F\nparameters\nblocks n h\nnorm a 3\nend\n"), "f:6 has no end");
}

TEST(FamilyTable, FieldsAndRows) {
  const Result<FamilyTable> table = parse_family_table(
      "# a comment\nfamily f\nclass FForCausalLM F\nint a.n|m as k = 3 null 2*b is layers\n"
      "parameters\nblocks k h\n  linear up 4 k bias b if k>1\nend\nend\n",
      "f");
  ASSERT_TRUE(table) << to_string(table.error());
  ASSERT_EQ(table->fields.size(), 1U);
  const FieldRow& field = table->fields[0];
  EXPECT_EQ(field.section, "a");
  EXPECT_EQ(field.keys, (std::vector<std::string_view>{"n", "m"}));
  EXPECT_EQ(field.name, "k");
  EXPECT_EQ(field.fallback, "3");
  EXPECT_EQ(field.if_null, "2*b");
  EXPECT_EQ(field.role, "layers");
  ASSERT_EQ(table->parameters.size(), 1U);
  ASSERT_EQ(table->parameters[0].rows.size(), 1U);
  const TableRow& row = table->parameters[0].rows[0];
  EXPECT_EQ(row.word, "linear");
  EXPECT_EQ(row.arguments, (std::vector<std::string_view>{"up", "4", "k"}));
  EXPECT_EQ(row.bias, "b");
  EXPECT_EQ(row.only, "k>1");
}

}  // namespace
}  // namespace shard::model
