// Reads JSON as DeepSpeed does: by Hjson, which takes comments, commas too many or too few, and texts without quotes.
// Syntax: https://hjson.github.io/syntax.html; where that leaves room, what the package hjson 3.1 for Python does.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "sim/foreign/document.h"

namespace shard::foreign {
namespace {

constexpr bool is_hjson_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
constexpr bool is_hjson_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr std::string_view kHjsonPunctuators = "{}[],:";
/// What Python's strip() takes away.
constexpr std::string_view kStripped = " \t\n\r\v\f\x1c\x1d\x1e\x1f";

std::string_view stripped(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kStripped);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kStripped) - begin + 1);
}

/// Python opens files as text: every end of a line is one "\n".
std::string with_unix_lines(std::string_view content) {
  std::string lines;
  lines.reserve(content.size());
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (content[i] != '\r')
      lines += content[i];
    else if (i + 1 == content.size() || content[i + 1] != '\n')
      lines += '\n';
  }
  return lines;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0U | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0U | (code >> 12));
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xF0U | (code >> 18));
    tail(12), tail(6), tail(0);
  }
}

/// Whether bytes are UTF-8: no code too long, no surrogate, none above U+10FFFF.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) -> std::uint32_t {
      return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
    };
    const std::uint32_t first = byte(i);
    const std::size_t more = first < 0x80 ? 0 : first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    std::uint32_t code = more == 0 ? first : first & (0x3FU >> more);
    if (more > 0 && (first < 0xC2 || first > 0xF4)) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      if ((byte(i + k) & 0xC0U) != 0x80U) return false;
      code = (code << 6) | (byte(i + k) & 0x3FU);
    }
    if ((more == 2 && code < 0x800) || (more == 3 && (code < 0x10000 || code > 0x10FFFF))) return false;
    if (code >= 0xD800 && code < 0xE000) return false;
    i += more + 1;
  }
  return true;
}

class HjsonReader {
 public:
  HjsonReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Result<Value> run() {
    Value root;
    const bool marked = text_.starts_with("\xEF\xBB\xBF");  // a marked file that is empty is refused
    if (marked) at_ = 3;
    skip();
    root.kind = Kind::table;
    root.line = line();
    const bool done =
        peek() == '{' || peek() == '[' ? value(root, 1) : (at_end() && !marked) || members(root, 1, false);
    if (done) skip();
    if (done && fault_.empty() && !at_end()) refuse("something stands behind its end");
    if (done && fault_.empty() && !has_pointers_in_bounds(root))
      refuse("names are longer than any configuration has them");
    if (fault_.empty()) return root;
    return Error{.code = Errc::malformed,
                 .what = fault_,
                 .where = where_ + ":" + std::to_string(line()),
                 .help = "JSON; comments and commas too many are taken, as DeepSpeed takes them"};
  }

 private:
  bool refuse(std::string why) {
    if (fault_.empty()) fault_ = std::move(why);
    return false;
  }

  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool begins_comment(std::size_t at) const {
    if (at >= text_.size()) return false;
    return text_[at] == '#' || text_.substr(at, 2) == "//" || text_.substr(at, 2) == "/*";
  }

  /// The line of the place that is read, and where it begins; asked with places that only grow.
  int line() {
    for (const std::size_t to = std::min(at_, text_.size()); counted_ < to; ++counted_)
      if (text_[counted_] == '\n') ++line_, line_begin_ = counted_ + 1;
    return line_;
  }
  /// Where the line that is read ends. Kept, because many values may stand on one line.
  std::size_t line_end() {
    if (line_end_ < at_ || line_end_ == 0) line_end_ = std::min(text_.find('\n', at_), text_.size());
    return line_end_;
  }

  /// Over white space and comments. A comment that is never closed is a fault.
  bool skip() {
    while (!at_end()) {
      if (is_hjson_space(peek())) {
        ++at_;
      } else if (!begins_comment(at_)) {
        break;
      } else if (peek(1) == '*' && peek() == '/') {
        const std::size_t close = text_.find("*/", at_ + 2);
        if (close == std::string_view::npos) return refuse("a comment /* is never closed");
        at_ = close + 2;
      } else {
        at_ = std::min(text_.find('\n', at_), text_.size());
      }
    }
    return true;
  }

