// Is what the documents say of published runs what `shardscope validate` says?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

const std::string kRows = TEST_DATA "/validation/rows.csv";

TEST(Validation, TheTableOfTheDocumentsIsTheCommands) {
  const Outcome said = shardscope({"validate", kRows, "--format", "markdown"});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  std::ifstream in(TEST_DATA "/../docs/validation.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(page, testing::HasSubstr(said.out));
}

TEST(Validation, EveryRowIsPredictedOrSaysWhyNot) {
  const nlohmann::json j = json_of(shardscope({"validate", kRows, "--json"}));
  ASSERT_EQ(j["rows"].size(), 332U);
  for (const nlohmann::json& row : j["rows"])
    EXPECT_NE(row["predicted_peak_bytes"].is_null(), row["reason"].is_null()) << row["id"];
  EXPECT_GE(j["overall"]["modelled_fraction"], 0.9);
  for (const char* what : {"oom", "fits"}) EXPECT_LE(j["overall"][what]["right"], j["overall"][what]["count"]) << what;
}

}  // namespace
}  // namespace shard::test
