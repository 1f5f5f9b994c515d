// Tokens of a shell script: words as they are written, operators, line ends. Here-documents are skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/foreign/shell_text.h"
#include "traces/base/result.h"

namespace shard::foreign {

enum class ShellTokenKind : std::uint8_t {
  word,
  op,          ///< ; & && || | |& ( ) ;; and a line's end, "\n"
  redirect,    ///< > and its like, with the word behind it
  array,       ///< NAME=( words )
  arithmetic,  ///< (( expression ))
  end,
};

struct ShellToken {
  ShellTokenKind kind = ShellTokenKind::end;
  std::string op{};                ///< of an operator; NAME or NAME+ of an array
  ShellText raw{};                 ///< of a word with its quotes; of an arithmetic expression
  std::vector<ShellText> items{};  ///< of an array
  int line = 0;
};

/// The last token is `end`. Fails with Errc::malformed: a quote or bracket that is never closed, or too many brackets
/// in brackets.
[[nodiscard]] Result<std::vector<ShellToken>> shell_tokens(const ShellText& source, std::string_view file);

/// Where what opens at `at` ends, one behind its last letter: 'x', "x", `x`, ${x}, $(x), $((x)); of $NAME the name's
/// end, else at + 1. Fails as above.
[[nodiscard]] Result<std::size_t> shell_piece_end(const ShellText& text, std::size_t at, std::string_view file);

}  // namespace shard::foreign
