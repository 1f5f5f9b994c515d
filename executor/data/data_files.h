// Which files an argument of --data names.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::data {

struct DataFile {
  std::filesystem::path path;
  bool text = false;  ///< bytes are tokens
};

/// In the order in which their windows are numbered: of a list with commas that order, of a pattern with * or ? and of a
/// folder (its *.bin) by name. A name without .bin of which .bin and .idx exist is Megatron's prefix. Errors: usage
/// (what names no kind of data), no_input (a pattern or folder without a file).
[[nodiscard]] Result<std::vector<DataFile>> data_files(std::string_view argument);

}  // namespace shard::data
