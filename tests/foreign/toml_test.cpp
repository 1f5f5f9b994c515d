// Does TOML become the tree that Python's tomllib makes of it, and is what would harm the parser refused before it?
#include <gtest/gtest.h>

#include <string>

#include "sim/foreign/toml_document.h"

namespace shard::foreign {
namespace {

std::string tree_of(const std::string& content) {
  const Result<Value> root = read_toml(content, "f");
  return root ? shown(*root) : root.error().where + ": " + root.error().what;
}

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

const std::string kTooDeep = "is no TOML: tables and lists are nested too deeply";
const std::string kNotAscii = "is no TOML: a letter beyond ASCII stands outside of quotes";

TEST(Toml, KeysTextsAndTables) {
  EXPECT_EQ(tree_of("a.b = 1\n[c]\nd = [1.5,\n 2.5]\n"), R"({"a": {"b": 1}, "c": {"d": [1.5, 2.5]}})");
  EXPECT_EQ(tree_of("\xEF\xBB\xBF"
                    "a = 'x' # \xCB\x9C\n\"\xCB\x9C\" = \"\xCB\x9C\"\n"),
            "{\"a\": \"x\", \"\xCB\x9C\": \"\xCB\x9C\"}");
  const Result<Value> root = read_toml("\na = 1\n\n[b]\nc = 2\n", "f");
  ASSERT_TRUE(root) << root.error().what;
  EXPECT_EQ(root->at("/b/c")->line, 5);
}

TEST(Toml, KeysOfManyDotsAreTooDeep) {
  for (const int depth : {65, 50'000}) {
    EXPECT_EQ(tree_of("x = 1\na" + repeated(".b", depth) + " = 1\n"), "f:2: " + kTooDeep);
    EXPECT_EQ(tree_of("[a" + repeated(".b", depth) + "]\n"), "f:1: " + kTooDeep);
    EXPECT_EQ(tree_of("[[a" + repeated(" . 'b'", depth) + "]]\n"), "f:1: " + kTooDeep);
    EXPECT_EQ(tree_of("a = " + repeated("[", depth) + repeated("]", depth)), "f:1: " + kTooDeep);
  }
  // No part of these is deep by itself.
  EXPECT_EQ(tree_of("a = " + repeated("{b.c.d.e.f = ", 20) + "1" + repeated("}", 20)), "f:1: " + kTooDeep);
  EXPECT_EQ(tree_of("[a" + repeated(".b", 40) + "]\nc" + repeated(".d", 40) + " = 1\n"), "f:2: " + kTooDeep);
}

TEST(Toml, DotsAndBracketsThatNestNothingAreNoDepth) {
  const std::string numbers = "[" + repeated("1.5, [2.5], {a.b = 1},\n", 200) + "]";
  EXPECT_EQ(tree_of("a = " + numbers).substr(0, 35), R"({"a": [1.5, [2.5], {"a": {"b": 1}},)");
  for (const std::string& text : {std::string(200, '.'), std::string(200, '[')}) {
    EXPECT_EQ(tree_of("# " + text + "\na = 1"), R"({"a": 1})");
    EXPECT_TRUE(read_toml("'" + text + "' = 1", "f"));
    for (const std::string& quoted : {"'" + text + "'", "\"" + text + "\\\"" + text + "\"", "'''\n" + text + "''''",
                                      "\"\"\"" + text + "\n\\\"\"" + text + "\"\"\"\"\""}) {
      const Result<Value> root = read_toml("a = " + quoted + "\nb = ''\nc = \"\"\nd = 1\n", "f");
      ASSERT_TRUE(root) << quoted << '\n' << root.error().what;
      EXPECT_EQ(root->at("/d")->integer, 1);
    }
  }
}

// toml++ says of this letter that there is none such.
TEST(Toml, LettersBeyondAsciiBelongIntoQuotes) {
  for (const char* text : {"\xCB\x9C = 1\n", "a\xCB\x9C = 1\n", "a = \xCB\x9C\n", "a = 1\xCB\x9C\n", "a = 1 \xCB\x9C\n",
                           "[\xCB\x9C]\n", "a = ''\xCB\x9C\n"})
    EXPECT_EQ(tree_of(text), "f:1: " + kNotAscii) << text;
  EXPECT_EQ(tree_of("a = '''\n\n'''\n\xC3\xA4 = 1\n"), "f:4: " + kNotAscii);
}

TEST(Toml, MoreThanAnyConfigurationHasIsRefused) {
  std::string keys = "[a]\nb = 1\n[c]\n";
  for (int i = 0; i < 60'000; ++i) keys += "k" + std::to_string(i) + " = 1\n";
  EXPECT_EQ(tree_of(keys), "f:3: is no TOML: a table has more keys than any configuration");
  EXPECT_EQ(tree_of("a = 1\nb = [" + repeated("1,", 60'000) + "]"),
            "f:2: is no TOML: more values than any configuration has");
  EXPECT_EQ(tree_of(repeated("[[a]]\n", 60'000)).substr(7), ": is no TOML: more values than any configuration has");
}

}  // namespace
}  // namespace shard::foreign
