// Does every folder say what it is for, do documents link what is there, are they all in the index, and is the
// changelog one of lines?
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace shard::lint {
namespace {

namespace fs = std::filesystem;

const fs::path& top() {
  static const fs::path kTop = fs::path(TEST_DATA).parent_path();
  return kTop;
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string from_top(const fs::path& path) {
  return path.lexically_relative(top()).generic_string();
}

/// The folders of the project beside its hidden ones and what builds leave.
const std::vector<std::string>& top_folders() {
  static const std::vector<std::string> kFolders{"traces", "sim",  "executor", "profiler", "viewer",
                                                 "tests",  "docs", "examples", "cmake",    ".ci"};
  return kFolders;
}

bool is_room(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  return entry.is_directory() && !name.starts_with("_") && !name.starts_with(".");
}

/// All folders of two levels.
std::vector<fs::path> rooms() {
  std::vector<fs::path> found;
  for (const std::string& folder : top_folders()) {
    found.push_back(top() / folder);
    for (const auto& entry : fs::directory_iterator(top() / folder))
      if (is_room(entry)) found.push_back(entry.path());
  }
  return found;
}

/// All documents in Markdown.
std::vector<fs::path> documents() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(top()))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  for (const std::string& folder : top_folders()) {
    for (const auto& entry : fs::recursive_directory_iterator(top() / folder))
      if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  return found;
}

TEST(Rooms, EachHasAReadmeThatIsShort) {
  // A screen of text. These are manuals of what is in the folder, or tables.
  constexpr std::ptrdiff_t kMostLines = 25;
  const std::set<std::string> manuals{"docs",   "docs/decisions",          "examples",        "examples/clusters",
                                      "viewer", "examples/07_gpt2_medium", "tests/validation"};
  for (const fs::path& room : rooms()) {
    const std::string text = content_of(room / "README.md");
    EXPECT_TRUE(text.starts_with("# ")) << from_top(room)
                                        << " has no README.md that begins with a heading: what is it for?";
    if (manuals.contains(from_top(room))) continue;
    EXPECT_LE(std::ranges::count(text, '\n'), kMostLines)
        << from_top(room) << "/README.md: what takes longer to say is a document of docs/, or of a folder below";
  }
}

TEST(Rooms, LinksOfDocumentsLeadSomewhere) {
  const std::regex link("\\]\\(([^)\\s#:]+)(#[^)\\s]*)?\\)");
  std::size_t looked_at = 0;
  for (const fs::path& document : documents()) {
    const std::string text = content_of(document);
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at, ++looked_at) {
      EXPECT_TRUE(fs::exists(document.parent_path() / (*at)[1].str()))
          << from_top(document) << " links " << (*at)[1].str() << ", which is not there";
    }
  }
  EXPECT_GT(looked_at, 300u);
}

TEST(Rooms, EveryDocumentIsInTheIndex) {
  const std::string index = content_of(top() / "docs" / "README.md");
  for (const auto& entry : fs::directory_iterator(top() / "docs")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".md" || name == "README.md") continue;
    EXPECT_NE(index.find("](" + name + ")"), std::string::npos) << "docs/README.md has no line for " << name;
  }
}

TEST(Changelog, HasALineAnEntryAndTheVersionOfTheBuild) {
  std::istringstream in(content_of(top() / "CHANGELOG.md"));
  std::vector<std::string> sections;
  std::size_t entries = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) {
      sections.push_back(line.substr(3));
    } else if (!sections.empty() && !line.empty()) {
      EXPECT_TRUE(line.starts_with("- "))
          << "CHANGELOG.md: an entry is one line, what takes more is a document: " << line;
      ++entries;
    }
  }
  EXPECT_GT(entries, 100u);
  ASSERT_GE(sections.size(), 2u);
  EXPECT_EQ(sections[0], "Unreleased");
  std::smatch version;
  const std::string build = content_of(top() / "CMakeLists.txt");
  ASSERT_TRUE(std::regex_search(build, version, std::regex("project\\(shardscope VERSION ([0-9]+\\.[0-9]+)")));
  EXPECT_TRUE(sections[1].starts_with(version[1].str() + ",")) << "the newest section is " << sections[1];
}

}  // namespace
}  // namespace shard::lint
