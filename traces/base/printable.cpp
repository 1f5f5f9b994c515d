// One pass; UTF-8 as RFC 3629 allows it: no overlong forms, no surrogates.
#include "traces/base/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace shard {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  ///< 0: the next byte begins no character
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, bytes};
}

/// Unicode's Bidi_Control, and the separators that some terminals take for a new line.
bool directs(std::uint32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string hex(const char* pattern, std::uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), pattern, value);
  return text.data();
}

/// How much of the text is printed as it is without a second look: ASCII that is no control.
std::size_t plain_prefix(std::string_view text) {
  const auto plain = [](char c) { return c >= ' ' && c <= '~'; };
  return static_cast<std::size_t>(std::ranges::find_if_not(text, plain) - text.begin());
}

std::string escaped(std::string_view text, Escape how, bool one_line) {
  std::string safe;
  safe.reserve(text.size());
  for (;;) {
    const std::size_t plain = plain_prefix(text);
    safe += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return safe;
    const Character next = first_of(text);
    const std::size_t bytes = next.bytes == 0 ? 1 : next.bytes;
    const bool kept = (next.code == '\n' || next.code == '\t') && !one_line;
    const bool control = (next.code < 0x20 && !kept) || (next.code >= 0x7F && next.code < 0xA0);
    if (next.bytes == 0)
      safe += how == Escape::text ? hex("\\x%02x", static_cast<unsigned char>(text[0])) : std::string(1, text[0]);
    else if (!control && !directs(next.code))
      safe += text.substr(0, bytes);
    else if (how == Escape::json)
      safe += hex("\\u%04x", next.code);
    else if (one_line && (next.code == '\n' || next.code == '\t'))
      safe += next.code == '\n' ? "\\n" : "\\t";
    else
      safe += hex(next.code < 0x80 ? "\\x%02x" : "\\u{%x}", next.code);
    text.remove_prefix(bytes);
  }
}

}  // namespace

std::string printable(std::string_view text, Escape how) {
  return escaped(text, how, false);
}

std::string printable_line(std::string_view text) {
  return escaped(text, Escape::text, true);
}

std::size_t bytes_of_broken_end(std::string_view text) {
  for (std::size_t tail = 1; tail <= std::min<std::size_t>(3, text.size()); ++tail) {
    const auto byte = static_cast<unsigned char>(text[text.size() - tail]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const std::size_t whole = byte < 0xC2 || byte > 0xF4 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return whole > tail ? tail : 0;
  }
  return 0;
}

std::string csv_field(std::string_view text) {
  const std::string shown = printable(text);
  if (shown.find_first_of(",\"\n") == std::string::npos) return shown;
  std::string quoted = "\"";
  for (const char c : shown) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

std::string markup_text(std::string_view text) {
  std::string safe;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

}  // namespace shard
