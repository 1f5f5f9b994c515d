// Reads JSON piece by piece from a stream: a trace of gigabytes never is a document in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/import/byte_source.h"

namespace shard::import {

/// A pull parser. Tolerant where profilers are known to be sloppy: control characters inside strings, unknown escapes,
/// bytes that are not UTF-8, NaN and Infinity, a comma too many. Anything else that is not JSON is Token::error, after
/// which at() is the byte that does not belong there. Nesting is limited (kMaxDepth).
class JsonReader {
 public:
  enum class Token : std::uint8_t {
    begin_object,
    end_object,
    begin_array,
    end_array,
    string,
    number,
    word,
    end,
    error
  };

  explicit JsonReader(ByteSource& source) : source_(source) {}

  /// The next token. Keys of an object are strings; the value follows. Commas and colons are checked and passed over.
  [[nodiscard]] Token next();
  /// Passes over the rest of the value whose first token was `first`. False where the text ends or is no JSON.
  [[nodiscard]] bool skip(Token first);

  /// Of a string (unescaped; cut after kMaxText bytes), number or word (true, false, null, NaN).
  [[nodiscard]] std::string_view text() const { return text_; }
  /// Of the byte that error() is about.
  [[nodiscard]] std::uint64_t at() const { return at_; }
  /// What is wrong, after Token::error or an end inside a value.
  [[nodiscard]] const char* error() const { return error_; }
  /// Open objects and arrays.
  [[nodiscard]] std::size_t depth() const { return open_.size(); }

  static constexpr std::size_t kMaxText = 1u << 20;
  static constexpr std::size_t kMaxDepth = 512;

 private:
  /// What may come next.
  enum class Expect : std::uint8_t { value, first_key, key, colon, comma };

  Token fail(const char* why);
  Token value(int c);
  Token close(bool object);
  Token string_token();
  Token scalar(int c);
  void escape();
  void code_point(std::uint32_t code);
  [[nodiscard]] int hex4();
  void add(char c) {
    if (text_.size() < kMaxText) text_ += c;
  }
  /// After a complete value.
  void done() { expect_ = open_.empty() ? Expect::value : Expect::comma; }

  ByteSource& source_;
  std::string open_;  // '{' or '[' per level
  Expect expect_ = Expect::value;
  bool finished_ = false;  // the outermost value was read
  std::string text_;
  std::uint64_t at_ = 0;
  const char* error_ = "";
};

/// A decimal number times 1000, rounded to the nearest integer (halves away from zero): microseconds to nanoseconds
/// without going through a double. False where the text is no number or the result is beyond +-2^62.
[[nodiscard]] bool thousandfold(std::string_view text, std::int64_t& result);

/// A decimal integer, or a number whose fraction is cut off; false beyond +-2^62.
[[nodiscard]] bool to_integer(std::string_view text, std::int64_t& result);

/// "123", "0x7f..", or 18 digits and more, modulo 2^64: addresses.
[[nodiscard]] bool to_address(std::string_view text, std::uint64_t& result);

}  // namespace shard::import
