// One file of tokens, as one of several tools writes it, recognised by what is in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "sim/model/graph.h"
#include "traces/base/input_file.h"
#include "traces/base/result.h"

namespace shard::data {

enum class TokenType : std::uint8_t { u8, u16, i16, i32, u32, i64 };
[[nodiscard]] std::int64_t width(TokenType type);  ///< bytes

/// Open for reading. Read, not mapped: a mapping of a file that is cut short meanwhile is a SIGBUS.
class TokenFile {
 public:
  /// A text: bytes are tokens.
  [[nodiscard]] static Result<TokenFile> open_text(const std::filesystem::path& path);
  /// Megatron's where PATH with .idx in place of .bin stands beside it; llm.c's by its header; else bare uint16, as
  /// nanoGPT writes them. Errors: no_input, malformed (sizes that its header or index contradicts, another type than
  /// integers).
  [[nodiscard]] static Result<TokenFile> open_tokens(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// Leaves the tokens from the share `begin` of them until `end`, which are numbered from 0 again.
  void keep(double begin, double end);

  /// Tokens from number `first` on. Errors: io, and malformed where the file is not what it was when it was opened.
  [[nodiscard]] Result<void> read(std::int64_t first, std::span<std::int64_t> into) const;
  /// Reads all of them once: is every token in the model's vocabulary? Errors: contradiction, with file and position.
  [[nodiscard]] Result<void> check_all(const model::Model& model) const;

 private:
  TokenFile(InputFile file, std::int64_t begin, std::int64_t count, TokenType type)
      : file_(std::move(file)), begin_(begin), count_(count), type_(type) {}

  InputFile file_;
  std::int64_t begin_;  ///< bytes in front of the first token
  std::int64_t count_;
  TokenType type_;
};

/// The head of Megatron's index, and what it says of the file.
struct MegatronIndex {
  TokenType type{};
  std::int64_t sequences = 0;
};
inline constexpr std::int64_t kMegatronHeadBytes = 34;
/// `head`: the first bytes of a file of `bytes`. malformed, without a place, where it is no such index or its tables do
/// not fill the file. Source: Megatron-LM megatron/core/datasets/indexed_dataset.py.
[[nodiscard]] Result<MegatronIndex> parse_megatron_index(std::span<const std::byte> head, std::int64_t bytes);

}  // namespace shard::data
