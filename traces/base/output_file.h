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
  whole,      ///< from finish() on. Until then what had the name keeps it; without finish() nothing changes
  growing,    ///< from the first byte, for those who follow it. An older regular file is replaced, not overwritten, so
              ///< that whoever has it open keeps reading it. Without finish() it ends with the last flush()
  temporary,  ///< from the first byte, for this run only: registered in temporary_files, which removes it at the end.
              ///< The name must be new
};

/// Symbolic links are followed, so that the file they lead to is written and they stay. Devices, pipes and open
/// descriptors (/dev/null, /dev/stdout) are written to directly, whatever `Appears` says. A replaced file's permissions
/// are kept. Of several writers of one name the last to finish wins, with its whole file.
///
/// Bytes are buffered. The first failure is kept: flush() and finish() return it. Not synchronised.
class OutputFile {
 public:
  /// Fails with Errc::cannot_create.
  [[nodiscard]] static Result<OutputFile> create(const std::filesystem::path& path, Appears appears = Appears::whole);

  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  /// Without finish() as Appears says. A growing file that nothing was flushed to is removed.
  ~OutputFile();

  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes);
  /// Writes what is buffered. Fails with Errc::io.
  [[nodiscard]] Result<void> flush();
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

}  // namespace shard
