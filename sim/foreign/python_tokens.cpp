// The tokenizer: logical lines, indentation, strings with their prefixes, numbers.
#include "sim/foreign/python_tokens.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shard::foreign {
namespace {

using TokenKind = PythonTokenKind;

constexpr bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool in_name(char c) {
  return begins_name(c) || is_digit(c);
}

/// Longest first.
constexpr auto kOperators = std::to_array<std::string_view>(
    {"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", ":=", "+=",
     "-=",  "*=",  "/=",  "%=",  "&=",  "|=", "^=", "@=", "+",  "-",  "*",  "/",  "%",  "@",  "&",  "|",
     "^",   "~",   "<",   ">",   "(",   ")",  "[",  "]",  "{",  "}",  ",",  ":",  ".",  ";",  "="});

class PythonTokenizer {
 public:
  PythonTokenizer(std::string_view source, std::string_view file) : source_(source), file_(file) {}

  Result<std::vector<PythonToken>> run() {
    if (source_.size() > kMaxScriptBytes) return fault("more than 1 MiB of Python", "a configuration file");
    if (source_.starts_with("\xef\xbb\xbf")) at_ = 3;
    while (!error_ && at_ < source_.size()) {
      if (fresh_line_ && open_.empty()) {
        indentation();
        fresh_line_ = false;
        continue;
      }
      one();
    }
    if (!error_ && !open_.empty()) {
      line_ = open_.back().line;
      fault("'" + std::string(1, open_.back().bracket) + "' is never closed", "close it, or restore the file's end");
    }
    if (error_) return *error_;
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::newline) add(TokenKind::newline, "", at_);
    for (std::size_t i = 1; i < indents_.size(); ++i) add(TokenKind::dedent, "", at_);
    add(TokenKind::end, "", at_);
    return std::move(tokens_);
  }

 private:
  struct Open {
    char bracket;
    int line;
  };

  Error fault(std::string what, std::string help) {
    if (!error_)
      error_ = Error{.code = Errc::malformed,
                     .what = std::move(what),
                     .where = std::string(file_) + ":" + std::to_string(line_),
                     .help = std::move(help)};
    return *error_;
  }

  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void add(TokenKind kind, std::string text, std::size_t begin) {
    tokens_.push_back({.kind = kind, .text = std::move(text), .line = line_, .begin = begin, .end = at_});
  }

  void skip_comment() {
    while (at_ < source_.size() && source_[at_] != '\n') ++at_;
  }

  /// At the begin of a physical line that is not inside brackets.
  void indentation() {
    std::size_t width = 0;
    for (; peek() == ' ' || peek() == '\t' || peek() == '\f'; ++at_)
      width = peek() == '\t' ? (width / 8 + 1) * 8 : peek() == '\f' ? 0 : width + 1;
    if (peek() == '#') skip_comment();
    if (at_ >= source_.size() || peek() == '\n' || peek() == '\r') return;  // a blank line says nothing
    if (width > indents_.back()) {
      if (indents_.size() > kMaxScriptDepth) {
        fault("blocks are nested deeper than " + std::to_string(kMaxScriptDepth), "a configuration file");
        return;
      }
      indents_.push_back(width);
      add(TokenKind::indent, "", at_);
      return;
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      add(TokenKind::dedent, "", at_);
    }
    if (width != indents_.back())
      fault("unindent does not match any outer indentation level", "indent the line as the block that it belongs to");
  }

