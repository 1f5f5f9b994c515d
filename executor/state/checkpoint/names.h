// What directories of checkpoints are called, and what their names say.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace shard::checkpoint {

/// What a directory is. Hidden ones have 16 digits that nobody else has, and, as long as whoever made or moved them
/// lives, their lock (io.h): a lock that can be taken is a dead maker's.
enum class DirectoryKind : std::uint8_t {
  step,      ///< step-00000010: a checkpoint
  partial,   ///< .step-00000010.16-DIGITS.partial: is being written; or what it has replaced, in one call
  replaced,  ///< .step-00000010.16-DIGITS.replaced: the step's older checkpoint, where two renames are needed for that
  removed,   ///< .step-00000010.16-DIGITS.removed: is being removed
};

struct DirectoryName {
  DirectoryKind kind = DirectoryKind::step;
  std::int64_t step = 0;
};

/// "step-00000010", of 8 digits or more.
[[nodiscard]] std::string step_name(std::int64_t step);
[[nodiscard]] std::string hidden_name(std::int64_t step, DirectoryKind kind);
/// Nothing of any other name.
[[nodiscard]] std::optional<DirectoryName> parse_directory_name(std::string_view name);

/// "a/b" of "a/b/": what has a name and a folder.
[[nodiscard]] std::filesystem::path without_slash(const std::filesystem::path& path);

}  // namespace shard::checkpoint
