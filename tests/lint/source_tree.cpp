// Reads the project's own source files.
#include "tests/lint/source_tree.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace shard::lint {

std::vector<SourceFile> files_under(const std::vector<std::string>& folders, const std::vector<std::string>& endings) {
  const std::filesystem::path root = std::filesystem::path(TEST_DATA).parent_path();
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    if (!std::filesystem::exists(root / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string path = entry.path().lexically_relative(root).generic_string();
      const bool wanted =
          std::ranges::any_of(endings, [&](const std::string& ending) { return path.ends_with(ending); });
      if (!wanted || !entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      files.push_back({path, {std::istreambuf_iterator<char>(in), {}}});
    }
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

std::vector<std::pair<int, std::string>> code_lines(const std::string& text) {
  std::vector<std::pair<int, std::string>> lines;
  std::istringstream in(text);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::string code;
    const bool include = line.starts_with("#include");
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (quote != 0) {
        if (c == '\\') {
          ++i;
        } else if (c == quote) {
          quote = 0;
          code += c;
        }
        continue;
      }
      if (line.compare(i, 2, "//") == 0) break;
      // 1'000 is no character literal.
      const bool separator = c == '\'' && i > 0 && std::isxdigit(static_cast<unsigned char>(line[i - 1])) != 0;
      if (!include && !separator && (c == '"' || c == '\'')) quote = c;
      code += c;
    }
    lines.emplace_back(number, code);
  }
  return lines;
}

const std::vector<std::string>& code_folders() {
  static const std::vector<std::string> kFolders{"traces", "sim", "executor", "profiler", "viewer"};
  return kFolders;
}

}  // namespace shard::lint
