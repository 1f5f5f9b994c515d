// The shell's tokenizer.
#include "sim/foreign/shell_tokens.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace shard::foreign {
namespace {

/// Of brackets and quotes in each other.
constexpr int kMaxShellNesting = 64;

/// Looks ahead for "))" that find none.
constexpr int kMaxFailed = 64;

constexpr auto kShellOperators =
    std::to_array<std::string_view>({";;&", ";;", ";&", "&&", "||", "|&", "|", ";", "(", ")"});
constexpr auto kRedirects =
    std::to_array<std::string_view>({"&>>", "<<<", "&>", ">>", ">&", "<&", ">|", "<>", ">", "<"});

bool in_shell_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

char letter(const ShellText& text, std::size_t at) {
  return at < text.size() ? text[at].letter : '\0';
}

bool begins(const ShellText& text, std::size_t at, std::string_view what) {
  for (std::size_t i = 0; i < what.size(); ++i)
    if (letter(text, at + i) != what[i]) return false;
  return true;
}

Error never_closed(const ShellText& text, std::size_t at, std::string_view file, std::string_view what) {
  const int line = at < text.size() ? text[at].line : text.empty() ? 1 : text.back().line;
  return {.code = Errc::malformed,
          .what = std::string(what) + " is never closed",
          .where = std::string(file) + ":" + std::to_string(line),
          .help = "close it, or restore the file's end"};
}

/// The end of what opens at `at`, by its kind.
class ShellPieces {
 public:
  ShellPieces(const ShellText& text, std::string_view file) : text_(text), file_(file) {}

  Result<std::size_t> end_of(std::size_t at, int depth) const {
    if (depth > kMaxShellNesting)
      return Error{.code = Errc::malformed,
                   .what = "quotes and brackets are nested deeper than " + std::to_string(kMaxShellNesting),
                   .where = std::string(file_) + ":" + std::to_string(text_[at].line),
                   .help = "a launch script"};
    switch (letter(text_, at)) {
      case '\\': return std::min(at + 2, text_.size());
      case '\'': return single(at);
      case '"': return until(at + 1, '"', "a quote \"", at, depth, false);
      case '`': return until(at + 1, '`', "a backquote", at, depth, false);
      case '$': break;
      default: return at + 1;
    }
    if (begins(text_, at, "$'")) return single(at + 1);
    if (begins(text_, at, "${")) return until(at + 2, '}', "${", at, depth, false);
    if (begins(text_, at, "$(")) return until(at + 2, ')', "$(", at, depth, true);
    std::size_t end = at + 1;
    if (in_shell_name(letter(text_, end)) && (letter(text_, end) < '0' || letter(text_, end) > '9')) {
      while (in_shell_name(letter(text_, end))) ++end;
    } else if (std::string_view("0123456789@*#?$!-").find(letter(text_, end)) != std::string_view::npos &&
               end < text_.size()) {
      ++end;
    }
    return end;
  }

 private:
  Result<std::size_t> single(std::size_t at) const {
    const bool escapes = at > 0 && letter(text_, at - 1) == '$';
    for (std::size_t i = at + 1; i < text_.size(); ++i) {
      if (escapes && text_[i].letter == '\\')
        ++i;
      else if (text_[i].letter == '\'')
        return i + 1;
    }
    return never_closed(text_, at, file_, "a quote '");
  }

  /// `nests`: round brackets count, and comments are none of the text.
  Result<std::size_t> until(std::size_t from, char closing, std::string_view name, std::size_t opened, int depth,
                            bool nests) const {
    int open = 0;
    for (std::size_t i = from; i < text_.size();) {
      const char c = text_[i].letter;
      if (c == closing && open == 0) return i + 1;
      if (nests && c == '(') ++open;
      if (nests && c == ')') --open;
      // Within double quotes a single quote is a letter.
      if (c == '\'' && closing == '"') {
        ++i;
        continue;
      }
      if (nests && c == '#' && (i == from || text_[i - 1].letter == '\n' || text_[i - 1].letter == ' ')) {
        while (i < text_.size() && text_[i].letter != '\n' && text_[i].letter != ')') ++i;
        continue;
      }
      const Result<std::size_t> end = end_of(i, depth + 1);
      if (!end) return end;
      i = *end;
    }
    return never_closed(text_, opened, file_, name);
  }

  const ShellText& text_;
  std::string_view file_;
};

class ShellTokenizer {
 public:
  ShellTokenizer(const ShellText& source, std::string_view file)
      : source_(source), file_(file), pieces_(source, file) {}

