// Does every file say what it is for, is every source listed, and does only main print or exit?
#include "tests/lint/source_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>

namespace shard::lint {
namespace {

std::vector<std::string> all_folders() {
  std::vector<std::string> folders = code_folders();
  folders.insert(folders.end(), {"tests", "cmake", "examples"});
  return folders;
}

TEST(House, TheFirstLineSaysTheOnePurpose) {
  for (const SourceFile& file : files_under(all_folders(), {".h", ".cpp", ".cu", ".cuh"})) {
    EXPECT_TRUE(file.text.starts_with("// ") && file.text.find('\n') > 12) << file.path << ":1: begins with no comment";
  }
  for (const SourceFile& file : files_under(all_folders(), {".cmake", ".py", ".sh"})) {
    const bool is_docstring = file.path.ends_with(".py") && file.text.starts_with("\"\"\"");
    EXPECT_TRUE(file.text.starts_with("#") || is_docstring) << file.path << ":1: begins with no comment";
  }
}

TEST(House, HeadersAreIncludedOnce) {
  for (const SourceFile& file : files_under(all_folders(), {".h", ".cuh"})) {
    EXPECT_NE(file.text.find("\n#pragma once\n"), std::string::npos) << file.path << ":2: #pragma once is missing";
  }
}

/// Does a CMakeLists.txt of the file's own folder or one above name it, or any by its path from the root?
bool is_listed(const std::string& path, const std::map<std::string, std::string>& lists) {
  for (std::size_t slash = path.rfind('/'); slash != std::string::npos; slash = path.rfind('/', slash - 1)) {
    const auto list = lists.find(path.substr(0, slash + 1) + "CMakeLists.txt");
    if (list != lists.end()) {
      // As a whole word: "sizes.h" does not list "izes.h".
      const std::string name = path.substr(slash + 1);
      const std::string& text = list->second;
      for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
        const auto edge = [&](std::size_t i) {
          return i >= text.size() || std::string(" \n\t()\"").find(text[i]) != std::string::npos;
        };
        if ((at == 0 || edge(at - 1) || text[at - 1] == '/') && edge(at + name.size())) return true;
      }
    }
    if (slash == 0) break;
  }
  // A second use elsewhere is written with the path from the root.
  return std::ranges::any_of(lists,
                             [&](const auto& list) { return list.second.find("/" + path) != std::string::npos; });
}

TEST(House, EverySourceIsListed) {
  std::vector<std::string> folders = code_folders();
  folders.push_back("tests");
  std::map<std::string, std::string> lists;
  for (const SourceFile& file : files_under(folders, {"CMakeLists.txt"})) lists[file.path] = file.text;
  // What is compiled by two folders is listed in a file that both read.
  for (const SourceFile& file : files_under(folders, {"sources.cmake"}))
    lists[file.path.substr(0, file.path.rfind('/') + 1) + "CMakeLists.txt"] += file.text;
  for (const SourceFile& file : files_under(folders, {".cpp", ".cu"})) {
    EXPECT_TRUE(is_listed(file.path, lists)) << file.path << ":1: is in no CMakeLists.txt";
  }
  for (const SourceFile& file : files_under(code_folders(), {".h"})) {
    EXPECT_TRUE(is_listed(file.path, lists)) << file.path << ":1: is in no CMakeLists.txt, so is not compiled alone";
  }
  EXPECT_FALSE(is_listed("a/b.cpp", {{"a/CMakeLists.txt", "# sources\nx(bb.cpp b.cppx)\n"}}));
  EXPECT_TRUE(is_listed("a/c/b.cpp", {{"a/CMakeLists.txt", "x(c/b.cpp)\n"}}));
}

TEST(House, NothingBelowMainPrintsOrExits) {
  static const std::regex kPrints(
      R"((^|[^\w.>])(printf|puts|fputs|putchar|fprintf|perror|exit|quick_exit|_Exit|abort)\s*\(|std::(cout|cerr|clog)\b|#\s*include\s*<iostream>)");
  for (const SourceFile& file : files_under({"traces", "sim", "viewer/index"}, {".h", ".cpp"})) {
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    // The commands are main's parts.
    if (name.starts_with("main") || file.path.find("/commands/") != std::string::npos) continue;
    for (const auto& [number, line] : code_lines(file.text)) {
      EXPECT_FALSE(std::regex_search(line, kPrints)) << file.path << ":" << number << ": prints or exits: " << line;
    }
  }
}

// What a plan does not say, an interpreter may not know: it would be a second copy of some pass's rule.
TEST(House, InterpretersReadThePlanAndNotTheStrategy) {
  static const std::regex kStrategy(".*(\\.|->)strategy\\b.*");
  for (const SourceFile& file :
       files_under({"executor/cpu", "executor/cuda", "executor/comm", "executor/rank", "executor/train", "sim/cost"},
                   {".h", ".cpp", ".cu"}))
    for (const auto& [number, line] : code_lines(file.text))
      EXPECT_FALSE(std::regex_match(line, kStrategy)) << file.path << ":" << number << ": reads the strategy";
}

TEST(House, CodeLinesLeaveOutCommentsAndLiterals) {
  const auto lines = code_lines("int a = 1'000;  // exit(1)\nf(\"exit(\\\"1\");\n#include \"a/b.h\"\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].second, "int a = 1'000;  ");
  EXPECT_EQ(lines[1].second, "f(\"\");");
  EXPECT_EQ(lines[2].second, "#include \"a/b.h\"");
}

}  // namespace
}  // namespace shard::lint
