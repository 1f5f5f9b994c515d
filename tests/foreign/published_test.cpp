// Is every key of configurations as people publish them told, once, and does each become what it became before?
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/foreign/read_helpers.h"

namespace shard::foreign {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(TEST_DATA) / "data" / "foreign";

/// "deepspeed/mics.json", of all tools, in order.
std::vector<std::string> published() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder))
    if (entry.is_regular_file() && entry.path().parent_path() != kFolder)
      names.push_back(std::filesystem::relative(entry.path(), kFolder).string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<ForeignConfig> read_published(const std::string& name, const Options& options = {}) {
  Result<Text> text = read_text(kFolder / name);
  if (!text) return text.error();
  const Tool* const tool = recognise(*text);
  if (tool == nullptr || tool->read == nullptr)
    return Error{.code = Errc::internal, .what = "nobody reads " + name, .where = "", .help = ""};
  return read_as(*tool, *text, given_by(options));
}

/// A file's settings on one line, then a line for each key that is left out.
std::string account_of(const std::string& name) {
  const auto config = read_published(name);
  std::string text = name + ": " + settings_of(config) + "\n";
  if (config)
    for (const LeftOut& each : config->left_out) text += "  " + each.key + ": " + each.reason + "\n";
  return text;
}

TEST(Published, ThirtyFilesAndMore) {
  EXPECT_GE(published().size(), 30u);
}

TEST(Published, EveryLeafIsToldOnce) {
  for (const std::string& name : published()) {
    const auto config = read_published(name, {{"world-size", "8"}, {"micro-batch", "1"}});
    ASSERT_TRUE(config) << name << ": " << to_string(config.error());
    std::multiset<std::string> told(config->understood.begin(), config->understood.end());
    for (const LeftOut& each : config->left_out) {
      EXPECT_FALSE(each.reason.empty()) << name << each.key;
      told.insert(each.key);
    }
    for (const std::string& key : told) EXPECT_EQ(told.count(key), 1u) << name << ": " << key;
    const Result<Text> text = read_text(kFolder / name);
    if (!text->tree) continue;  // neither JSON nor YAML: its own test looks
    for (const Leaf& leaf : leaves(*text->tree))
      EXPECT_EQ(told.count(leaf.pointer), 1u) << name << ": " << leaf.pointer;
  }
}

TEST(Published, BecomesWhatItDid) {
  std::string accounts;
  for (const std::string& name : published()) accounts += account_of(name);
  const std::filesystem::path file = kFolder / "expected.txt";
  if (std::getenv("SHARDSCOPE_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << accounts;
  std::ifstream in(file);
  EXPECT_EQ(accounts, std::string(std::istreambuf_iterator<char>(in), {}));
}

}  // namespace
}  // namespace shard::foreign
