// The files that a command line names: none is written over another, and none that cannot be written is found out late.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "traces/base/result.h"

namespace shard::cli {

/// A file that an option reads or writes.
struct NamedFile {
  std::string option;  ///< as errors name it: "--log d.txt (command line)"
  std::filesystem::path path;
};

/// Touches nothing. Fails with Errc::contradiction where a file would be written over one that is read, or two outputs
/// are one file, under whatever names; then with Errc::cannot_create where one cannot be written (can_write()).
[[nodiscard]] Result<void> check_files(std::span<const NamedFile> read, std::span<const NamedFile> written);

}  // namespace shard::cli
