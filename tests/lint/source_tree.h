// The project's own source files, as text, for the checks of the house.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shard::lint {

/// A file by its path from the repository's root, with '/' between folders.
struct SourceFile {
  std::string path;
  std::string text;
};

/// Files under `folders` (paths from the root) whose name ends in one of `endings`, in order of path.
[[nodiscard]] std::vector<SourceFile> files_under(const std::vector<std::string>& folders,
                                                  const std::vector<std::string>& endings);

/// The lines of a text with their numbers from 1, without // comments and the content of string literals.
[[nodiscard]] std::vector<std::pair<int, std::string>> code_lines(const std::string& text);

/// The folders that hold code.
[[nodiscard]] const std::vector<std::string>& code_folders();

}  // namespace shard::lint
