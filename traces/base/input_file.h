// The one way a file is opened to be read: nothing that has no end or no beginning is waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "traces/base/result.h"

namespace shard {

/// Is there nothing of this name? What is there and cannot be read is not absent.
[[nodiscard]] bool is_absent(const std::filesystem::path& path);

/// A file open for reading. What fails is Errc::no_input or io with the reason alone ("Permission denied") and the
/// path: the caller says what it wanted of it.
class InputFile {
 public:
  /// Whatever the path names; never waits for the other end of a pipe. For readers that want regular() files.
  [[nodiscard]] static Result<InputFile> open(const std::filesystem::path& path);
  /// For readers that take the bytes in their order: of a regular file, a device, a descriptor (/dev/stdin, a shell's
  /// <(...)) or a pipe. A directory is refused, and a pipe with a name that nobody has opened for writing two seconds
  /// later: whoever starts a writer beside this program has done so by then.
  [[nodiscard]] static Result<InputFile> open_stream(const std::filesystem::path& path);

  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] bool regular() const { return regular_; }
  /// Which pipe without a name it is (a shell's <(...)); nothing of any other file.
  [[nodiscard]] std::optional<std::uint64_t> nameless_pipe() const { return nameless_pipe_; }
  /// Of a regular file, when it was opened.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

  /// The next bytes, as many as there are now but at least one; 0 at the end.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> into);
  /// The bytes from `offset` on; fewer than asked for only where the file ends. Of regular files.
  [[nodiscard]] Result<std::size_t> read_at(std::int64_t offset, std::span<std::byte> into) const;

 private:
  InputFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  [[nodiscard]] Result<void> await_writer();

  std::filesystem::path path_;
  int descriptor_ = -1;
  bool regular_ = false;
  bool pipe_ = false;
  std::optional<std::uint64_t> nameless_pipe_{};
  std::int64_t bytes_ = 0;
  std::optional<std::byte> first_{};  ///< that was read to see whether there is a writer
};

}  // namespace shard