  bool value(Value& into, std::size_t depth) {
    if (++made_ > kMostValues) return refuse("more values than any configuration has");
    if (depth > kDeepest) return refuse("tables and lists are nested too deeply");
    into.line = line();
    switch (peek()) {
      case '{': return into.kind = Kind::table, ++at_, members(into, depth, true);
      case '[': return into.kind = Kind::list, ++at_, items(into, depth);
      case '"':
      case '\'':
        into.kind = Kind::text;
        return text_.substr(at_, 3) == "'''" ? lines_of_text(into.text) : quoted(into.text);
      default: return bare(into);
    }
  }

  bool members(Value& table, std::size_t depth, bool braced) {
    if (!skip()) return false;
    if (braced && peek() == '}') return ++at_, true;
    while (true) {
      std::string key;
      if (!name(key) || !skip()) return false;
      if (peek() != ':') return refuse("a ':' is missing behind '" + key + "'");
      ++at_;
      if (table.members.size() >= kMostKeys) return refuse("a table has more keys than any configuration");
      if (table.find(key) != nullptr) return refuse("the key '" + key + "' stands twice in one table");
      table.members.push_back({std::move(key), {}});
      if (!skip() || !value(table.members.back().value, depth + 1) || !past_comma()) return false;
      if (braced && peek() == '}') return ++at_, true;
      if (!braced && at_end()) return true;
    }
  }

  bool items(Value& list, std::size_t depth) {
    if (!skip()) return false;
    while (peek() != ']') {
      if (at_end()) return refuse("a list is never closed");
      if (!value(list.items.emplace_back(), depth + 1) || !past_comma()) return false;
    }
    return ++at_, true;
  }

  /// One comma, or none.
  bool past_comma() {
    if (!skip()) return false;
    if (peek() != ',') return true;
    ++at_;
    return skip();
  }

  bool name(std::string& key) {
    if (peek() == '"' || peek() == '\'') return quoted(key);
    const std::size_t begin = at_;
    const std::size_t end = text_.find_first_of(":{}[],", at_);
    if (end == std::string_view::npos) return refuse("it ends where a key was expected");
    const std::string_view found = text_.substr(begin, end - begin);
    if (text_[end] != ':')
      return refuse("a '" + std::string(1, text_[end]) + "' stands where a key or its ':' was expected");
    const std::size_t last = found.find_last_not_of(" \t\n\r");
    if (last == std::string_view::npos) return refuse("a ':' without a key");
    key = found.substr(0, last + 1);
    if (key.find_first_of(" \t\n\r") != std::string::npos)
      return refuse("white space in the key '" + key + "', which has no quotes");
    at_ = end;
    return true;
  }

  bool quoted(std::string& into) {
    const char quote = text_[at_++];
    while (!at_end()) {
      const char c = text_[at_++];
      if (c == quote) return true;
      if (static_cast<unsigned char>(c) < 0x20) return refuse("a text in quotes does not end on its line");
      if (c != '\\')
        into += c;
      else if (!escape(into))
        return false;
    }
    return refuse("a text in quotes is never closed");
  }

  bool escape(std::string& into) {
    constexpr std::string_view kNames = "\"'\\/bfnrt";
    constexpr std::string_view kMeant = "\"'\\/\b\f\n\r\t";
    const char c = peek();
    ++at_;
    if (const std::size_t found = kNames.find(c); found != std::string_view::npos && c != '\0')
      return into += kMeant[found], true;
    if (c != 'u') return refuse("an escape that JSON has not");
    std::optional<std::uint32_t> code = four_digits();
    if (code && (*code & 0xFC00U) == 0xD800U && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const std::optional<std::uint32_t> low = four_digits();
      code = low && (*low & 0xFC00U) == 0xDC00U ? std::optional(0x10000U + ((*code - 0xD800U) << 10) + (*low - 0xDC00U))
                                                : std::nullopt;
    }
    if (!code || (*code >= 0xD800U && *code < 0xE000U)) return refuse("an escape \\u that is no character");
    append_utf8(into, *code);
    return true;
  }

  std::optional<std::uint32_t> four_digits() {
    std::uint32_t code = 0;
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (fault != std::errc() || end != digits.data() + 4) return std::nullopt;
    at_ += 4;
    return code;
  }

