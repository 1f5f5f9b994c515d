// One character of look-ahead; strings are copied run by run from the window.
#include "traces/import/json_reader.h"

#include <charconv>

namespace shard::import {

using Token = JsonReader::Token;

Token JsonReader::fail(const char* why) {
  error_ = why;
  return Token::error;
}

Token JsonReader::next() {
  for (;;) {
    const int c = source_.get();
    switch (c) {
      case ' ':
      case '\t':
      case '\r':
      case '\n': continue;
      default: break;
    }
    at_ = source_.offset() - (c >= 0 ? 1 : 0);
    if (c < 0) {
      if (finished_) return Token::end;
      error_ = source_.fault().empty() ? "the text ends inside a value" : source_.fault().c_str();
      return Token::end;
    }
    if (finished_) return fail("something follows the end of the JSON value");
    switch (expect_) {
      case Expect::colon:
        if (c != ':') return fail("a ':' is expected");
        expect_ = Expect::value;
        continue;
      case Expect::comma:
        if (c == ',') {
          expect_ = open_.back() == '{' ? Expect::key : Expect::value;
          continue;
        }
        if (c == '}' || c == ']') return close(c == '}');
        return fail("a ',' or the end of the object or array is expected");
      case Expect::first_key:
      case Expect::key:
        if (c == '}') return close(true);
        if (c != '"') return fail("a key is expected");
        expect_ = Expect::colon;
        return string_token();
      case Expect::value:
        if (c == ']' && !open_.empty() && open_.back() == '[') return close(false);
        return value(c);
    }
  }
}

Token JsonReader::close(bool object) {
  if (open_.empty() || (open_.back() == '{') != object) return fail("the wrong closing bracket");
  open_.pop_back();
  done();
  finished_ = open_.empty();
  return object ? Token::end_object : Token::end_array;
}

Token JsonReader::value(int c) {
  switch (c) {
    case '{':
    case '[':
      if (open_.size() >= kMaxDepth) return fail("nested too deep");
      open_ += static_cast<char>(c);
      expect_ = c == '{' ? Expect::first_key : Expect::value;
      return c == '{' ? Token::begin_object : Token::begin_array;
    case '"': {
      const Token token = string_token();
      if (token == Token::string) {
        done();
        finished_ = open_.empty();
      }
      return token;
    }
    default: return scalar(c);
  }
}

Token JsonReader::scalar(int c) {
  text_.clear();
  const auto belongs = [](int x) {
    return (x >= '0' && x <= '9') || (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || x == '-' || x == '+' ||
           x == '.';
  };
  if (!belongs(c)) return fail("a value is expected");
  text_ += static_cast<char>(c);
  while (belongs(source_.peek())) {
    if (text_.size() >= 64) return fail("a value is expected");
    text_ += static_cast<char>(source_.get());
  }
  // At the end of a cut file the digits that are missing could be any.
  if (source_.peek() < 0 && !open_.empty()) {
    at_ = source_.offset();
    error_ = source_.fault().empty() ? "the text ends inside a value" : source_.fault().c_str();
    return Token::end;
  }
  done();
  finished_ = open_.empty();
  double number = 0;
  const auto [end, fault] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
  if (end == text_.data() + text_.size() && (fault == std::errc{} || fault == std::errc::result_out_of_range)) {
    const char last = text_.back();
    return (last >= '0' && last <= '9') || last == '.' ? Token::number
                                                       : Token::word;  // from_chars reads "nan" and "inf"
  }
  for (const std::string_view word : {"true", "false", "null", "NaN", "Infinity", "-Infinity", "-NaN", "-nan"}) {
    if (text_ == word) return Token::word;
  }
  return fail("neither a number nor true, false or null");
}

Token JsonReader::string_token() {
  text_.clear();
  for (;;) {
    const std::string_view window = source_.window();
    if (window.empty()) {
      at_ = source_.offset();
      error_ = source_.fault().empty() ? "the text ends inside a string" : source_.fault().c_str();
      return Token::end;
    }
    std::size_t run = 0;
    while (run < window.size() && window[run] != '"' && window[run] != '\\') ++run;
    if (text_.size() < kMaxText) text_.append(window.substr(0, std::min(run, kMaxText - text_.size())));
    source_.consume(run);
    if (run == window.size()) continue;
    if (source_.get() == '"') return Token::string;
    escape();
  }
}

void JsonReader::escape() {
  const int c = source_.get();
  switch (c) {
    case -1: return;
    case 'n': return add('\n');
    case 't': return add('\t');
    case 'r': return add('\r');
    case 'b': return add('\b');
    case 'f': return add('\f');
    case 'u': break;
    case '"':
    case '\\':
    case '/': return add(static_cast<char>(c));
    default:  // "C:\data" as it stands
      add('\\');
      return add(static_cast<char>(c));
  }
  const int first = hex4();
  if (first < 0) return add('?');
  auto code = static_cast<std::uint32_t>(first);
  if (code >= 0xd800 && code < 0xdc00 && source_.peek(2) == "\\u") {
    source_.consume(2);
    const int second = hex4();
    code = second >= 0xdc00 && second < 0xe000
               ? 0x10000 + ((code - 0xd800) << 10) + (static_cast<std::uint32_t>(second) - 0xdc00)
               : 0xfffd;
  } else if (code >= 0xd800 && code < 0xe000) {
    code = 0xfffd;
  }
  code_point(code);
}

int JsonReader::hex4() {
  const std::string_view digits = source_.peek(4);
  std::uint32_t code = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() != 4 || fault != std::errc{} || end != digits.data() + 4) return -1;
  source_.consume(4);
  return static_cast<int>(code);
}

void JsonReader::code_point(std::uint32_t code) {
  if (code < 0x80) {
    add(static_cast<char>(code));
  } else if (code < 0x800) {
    add(static_cast<char>(0xc0 | code >> 6));
    add(static_cast<char>(0x80 | (code & 0x3f)));
  } else if (code < 0x10000) {
    add(static_cast<char>(0xe0 | code >> 12));
    add(static_cast<char>(0x80 | (code >> 6 & 0x3f)));
    add(static_cast<char>(0x80 | (code & 0x3f)));
  } else {
    add(static_cast<char>(0xf0 | code >> 18));
    add(static_cast<char>(0x80 | (code >> 12 & 0x3f)));
    add(static_cast<char>(0x80 | (code >> 6 & 0x3f)));
    add(static_cast<char>(0x80 | (code & 0x3f)));
  }
}

bool JsonReader::skip(Token first) {
  if (first == Token::end || first == Token::error) return false;
  if (first != Token::begin_object && first != Token::begin_array) return true;
  const std::size_t until = depth() - 1;
  while (depth() > until) {
    const Token token = next();
    if (token == Token::end || token == Token::error) return false;
  }
  return true;
}

namespace {

/// The decimal `text` times 10^shift, as an integer.
bool scaled(std::string_view text, int shift, bool round, std::int64_t& result) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int exponent = 0;
  if (const std::size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view digits = text.substr(e + 1);
    if (!digits.empty() && digits[0] == '+') digits.remove_prefix(1);
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (fault != std::errc{} || end != digits.data() + digits.size() || exponent < -400 || exponent > 400) return false;
    text = text.substr(0, e);
  }
  const std::size_t dot = std::min(text.find('.'), text.size());
  // Position of the decimal point in the digits after scaling.
  const std::int64_t point = static_cast<std::int64_t>(dot) + exponent + shift;
  constexpr std::int64_t kLimit = std::int64_t{1} << 62;
  std::int64_t value = 0, position = 0;
  bool any = false, half = false;
  for (const char c : text) {
    if (c == '.') continue;
    if (c < '0' || c > '9') return false;
    any = true;
    if (position < point) {
      if (value > (kLimit - 9) / 10) return false;
      value = value * 10 + (c - '0');
    } else if (position == point) {
      half = c >= '5';
    }
    ++position;
  }
  if (!any || text.find('.', dot + 1) != std::string_view::npos) return false;
  for (; position < point && value != 0; ++position) {
    if (value > (kLimit - 9) / 10) return false;
    value *= 10;
  }
  if (round && half) ++value;
  result = negative ? -value : value;
  return true;
}

}  // namespace

bool thousandfold(std::string_view text, std::int64_t& result) {
  return scaled(text, 3, true, result);
}

bool to_integer(std::string_view text, std::int64_t& result) {
  return scaled(text, 0, false, result);
}

bool to_address(std::string_view text, std::uint64_t& result) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), result, base);
  if (fault == std::errc{} && end == text.data() + text.size()) return true;
  if (base == 10 && text.starts_with('-')) {  // a 64-bit address printed as signed
    std::int64_t value = 0;
    const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    result = static_cast<std::uint64_t>(value);
    return problem == std::errc{} && stop == text.data() + text.size();
  }
  return false;
}

}  // namespace shard::import
