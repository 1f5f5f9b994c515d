// Does the reader of tables keep quoted cells whole, and name the line of what is no table?
#include "sim/validate/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace shard::validate {
namespace {

TEST(Csv, QuotedCellsHoldCommasLinesAndQuotes) {
  const Result<CsvTable> table = parse_csv("a,b\r\n\"x,\"\"y\"\"\nz\",2\n,\n", "t.csv");
  ASSERT_TRUE(table) << to_string(table.error());
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->at(0, "a"), "x,\"y\"\nz");
  EXPECT_EQ(table->at(0, "b"), "2");
  EXPECT_EQ(table->at(1, "b"), "");
  EXPECT_EQ(table->at(1, "absent"), "");
}

TEST(Csv, WhatIsNoTableIsMalformed) {
  for (const char* text : {"", "a,a\n1,2\n", "a,b\n1\n", "a,b\n1,2,3\n", "a\n\"open\n", "a\nx\"y\n", "a\n\"x\"y\n"}) {
    const Result<CsvTable> table = parse_csv(text, "t.csv");
    ASSERT_FALSE(table) << text;
    EXPECT_EQ(table.error().code, Errc::malformed) << text;
    EXPECT_THAT(table.error().where, testing::HasSubstr("t.csv"));
  }
}

}  // namespace
}  // namespace shard::validate
