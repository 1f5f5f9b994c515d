// Do JSON and YAML become the tree that Python makes of them, with the lines that values stand on?
#include <gtest/gtest.h>

#include <string>

#include "sim/foreign/document.h"

namespace shard::foreign {
namespace {

std::string fault_of(const Result<Value>& value) {
  return value ? "read" : value.error().where + ": " + value.error().what;
}

TEST(Json, ValuesStandOnTheirLines) {
  const auto root = read_json("{\n  \"a\": 1,\n  \"b\": {\"c\": \"x\",\n    \"d\": 2.5}\n}\n", "f");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->at("/a")->line, 2);
  EXPECT_EQ(root->at("/b/c")->line, 3);
  EXPECT_EQ(root->at("/b/d")->line, 4);
  EXPECT_EQ(root->at("/b/d")->real, 2.5);
  EXPECT_EQ(root->at("/b/e"), nullptr);
}

TEST(Json, LeavesAreWhatIsNoTable) {
  const auto root = read_json(R"({"a/b": {"~": []}, "list": [{"x": 1}], "none": {}, "n": null})", "f");
  ASSERT_TRUE(root);
  std::string pointers;
  for (const Leaf& leaf : leaves(*root)) pointers += leaf.pointer + " ";
  EXPECT_EQ(pointers, "/a~1b/~0 /list /none /n ");
  EXPECT_EQ(root->at("/a~1b/~0")->kind, Kind::list);
}

TEST(Json, RefusesWhatJsonHasNot) {
  EXPECT_EQ(fault_of(read_json("{\"a\": 1,\n \"a\": 2}", "f")), "f:2: the key 'a' stands twice in one table");
  EXPECT_EQ(fault_of(read_json("{\n\"stage\": ZERO_STAGE\n}", "f")),
            "f:2: 'ZERO_STAGE' is a placeholder that a script fills in, not a value");
  for (const char* text :
       {"{\"a\": 1,}", "{'a': 1}", "{\"a\": 1} x", "", "{\"a\": 1 // one\n}", "{\"a\"", "{\"\xff\": 1}"})
    EXPECT_FALSE(read_json(text, "f")) << text;
  EXPECT_FALSE(read_json(std::string(100'000, '['), "f"));
}

TEST(Yaml, WordsAreWhatYaml11Says) {
  const auto root = read_yaml("a: yes\nb: 'no'\nc: no\nd: ~\ne: 1_000\nf: 1e-5\ng: NO_SHARD\nh:\n", "f");
  ASSERT_TRUE(root) << fault_of(root);
  EXPECT_TRUE(root->at("/a")->boolean);
  EXPECT_EQ(root->at("/b")->text, "no");
  EXPECT_EQ(root->at("/c")->kind, Kind::boolean);
  EXPECT_EQ(root->at("/d")->kind, Kind::null);
  EXPECT_EQ(root->at("/e")->integer, 1000);
  EXPECT_EQ(root->at("/f")->real, 1e-5);
  EXPECT_EQ(root->at("/g")->text, "NO_SHARD");
  EXPECT_EQ(root->at("/h")->kind, Kind::null);
  EXPECT_EQ(root->at("/g")->line, 7);
}

TEST(Yaml, AliasesAndMergesAreFollowed) {
  const auto root = read_yaml("base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\nagain: *b\n", "f");
  ASSERT_TRUE(root) << fault_of(root);
  EXPECT_EQ(root->at("/more/x")->integer, 1);
  EXPECT_EQ(root->at("/more/y")->integer, 3);
  EXPECT_EQ(root->at("/again/y")->integer, 2);
}

TEST(Yaml, BombsAndDepthsAreRefused) {
  std::string bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below;
    for (int k = 0; k < 9; ++k) bomb += "," + below;
    bomb += "]\n";
  }
  EXPECT_EQ(fault_of(read_yaml(bomb, "f")).find("aliases make more values") != std::string::npos, true)
      << fault_of(read_yaml(bomb, "f"));
  EXPECT_FALSE(read_yaml(std::string(100'000, '['), "f"));
  std::string deep;
  for (int i = 0; i < 400; ++i) deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_FALSE(read_yaml(deep, "f"));
  EXPECT_FALSE(read_yaml("a: [1, 2\nb: 3", "f"));
  EXPECT_FALSE(read_yaml("a: !!python/object:os.system x", "f"));
}

}  // namespace
}  // namespace shard::foreign
