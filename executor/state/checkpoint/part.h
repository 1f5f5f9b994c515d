// What one rank writes of a checkpoint: straight into the draft's files, hashed on the way, and read again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/state/checkpoint/layout.h"
#include "executor/state/checkpoint/manifest.h"
#include "traces/base/result.h"

namespace shard::checkpoint {

/// Of each rank, in any process that sees the draft's directory. Not synchronised.
class Part {
 public:
  /// `draft`: Draft::path(), of the same layout. Errors: no_input.
  [[nodiscard]] static Result<Part> open(const std::filesystem::path& draft, const Layout& layout);
  Part(Part&&) noexcept;
  Part& operator=(Part&&) noexcept;
  ~Part();

  /// Bytes of a tensor, from its byte `byte_offset` on; they go to the file at once. Each byte is written by one rank,
  /// once. What follows in a file on what was written to it before (also of the next tensor) becomes one piece with it,
  /// up to the next multiple of 1 MiB. Errors: io.
  [[nodiscard]] Result<void> write(std::int32_t tensor, std::int64_t byte_offset, std::span<const std::byte> bytes);

  /// Reads again what was written, 1 MiB at once, compares its hashes, and flushes every file that was written to down
  /// to the disk. The pieces of each file, as they were written; nothing is written afterwards. Errors: io.
  [[nodiscard]] Result<std::vector<FilePieces>> finish();

 private:
  struct State;
  explicit Part(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Pieces as a text for the first rank, and back. Errors: internal.
[[nodiscard]] std::string pack(const std::vector<FilePieces>& pieces);
[[nodiscard]] Result<std::vector<FilePieces>> unpack(std::string_view text);

}  // namespace shard::checkpoint