  /// At most `most` of the white space that indents a line.
  void skip_indent(std::size_t most) {
    while (most-- > 0 && (peek() == ' ' || peek() == '\t')) ++at_;
  }

  /// '''a text of several lines''', each without the indentation of the first quote.
  bool lines_of_text(std::string& into) {
    static_cast<void>(line());
    const std::size_t indent = at_ - line_begin_;
    at_ += 3;
    skip_indent(text_.size());
    if (peek() == '\n') ++at_, skip_indent(indent);
    while (!at_end()) {
      if (text_.substr(at_, 3) == "'''") {
        at_ += 3;
        if (into.ends_with('\n')) into.pop_back();
        return true;
      }
      into += text_[at_];
      if (text_[at_++] == '\n') skip_indent(indent);
    }
    return refuse("a text in ''' is never closed");
  }

  /// null, true, false, a number, or else the rest of the line as a text.
  bool bare(Value& into) {
    if (at_end()) return refuse("it ends where a value was expected");
    if (kHjsonPunctuators.find(peek()) != std::string_view::npos)
      return refuse("a '" + std::string(1, peek()) + "' stands where a value was expected");
    const int line = this->line();
    const std::size_t end_of_line = line_end();
    std::size_t end = at_;
    const auto ends = [&] {
      return text_[end] == ',' || text_[end] == '}' || text_[end] == ']' || begins_comment(end);
    };
    while (end < end_of_line && !ends()) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    if (constant(stripped(word), into) || number(word, into)) {
      at_ = end;
    } else {
      into = text_value(std::string(stripped(text_.substr(at_, end_of_line - at_))), line);
      at_ = end_of_line;
    }
    into.line = line;
    return fault_.empty();
  }

  static bool constant(std::string_view word, Value& into) {
    if (word == "null") return into.kind = Kind::null, true;
    if (word == "true" || word == "false") return into = boolean_value(word == "true", 0), true;
    return false;
  }

  /// A number as JSON writes it, blanks behind it; one with a fraction or an exponent that is a whole number below 1e10
  /// is a whole number.
  bool number(std::string_view word, Value& into) {
    word = word.substr(0, word.find_last_not_of(" \t") + 1);
    std::size_t i = word.starts_with('-') ? 1 : 0;
    const auto digits = [&] {
      const std::size_t begin = i;
      while (i < word.size() && is_hjson_digit(word[i])) ++i;
      return i - begin;
    };
    const bool zero = i < word.size() && word[i] == '0';
    const std::size_t whole = digits();
    if (whole == 0 || (zero && whole > 1)) return false;
    const std::size_t whole_end = i;
    if (i < word.size() && word[i] == '.' && (++i, digits() == 0)) return false;
    if (i < word.size() && (word[i] == 'e' || word[i] == 'E')) {
      if (++i < word.size() && (word[i] == '-' || word[i] == '+')) ++i;
      if (digits() == 0) return false;
    }
    if (i != word.size()) return false;
    std::int64_t integer = 0;
    if (whole_end == word.size() && std::from_chars(word.data(), word.data() + word.size(), integer).ec == std::errc())
      return into = integer_value(integer, 0), true;
    const double real = std::strtod(std::string(word).c_str(), nullptr);
    if (!std::isfinite(real)) return refuse("a number that no double holds"), true;
    const bool is_whole = whole_end != word.size() && real == std::trunc(real) && std::abs(real) < 1e10;
    into = is_whole ? integer_value(static_cast<std::int64_t>(real), 0) : real_value(real, 0);
    return true;
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0;
  int line_ = 1;
  std::size_t line_begin_ = 0;
  std::size_t line_end_ = 0;
  std::size_t made_ = 0;
  std::string fault_;
};

}  // namespace

Result<Value> read_hjson(std::string_view content, const std::string& where) {
  if (!is_utf8(content))
    return Error{.code = Errc::malformed,
                 .what = "it holds bytes that are not UTF-8",
                 .where = where,
                 .help = "a text file, saved as UTF-8"};
  const std::string text = with_unix_lines(content);
  return HjsonReader(text, where).run();
}

}  // namespace shard::foreign
