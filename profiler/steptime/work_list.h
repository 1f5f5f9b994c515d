// What a program gave the GPU in a dry run, as the stand-in wrote it down.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/standin/work.h"
#include "traces/base/result.h"

namespace shard::steptime {

using standin::Work;

struct WorkItem {
  Work kind = Work::kernel;
  std::int64_t time_ns = 0;  ///< since the epoch
  std::int64_t thread = 0, capture = 0, stream = 0;
  std::array<std::int64_t, 8> numbers{};  ///< as standin/work.h says of the kind
  std::int32_t name = -1;                 ///< into names; -1: none
};

struct WorkList {
  std::vector<WorkItem> items;  ///< in the order in which they were given
  std::vector<std::string> names;

  [[nodiscard]] std::string_view name_of(const WorkItem& item) const {
    return item.name < 0 ? std::string_view() : std::string_view(names[static_cast<std::size_t>(item.name)]);
  }
};

/// A last line that is not whole, of a process that was killed, is left out. Errors: malformed, with the line.
[[nodiscard]] Result<WorkList> parse_work(std::string_view text, const std::string& where);
/// Errors: no_input, malformed.
[[nodiscard]] Result<WorkList> read_work(const std::filesystem::path& path);

}  // namespace shard::steptime
