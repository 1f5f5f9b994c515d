// A checkpoint that is there: its manifest, its tensors, and any bytes of them, none unless its hash is right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "executor/state/checkpoint/manifest.h"
#include "executor/state/safetensors.h"
#include "traces/base/result.h"

namespace shard::checkpoint {

/// The manifest of a checkpoint's directory. Errors: no_input where it has none, malformed, io.
[[nodiscard]] Result<Manifest> read_manifest(const std::filesystem::path& checkpoint);

/// Holds one piece (1 MiB), the manifest and the tensors' names. Its functions may be called from several threads.
class Reader {
 public:
  /// Checks the manifest, every file's size, and the headers, whose hashes are checked before anything is read out of
  /// them. Errors: no_input, malformed, io.
  [[nodiscard]] static Result<Reader> open(const std::filesystem::path& checkpoint);
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  [[nodiscard]] const std::filesystem::path& path() const;
  [[nodiscard]] const Manifest& manifest() const;
  /// Of the safetensors files, numbered as the layout (layout.h) that was saved.
  [[nodiscard]] std::int32_t tensors() const;
  [[nodiscard]] std::optional<std::int32_t> find(std::string_view tensor) const;
  [[nodiscard]] const safetensors::Tensor& tensor(std::int32_t number) const;
  /// Which has its bytes.
  [[nodiscard]] const FileEntry& file_of(std::int32_t number) const;

  /// Bytes of a tensor from its byte `byte_offset` on. All pieces that they touch are read and their hashes checked;
  /// the last one is kept, for who reads on. Errors: malformed, with file, bytes and tensor; io. What is in `into` then
  /// is nothing.
  [[nodiscard]] Result<void> read(std::int32_t tensor, std::int64_t byte_offset, std::span<std::byte> into) const;
  /// A file that is no tensors'. Errors: no_input where there is none of that name; as read().
  [[nodiscard]] Result<std::string> small_file(std::string_view name) const;
  /// Reads every byte of every file. `after_piece` is called behind each piece that is right. Errors: as read().
  [[nodiscard]] Result<void> verify(const std::function<void()>& after_piece = {}) const;
  /// From files, so far; without the manifest.
  [[nodiscard]] std::int64_t bytes_read() const;

 private:
  struct State;
  explicit Reader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace shard::checkpoint
