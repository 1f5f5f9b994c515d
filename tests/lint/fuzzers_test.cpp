// Has every fuzzer first inputs, and does the preset `fuzz` build all that there are?
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace shard::lint {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::filesystem::path kTests = TEST_DATA;

TEST(Fuzzers, EachHasFirstInputsAndIsListed) {
  const std::string list = text_of(kTests / "fuzz" / "CMakeLists.txt");
  const std::regex declared("^ *\\w*fuzzer\\((\\w+_fuzz)\\b", std::regex::ECMAScript | std::regex::multiline);
  std::set<std::string> names, folders;
  for (std::sregex_iterator at(list.begin(), list.end(), declared), end; at != end; ++at) names.insert((*at)[1]);
  for (const auto& folder : std::filesystem::directory_iterator(kTests / "fuzz" / "corpus"))
    if (!std::filesystem::is_empty(folder)) folders.insert(folder.path().filename());
  ASSERT_GT(names.size(), 20u);
  EXPECT_EQ(names, folders);
}

// A fuzzer is left out where its library is.
TEST(Fuzzers, ThePresetLeavesOutNoPartThatHasOne) {
  const std::string presets = text_of(kTests.parent_path() / "CMakePresets.json");
  const std::size_t begin = presets.find("\"name\": \"fuzz\"");
  ASSERT_NE(begin, std::string::npos);
  const std::string fuzz = presets.substr(begin, presets.find("\"name\"", begin + 1) - begin);
  EXPECT_NE(fuzz.find("\"SHARDSCOPE_EXECUTOR\": \"ON\""), std::string::npos) << fuzz;
  EXPECT_NE(fuzz.find("\"SHARDSCOPE_VIEWER\": \"ON\""), std::string::npos) << fuzz;
}

}  // namespace
}  // namespace shard::lint
