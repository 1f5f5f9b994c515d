// The files that a command line names: none is written over another, and none that cannot be written is found out late.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "traces/base/result.h"

namespace shard::cli {

/// A file that an option reads or writes.
struct NamedFile {
  enum class Kind {
    file,
    directory,  ///< written into, and made where it is absent
    within,     ///< a file of such a directory, under a name that the command gives it
  };
  std::string option;  ///< as errors name it: "--log d.txt (command line)"
  std::filesystem::path path;
  Kind kind = Kind::file;
};

/// Touches nothing. Fails with Errc::contradiction where a file would be written over one that is read, or two outputs
/// are one path, under whatever names; then with Errc::cannot_create where one cannot be written (can_write()). Whether
/// directories can be is left to who makes them.
[[nodiscard]] Result<void> check_files(std::span<const NamedFile> read, std::span<const NamedFile> written);

}  // namespace shard::cli
