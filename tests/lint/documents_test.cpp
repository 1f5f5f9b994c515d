// Do the documents name packages, folders and commands that are there, and all of them?
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "tests/lint/source_tree.h"

namespace shard::lint {
namespace {

const std::filesystem::path& root() {
  static const std::filesystem::path kRoot = std::filesystem::path(TEST_DATA).parent_path();
  return kRoot;
}

std::string text_of(const char* name) {
  std::ifstream in(root() / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// All matches of an expression, as its first group and its second, if it has one.
std::set<std::pair<std::string, std::string>> matches(const std::string& text, const std::string& expression) {
  const std::regex regex(expression, std::regex::ECMAScript | std::regex::multiline);
  std::set<std::pair<std::string, std::string>> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.emplace((*at)[1].str(), regex.mark_count() > 1 ? (*at)[2].str() : "");
  }
  return found;
}

TEST(Documents, EveryPackageHasARowWithItsTag) {
  const auto listed = matches(text_of("packages.txt"), "^([a-z0-9+.-]+) +# ([a-z,]+): \\S");
  ASSERT_GT(listed.size(), 20u);
  const std::string contributing = text_of("CONTRIBUTING.md");
  const std::size_t from = contributing.find("\n## Packages");
  ASSERT_NE(from, std::string::npos);
  auto rows = matches(contributing.substr(from, contributing.find("\n## ", from + 1) - from),
                      "^\\| ([a-z0-9+.-]+) \\| ([a-z, ]+) \\| [^|]+ \\| [^|]+ \\|$");
  std::set<std::pair<std::string, std::string>> table;
  for (const auto& [name, tags] : rows) table.emplace(name, std::regex_replace(tags, std::regex(" "), ""));
  EXPECT_EQ(table, listed);
}

TEST(Documents, EveryTagIsInstalledBySomeTarget) {
  const std::string makefile = text_of("Makefile");
  for (const auto& [name, tags] : matches(text_of("packages.txt"), "^([a-z0-9+.-]+) +# ([a-z,]+): \\S")) {
    for (const auto& [tag, none] : matches(tags, "([a-z]+)")) {
      EXPECT_FALSE(matches(makefile, "(install_packages\\.sh [a-z ]*\\b" + tag + "\\b)").empty())
          << name << ": " << tag;
    }
  }
}

TEST(Documents, PathsExist) {
  for (const char* document : {"CONTRIBUTING.md", "README.md", "packages.txt", "docs/architecture.md",
                               "docs/checklists.md", "docs/README.md"}) {
    const auto named = matches(text_of(document),
                               "(?:^|[^\\w./-])((?:traces|sim|executor|viewer|profiler|tests|docs|examples|cmake|\\.ci)"
                               "/(?:[\\w./-]*\\w)?)");
    for (const auto& [path, none] : named) {
      // "executor/main*" names every file that begins so.
      const std::filesystem::path whole = root() / path;
      bool exists = std::filesystem::exists(whole);
      if (!exists && std::filesystem::exists(whole.parent_path())) {
        for (const auto& entry : std::filesystem::directory_iterator(whole.parent_path())) {
          exists = exists || entry.path().stem() == whole.filename();
        }
      }
      EXPECT_TRUE(exists) << document << " names " << path;
    }
  }
}

TEST(Documents, MakeHelpListsEveryTarget) {
  const std::string makefile = text_of("Makefile");
  auto targets = matches(makefile, "^([a-z][a-z-]*):");
  // Parts of others, and help itself.
  for (const char* part : {"help", "configure", "everything"}) EXPECT_EQ(targets.erase({part, ""}), 1u) << part;
  EXPECT_EQ(matches(makefile, "^\t@echo 'make ([a-z-]+) "), targets);
  for (const char* document : {"CONTRIBUTING.md", "README.md"}) {
    for (const auto& [target, none] : matches(text_of(document), "`make ([a-z][a-z-]*)")) {
      EXPECT_TRUE(target == "help" || targets.contains({target, ""})) << document << " names make " << target;
    }
  }
}

TEST(Documents, TypesThatManyFilesNameHaveARowOfWords) {
  const std::string words = text_of("docs/words.md");
  std::map<std::string, std::set<std::string>> users;
  std::set<std::string> types;
  for (const SourceFile& file :
       files_under({"traces", "sim", "executor", "profiler", "viewer"}, {".h", ".cpp", ".cu"})) {
    std::string code;
    for (const auto& [number, line] : code_lines(file.text)) code += line + "\n";
    static const std::regex kDefined(
        "\n(?:struct|class|enum class|using) (?:\\[\\[nodiscard\\]\\] )?([A-Z][a-z]\\w+)[^;\n]*[{=]");
    static const std::regex kNamed("\\b[A-Z][a-z]\\w+");
    if (file.path.ends_with(".h"))
      for (std::sregex_iterator at(code.begin(), code.end(), kDefined), end; at != end; ++at) types.insert((*at)[1]);
    for (std::sregex_iterator at(code.begin(), code.end(), kNamed), end; at != end; ++at)
      users[at->str()].insert(file.path);
  }
  constexpr std::size_t kMany = 45;
  for (const auto& [type, files] : users) {
    if (files.size() < kMany || !types.contains(type)) continue;
    EXPECT_FALSE(matches(words, "^(\\| [^|]*`" + type + "`[^|]*\\| )").empty())
        << files.size() << " files name " << type << ", and the table of docs/words.md does not";
  }
}

}  // namespace
}  // namespace shard::lint
