// How long files and functions are.
#pragma once

#include <string>
#include <vector>

#include "tests/lint/source_tree.h"

namespace shard::lint {

constexpr int kMostLinesOfAFile = 500;
constexpr int kMostLinesOfAFunction = 80;

/// What of a file is longer than that, as "path:line: what". A function, or any block in one, is measured by how
/// clang-format indents it: its last line is a lone '}', its first the nearest line above that is indented as much and
/// is no blank line, directive or part of a raw string. A lambda counts too, whatever follows its '}'; tables and
/// classes, which end in '};', do not.
[[nodiscard]] std::vector<std::string> size_faults(const SourceFile& file);

}  // namespace shard::lint
