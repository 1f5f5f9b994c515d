// Text for people, of which parts came from files: nothing in it commands a terminal or hides what it says.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shard {

/// How a character that is not printed is written instead.
enum class Escape {
  text,  ///< \x1b for a byte, \u{202e} for a character
  json,  ///< \u001b: inside a JSON string it stays the same character
};

/// Escapes control characters (C0 but newline and tab, DEL, C1), characters that change the direction of text, and, in
/// text, bytes that are not UTF-8. What is printed otherwise stays as it is, so it can be applied to a whole page that
/// has no escape sequences of its own.
[[nodiscard]] std::string printable(std::string_view text, Escape how = Escape::text);

/// The same for what has to stay on one line: newlines and tabs too.
[[nodiscard]] std::string printable_line(std::string_view text);

/// How many bytes at the end of the text begin a character that the text breaks off: 0 to 3.
[[nodiscard]] std::size_t bytes_of_broken_end(std::string_view text);

/// A field of a CSV line: printable(), and in quotes where it holds what would end it.
[[nodiscard]] std::string csv_field(std::string_view text);

/// Text of an HTML or SVG element, or of an attribute in double quotes: printable(), and no markup.
[[nodiscard]] std::string markup_text(std::string_view text);

}  // namespace shard