  void one() {
    const char c = peek();
    if (c == '\n') {
      if (open_.empty() && !tokens_.empty() && tokens_.back().kind != TokenKind::newline)
        add(TokenKind::newline, "", at_);
      ++at_;
      ++line_;
      fresh_line_ = true;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at_;
    } else if (c == '#') {
      skip_comment();
    } else if (c == '\\') {
      continuation();
    } else if (string_prefix()) {
      string();
    } else if (begins_name(c)) {
      const std::size_t begin = at_;
      while (in_name(peek())) ++at_;
      add(TokenKind::name, std::string(source_.substr(begin, at_ - begin)), begin);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else {
      punctuation();
    }
  }

  void continuation() {
    std::size_t next = at_ + 1;
    if (next < source_.size() && source_[next] == '\r') ++next;
    if (next >= source_.size() || source_[next] != '\n') {
      fault("a backslash that does not end its line", "remove it");
      return;
    }
    at_ = next + 1;
    ++line_;
  }

  /// Letters before a quote, or the quote itself.
  [[nodiscard]] bool string_prefix() const {
    std::size_t n = 0;
    while (n < 2 && std::string_view("rRbBuUfF").find(peek(n)) != std::string_view::npos && peek(n) != '\0') ++n;
    return peek(n) == '"' || peek(n) == '\'';
  }

  void string() {
    const std::size_t begin = at_;
    const int first_line = line_;
    bool raw = false;
    bool formatted = false;
    for (; peek() != '"' && peek() != '\''; ++at_) {
      raw = raw || peek() == 'r' || peek() == 'R';
      formatted = formatted || peek() == 'f' || peek() == 'F';
    }
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    const std::string closing(triple ? 3 : 1, quote);
    at_ += closing.size();
    std::string text;
    while (!source_.substr(at_).starts_with(closing)) {
      if (at_ >= source_.size() || (!triple && peek() == '\n')) {
        line_ = first_line;
        fault("a string is never closed", "end it with " + closing);
        return;
      }
      if (peek() == '\\' && at_ + 1 < source_.size()) {
        escape(raw || formatted, text);
        continue;
      }
      if (peek() == '\n') ++line_;
      text += source_[at_++];
    }
    at_ += closing.size();
    add(formatted ? TokenKind::formatted : TokenKind::string, std::move(text), begin);
    tokens_.back().line = first_line;
  }

  void escape(bool raw, std::string& text) {
    const char next = peek(1);
    at_ += 2;
    if (next == '\n') ++line_;
    if (raw) {
      text += '\\';
      text += next;
      return;
    }
    switch (next) {
      case 'n': text += '\n'; return;
      case 't': text += '\t'; return;
      case 'r': text += '\r'; return;
      case '\n': return;
      case '\\':
      case '\'':
      case '"': text += next; return;
      default:
        text += '\\';
        text += next;
        return;
    }
  }

  void number() {
    const std::size_t begin = at_;
    bool real = false;
    if (peek() == '0' && std::string_view("xXoObB").find(peek(1)) != std::string_view::npos && peek(1) != '\0') {
      at_ += 2;
      while (in_name(peek())) ++at_;
    } else {
      const auto digits = [this] {
        while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1)))) ++at_;
      };
      digits();
      if (peek() == '.') {
        real = true;
        ++at_;
        digits();
      }
      const bool sign = peek(1) == '+' || peek(1) == '-';
      if ((peek() == 'e' || peek() == 'E') && is_digit(peek(sign ? 2 : 1))) {
        real = true;
        at_ += sign ? 2 : 1;
        digits();
      }
      if (begins_name(peek())) {
        fault("'" + std::string(source_.substr(begin, at_ + 1 - begin)) + "' is no number",
              "a number, or quotes around it");
        return;
      }
    }
    std::string text(source_.substr(begin, at_ - begin));
    std::erase(text, '_');
    add(real ? TokenKind::real : TokenKind::integer, std::move(text), begin);
  }

  void punctuation() {
    const auto op = std::find_if(kOperators.begin(), kOperators.end(),
                                 [this](std::string_view each) { return source_.substr(at_).starts_with(each); });
    if (op == kOperators.end()) {
      fault("a byte that Python has no use for here", "a configuration file in Python");
      return;
    }
    const std::size_t begin = at_;
    at_ += op->size();
    add(TokenKind::op, std::string(*op), begin);
    const char c = (*op)[0];
    if (c == '(' || c == '[' || c == '{') {
      open_.push_back({c, line_});
      if (open_.size() > kMaxScriptDepth)
        fault("brackets are nested deeper than " + std::to_string(kMaxScriptDepth), "a configuration file");
    } else if (c == ')' || c == ']' || c == '}') {
      const char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open_.empty() || open_.back().bracket != opening)
        fault("'" + std::string(1, c) + "' closes nothing", "remove it, or open the bracket before it");
      else
        open_.pop_back();
    }
  }

  std::string_view source_;
  std::string_view file_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool fresh_line_ = true;
  std::vector<Open> open_{};
  std::vector<std::size_t> indents_{0};
  std::vector<PythonToken> tokens_{};
  std::optional<Error> error_{};
};

}  // namespace

Result<std::vector<PythonToken>> python_tokens(std::string_view source, std::string_view file) {
  return PythonTokenizer(source, file).run();
}

}  // namespace shard::foreign
