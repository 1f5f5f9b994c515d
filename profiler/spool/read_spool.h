// Reads what a process left in its spool, while it runs or when it has ended in whatever way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/spool/event.h"
#include "traces/base/result.h"

namespace shard::profiler {

struct SpoolContent {
  std::int32_t process = 0;
  std::int64_t clock_ns = 0;
  std::int64_t wall_ns = 0;
  std::int32_t rank = -1;
  std::vector<Event> events{};  ///< block by block in the order in which blocks were begun; a thread's in its order
  std::unordered_map<NameNumber, std::string> names{};
  std::int64_t dropped = 0;      ///< found no room, or were lost before they came to the spool
  std::int64_t overwritten = 0;  ///< were there, and made room for later ones
  std::int64_t names_lost = 0;

  [[nodiscard]] std::string_view name_of(NameNumber number) const {
    const auto at = names.find(number);
    return at == names.end() ? std::string_view() : std::string_view(at->second);
  }
};

/// What is whole of it: a block that breaks the layout's rules is left out, an event of an unknown kind too; both count
/// as dropped. Memory: as much as the files' bytes, plus 100 a name.
/// Errc::no_input, Errc::malformed where it is no spool.
[[nodiscard]] Result<SpoolContent> read_spool(const std::filesystem::path& path);
[[nodiscard]] Result<SpoolContent> read_spool(std::span<const std::byte> events, std::span<const std::byte> names,
                                              std::string_view label = "spool");

}  // namespace shard::profiler
