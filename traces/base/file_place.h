// Where a file that is to be written would come to be: what its name leads to, and whether two names are one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "traces/base/result.h"

namespace shard {

/// What a name stands for, symbolic links followed (also those that lead to nothing yet).
struct FilePlace {
  enum class Kind : std::uint8_t {
    file,        ///< a regular file, or nothing yet: can be written beside its name and put in place when whole
    special,     ///< a device, a pipe, a socket: is there to be written to, never to be replaced
    descriptor,  ///< an open file of this process: /dev/stdout, /dev/fd/N
  };
  Kind kind = Kind::file;
  std::filesystem::path path;  ///< without links in its last part
  int descriptor = -1;         ///< Kind::descriptor
};

/// Fails with Errc::cannot_create: links in a circle.
[[nodiscard]] Result<FilePlace> file_place(const std::filesystem::path& path);

/// Whether a file can be written there, without touching anything: a folder that exists and can be written to, no
/// folder of that name, not write-protected. Errc::cannot_create otherwise.
[[nodiscard]] Result<void> can_write(const std::filesystem::path& path);

/// Whether writing to one would change the other: by device and inode where both exist (through links of both kinds),
/// by folder and name where not, also where the folder is absent. Terminals, /dev/null and other character devices are
/// never the same: writing changes nothing that another could read.
[[nodiscard]] bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// PREFIX, a dot and 16 hexadecimal digits that nobody else has.
[[nodiscard]] std::string unique_name(std::string_view prefix);

}  // namespace shard
