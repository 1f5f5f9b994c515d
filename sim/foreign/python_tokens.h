// Tokens of Python source: what the restricted reader of configurations parses. Nothing is executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::foreign {

enum class PythonTokenKind : std::uint8_t {
  name,     ///< identifiers and keywords
  integer,  ///< `text` without underscores, with its 0x, 0o or 0b
  real,
  string,     ///< `text` is what the literal says, escapes resolved
  formatted,  ///< an f-string: `text` is what stands between its quotes
  op,
  newline,  ///< ends a logical line
  indent,
  dedent,
  end,
};

struct PythonToken {
  PythonTokenKind kind = PythonTokenKind::end;
  std::string text;
  int line = 0;
  std::size_t begin = 0;  ///< in the source, in bytes
  std::size_t end = 0;
};

/// The last token is `end`. Fails with Errc::malformed: a quote or bracket that is never closed, brackets that do not
/// match, indentation that matches no outer level, a byte that no Python source has, or more than the limits.
///   file  names the source in errors
[[nodiscard]] Result<std::vector<PythonToken>> python_tokens(std::string_view source, std::string_view file);

/// Bytes; configurations that people publish have at most some ten thousand.
inline constexpr std::size_t kMaxScriptBytes = std::size_t{1} << 20;
/// Of brackets in brackets, and of indented blocks in blocks.
inline constexpr std::size_t kMaxScriptDepth = 64;

}  // namespace shard::foreign