  Result<std::vector<ShellToken>> run() {
    while (!error_ && at_ < source_.size()) one();
    if (error_) return *error_;
    add({.kind = ShellTokenKind::op, .op = "\n"});
    add({.kind = ShellTokenKind::end});
    return std::move(tokens_);
  }

 private:
  void add(ShellToken token) {
    token.line = line();
    tokens_.push_back(std::move(token));
  }
  [[nodiscard]] int line() const {
    return at_ < source_.size() ? source_[at_].line : source_.empty() ? 1 : source_.back().line;
  }

  void one() {
    const char c = letter(source_, at_);
    if (c == '\n') {
      add({.kind = ShellTokenKind::op, .op = "\n"});
      ++at_;
      skip_documents();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (begins(source_, at_, "\\\n") || begins(source_, at_, "\\\r\n")) {
      at_ += letter(source_, at_ + 1) == '\r' ? 3 : 2;
    } else if (c == '#') {
      while (at_ < source_.size() && source_[at_].letter != '\n') ++at_;
    } else if (begins(source_, at_, "<<") && !begins(source_, at_, "<<<")) {
      document();
    } else if (redirect() || operation()) {
      return;
    } else {
      word();
    }
  }

  bool redirect() {
    std::size_t digits = at_;
    while (letter(source_, digits) >= '0' && letter(source_, digits) <= '9') ++digits;
    if (begins(source_, digits, "<(") || begins(source_, digits, ">(")) return false;
    const auto op = std::find_if(kRedirects.begin(), kRedirects.end(),
                                 [&](std::string_view each) { return begins(source_, digits, each); });
    if (op == kRedirects.end()) return false;
    add({.kind = ShellTokenKind::redirect, .op = std::string(*op)});
    at_ = digits + op->size();
    return true;
  }

  bool operation() {
    const bool begins_command = tokens_.empty() || tokens_.back().kind == ShellTokenKind::op ||
                                (tokens_.back().kind == ShellTokenKind::word && letters(tokens_.back().raw) == "for");
    if (begins(source_, at_, "((") && begins_command && failed_ < kMaxFailed) {
      const std::size_t close = arithmetic_end();
      if (close == 0) ++failed_;
      if (close != 0) {
        ShellToken token{.kind = ShellTokenKind::arithmetic,
                         .raw = ShellText(source_.begin() + static_cast<std::ptrdiff_t>(at_) + 2,
                                          source_.begin() + static_cast<std::ptrdiff_t>(close))};
        add(std::move(token));
        at_ = close + 2;
        return true;
      }
    }
    if (letter(source_, at_) == '&' && letter(source_, at_ + 1) != '&') {
      add({.kind = ShellTokenKind::op, .op = "&"});
      ++at_;
      return true;
    }
    const auto op = std::find_if(kShellOperators.begin(), kShellOperators.end(),
                                 [this](std::string_view each) { return begins(source_, at_, each); });
    if (op == kShellOperators.end()) return false;
    add({.kind = ShellTokenKind::op, .op = std::string(*op)});
    at_ += op->size();
    return true;
  }

  /// Where the "))" of a "((" at at_ begins; 0 for none.
  [[nodiscard]] std::size_t arithmetic_end() const {
    constexpr std::size_t kLongest = 4096;
    int open = 0;
    for (std::size_t i = at_ + 2; i + 1 < std::min(source_.size(), at_ + kLongest); ++i) {
      const char c = source_[i].letter;
      if (c == '(') ++open;
      if (c == ')' && open == 0) return source_[i + 1].letter == ')' ? i : 0;
      if (c == ')') --open;
    }
    return 0;
  }

  /// << or <<-: its lines begin behind the next line end.
  void document() {
    at_ += 2;
    if (letter(source_, at_) == '-') ++at_;
    while (letter(source_, at_) == ' ') ++at_;
    std::string delimiter;
    while (at_ < source_.size() &&
           std::string_view(" \t\r\n;|&<>)").find(source_[at_].letter) == std::string_view::npos) {
      if (source_[at_].letter != '"' && source_[at_].letter != '\'' && source_[at_].letter != '\\')
        delimiter += source_[at_].letter;
      ++at_;
    }
    if (!delimiter.empty()) documents_.push_back(std::move(delimiter));
  }

  void skip_documents() {
    for (const std::string& delimiter : documents_) {
      const std::size_t opened = at_;
      bool closed = false;
      while (at_ < source_.size() && !closed) {
        std::string text;
        for (; at_ < source_.size() && source_[at_].letter != '\n'; ++at_) text += source_[at_].letter;
        ++at_;
        text.erase(0, text.find_first_not_of('\t'));
        if (text.ends_with('\r')) text.pop_back();
        closed = text == delimiter;
      }
      at_ = std::min(at_, source_.size());
      if (!closed) error_ = never_closed(source_, opened, file_, "the here-document of " + delimiter);
    }
    documents_.clear();
  }

  void word() {
    const std::size_t begin = at_;
    ShellText raw;
    while (!error_ && at_ < source_.size()) {
      const char c = source_[at_].letter;
      if (std::string_view(" \t\r\n;|&<>").find(c) != std::string_view::npos) {
        if ((c != '<' && c != '>') || letter(source_, at_ + 1) != '(' || at_ != begin) break;
      }
      if (c == ')') break;
      if (begins(source_, at_, "\\\n")) {
        at_ += 2;
        continue;
      }
      if (c == '(' && at_ > begin) {
        if (letter(source_, at_ - 1) == '=' && array(raw)) return;
        if (letter(source_, at_ + 1) == ')' || letter(source_, begin) == '<' || letter(source_, begin) == '>') {
          if (letter(source_, at_ + 1) == ')') break;  // NAME()
          if (!bracket(raw)) return;
          continue;
        }
        break;
      }
      take_piece(raw);
    }
    ShellToken token{.kind = ShellTokenKind::word, .raw = std::move(raw)};
    token.line = begin < source_.size() ? source_[begin].line : line();
    if (begin == at_) ++at_;  // a letter that nothing takes
    if (!token.raw.empty()) tokens_.push_back(std::move(token));
  }

  void take_piece(ShellText& raw) {
    const Result<std::size_t> end = pieces_.end_of(at_, 0);
    if (!end) {
      error_ = end.error();
      return;
    }
    raw.insert(raw.end(), source_.begin() + static_cast<std::ptrdiff_t>(at_),
               source_.begin() + static_cast<std::ptrdiff_t>(*end));
    at_ = *end;
  }

  /// <( ... ): taken whole.
  bool bracket(ShellText& raw) {
    int open = 0;
    const std::size_t opened = at_;
    while (at_ < source_.size() && !error_) {
      const char c = source_[at_].letter;
      if (c == '(') ++open;
      if (c == ')') --open;
      take_piece(raw);
      if (open == 0) return true;
    }
    if (!error_) error_ = never_closed(source_, opened, file_, "'('");
    return false;
  }

  /// NAME=( or NAME+=( stands in `raw`.
  bool array(const ShellText& raw) {
    std::string name = letters(raw);
    name.pop_back();
    const std::string plain = name.ends_with('+') ? name.substr(0, name.size() - 1) : name;
    if (plain.empty() || !std::all_of(plain.begin(), plain.end(), in_shell_name)) return false;
    const std::size_t opened = at_++;
    if (++arrays_ > 4) error_ = never_closed(source_, opened, file_, "a list within lists");
    ShellToken token{.kind = ShellTokenKind::array, .op = name};
    const std::size_t first = tokens_.size();
    while (!error_ && at_ < source_.size() && source_[at_].letter != ')') one();
    if (at_ >= source_.size() && !error_) error_ = never_closed(source_, opened, file_, "the list of " + plain);
    for (std::size_t i = first; i < tokens_.size(); ++i)
      if (tokens_[i].kind == ShellTokenKind::word) token.items.push_back(std::move(tokens_[i].raw));
    tokens_.resize(first);
    --arrays_;
    ++at_;
    add(std::move(token));
    return true;
  }

  const ShellText& source_;
  std::string_view file_;
  ShellPieces pieces_;
  std::size_t at_ = 0;
  int failed_ = 0;  ///< "((" that were none
  int arrays_ = 0;  ///< that are open
  std::vector<std::string> documents_{};
  std::vector<ShellToken> tokens_{};
  std::optional<Error> error_{};
};

}  // namespace

Result<std::vector<ShellToken>> shell_tokens(const ShellText& source, std::string_view file) {
  return ShellTokenizer(source, file).run();
}

Result<std::size_t> shell_piece_end(const ShellText& text, std::size_t at, std::string_view file) {
  return ShellPieces(text, file).end_of(at, 0);
}

}  // namespace shard::foreign
