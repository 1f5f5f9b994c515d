// Does a file that DeepSpeed reads by Hjson become what the package hjson for Python makes of it? The cases are that
// package's answers (tests/data/hjson/make.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/foreign/document.h"

namespace shard::foreign {
namespace {

nlohmann::json json_of(const Value& value) {
  switch (value.kind) {
    case Kind::null: return nullptr;
    case Kind::boolean: return value.boolean;
    case Kind::integer: return value.integer;
    case Kind::real: return value.real;
    case Kind::text: return value.text;
    case Kind::list: {
      nlohmann::json list = nlohmann::json::array();
      for (const Value& item : value.items) list.push_back(json_of(item));
      return list;
    }
    case Kind::table: {
      nlohmann::json table = nlohmann::json::object();
      for (const Member& member : value.members) table[member.key] = json_of(member.value);
      return table;
    }
  }
  return nullptr;
}

TEST(Hjson, EveryTextBecomesWhatThePackageMakesOfIt) {
  std::ifstream file(std::filesystem::path(TEST_DATA) / "data" / "hjson" / "cases.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GT(cases.size(), 500U);
  for (const auto& each : cases) {
    const auto text = each[0].get<std::string>();
    const auto value = read_hjson(text, "f");
    if (each[1].is_null()) {
      EXPECT_FALSE(value) << text << "\nis refused, and here it is " << json_of(*value);
      continue;
    }
    ASSERT_TRUE(value) << text << '\n' << value.error().what;
    EXPECT_EQ(json_of(*value), nlohmann::json::parse(each[1].get<std::string>())) << text;
  }
}

TEST(Hjson, ValuesStandOnTheirLines) {
  const auto root =
      read_hjson("// one\n{\n  a: 1,\n  /* two\n  */ b: {c: text without quotes\n\n  d: [1\n2] }\n}", "f");
  ASSERT_TRUE(root) << root.error().what;
  EXPECT_EQ(root->at("/a")->line, 3);
  EXPECT_EQ(root->at("/b/c")->line, 5);
  EXPECT_EQ(root->at("/b/c")->text, "text without quotes");
  EXPECT_EQ(root->at("/b/d")->line, 7);
}

TEST(Hjson, FaultsNameTheirLine) {
  const auto fault = [](const std::string& text) {
    const auto value = read_hjson(text, "f");
    return value ? "read" : value.error().where + ": " + value.error().what;
  };
  EXPECT_EQ(fault("{\n\"a\": 1,\n \"a\": 2}"), "f:3: the key 'a' stands twice in one table");
  EXPECT_EQ(fault("{\"a\": 1}\n```"), "f:2: something stands behind its end");
  EXPECT_EQ(fault("{\"a\":\n/* open"), "f:2: a comment /* is never closed");
  EXPECT_EQ(fault("{\"a\": \"\xff\"}"), "f: it holds bytes that are not UTF-8");
}

TEST(Hjson, HostileDepthsAndLengthsAreRefused) {
  EXPECT_FALSE(read_hjson(std::string(100'000, '['), "f"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{a:";
  EXPECT_FALSE(read_hjson(deep, "f"));
  std::string many = "{a:[";
  for (int i = 0; i < 100'000; ++i) many += "1,";
  EXPECT_FALSE(read_hjson(many + "]}", "f"));
}

// A reader that looks for the ends of the line at each value takes seconds for these.
TEST(Hjson, ManyValuesOnOneLongLine) {
  const std::string blanks(450'000, ' ');
  for (const char* value : {"''''''", "1"}) {
    std::string text = "{" + blanks + "a: [";
    for (int i = 0; i < 19'000; ++i) text += value + std::string(",");
    const auto root = read_hjson(text + "]" + blanks + "}", "f");
    ASSERT_TRUE(root) << root.error().what;
    EXPECT_EQ(root->at("/a")->items.size(), 19'000U);
  }
  const auto root = read_hjson("{\na: 'x', b: 1, c:   '''\n                     y\n   z'''}", "f");
  ASSERT_TRUE(root) << root.error().what;
  EXPECT_EQ(root->at("/c")->text, "  y\nz");
}

TEST(DeepSpeedJson, TakesCommentsAndCommasAndStillNamesPlaceholders) {
  const auto root = read_deepspeed_json("{\"zero_optimization\": {\n\"stage\": 2, // two\n},}", "f");
  ASSERT_TRUE(root) << root.error().what;
  EXPECT_EQ(root->at("/zero_optimization/stage")->integer, 2);
  const auto filled = read_deepspeed_json("{\n\"stage\": ZERO_STAGE\n}", "f");
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().what, "'ZERO_STAGE' is a placeholder that a script fills in, not a value");
}

}  // namespace
}  // namespace shard::foreign
