// The one way a file is written: whole or not at all, never over a device, and nothing half-written stays behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "traces/base/result.h"

namespace shard {

/// When a file can be seen under its name.
enum class Appears : std::uint8_t {
  whole,    ///< from finish() on. Until then what had the name keeps it; without finish() nothing changes
  growing,  ///< from the first flush() of anything on, for those who follow it. Until then what had the name keeps it.
            ///< It is replaced, not overwritten, so that whoever has it open keeps reading it. Without finish() the
            ///< file ends with the last flush()
  temporary,  ///< from the first byte, for this run only: registered in temporary_files, which removes it at the end.
              ///< The name must be new
};

/// Symbolic links are followed, so that the file they lead to is written and they stay. Devices, pipes and open
/// descriptors (/dev/null, /dev/stdout) are written to directly, whatever `Appears` says. A replaced file's permissions
/// are kept. Of several writers of one name the last to finish wins, with its whole file.
///
/// What stays of a process that is killed (SIGKILL) or crashes: of a file that has its name, what was written. Of one
/// that has not, nothing, but for the moment in which an older one is replaced: then it may stay whole, as
/// .NAME.16-DIGITS.partial beside it. On file systems without O_TMPFILE (NFS) it has such a name from the beginning,
/// and may stay cut short; the signals that end a process in order (stop.h) remove it.
///
/// Bytes are buffered. The first failure is kept: flush() and finish() return it. Not synchronised.
class OutputFile {
 public:
  /// Fails with Errc::cannot_create.
  [[nodiscard]] static Result<OutputFile> create(const std::filesystem::path& path, Appears appears = Appears::whole);

  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  /// Without finish() as Appears says.
  ~OutputFile();

  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes);
  /// Writes what is buffered. Fails with Errc::io; of a growing file also as finish().
  [[nodiscard]] Result<void> flush();
  /// The same, down to the disk.
  [[nodiscard]] Result<void> sync();
  /// A path by which this process reads what was flushed so far, before finish(). Not of devices and pipes.
  [[nodiscard]] std::filesystem::path readable_at() const;
  /// Writes, closes and puts in place; the file is unusable afterwards. Fails with Errc::io (no room), and with
  /// Errc::cannot_create where the name cannot be given.
  [[nodiscard]] Result<void> finish();
  /// Gives the file up: a growing or temporary one is removed too.
  void discard();

 private:
  struct State;
  explicit OutputFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// One text as a file. Fails as OutputFile does.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, std::string_view text);

/// What is in another file, as write_file(). Errc::no_input or Errc::io where that cannot be read.
[[nodiscard]] Result<void> copy_to_file(const std::filesystem::path& from, const std::filesystem::path& path);

}  // namespace shard
