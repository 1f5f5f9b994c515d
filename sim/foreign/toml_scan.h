// Looks over TOML before it is parsed: what toml++ takes no care of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "sim/foreign/document.h"

namespace shard::foreign {

inline constexpr const char* kTomlTooDeep = "tables and lists are nested too deeply";

/// toml++ 3.3 follows tables within tables by recursion, however many dots of a key make them, and what it says of
/// letters beyond ASCII in keys without quotes is undefined: TOML 1.0 has none. Texts in quotes and comments may hold
/// anything. What lies behind the first fault of a malformed file may be misjudged; parsing ends there.
class TomlScan {
 public:
  explicit TomlScan(std::string_view content) : text_(content) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    while (fault_ == nullptr && at_ < text_.size()) step();
  }

  /// Null for none.
  [[nodiscard]] const char* fault() const { return fault_; }
  /// Of the fault, counted from 1.
  [[nodiscard]] int line() const { return line_; }

 private:
  /// `by` > 0 tables or lists more below the ones that are open.
  void deeper(std::size_t& level, std::size_t by) {
    level += by;
    total_ += by;
    if (total_ > kDeepest) fault_ = kTomlTooDeep;
  }
  void leave(std::size_t& level) {
    total_ -= level;
    level = 0;
  }

  void step() {
    const char c = text_[at_];
    if (c == '"' || c == '\'') return quoted(c);
    ++at_;
    switch (c) {
      case '#': at_ = std::min(text_.find('\n', at_), text_.size()); break;
      case '\n':
        ++line_;
        if (open_.empty()) leave(dots_);
        break;
      case '.': deeper(dots_, 1); break;
      case ',': leave(dots_); break;
      case '[':
      case '{':
        deeper(dots_, 1);
        open_.push_back(dots_);
        dots_ = 0;
        break;
      case ']':
      case '}':
        leave(dots_);
        if (open_.empty()) break;
        dots_ = open_.back();
        open_.pop_back();
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x80) fault_ = "a letter beyond ASCII stands outside of quotes";
    }
  }

  /// Over a text: 'it', "it" or either in three quotes, which may have lines, and one or two quotes more at its end.
  void quoted(char quote) {
    const auto is_quote = [&] { return at_ < text_.size() && text_[at_] == quote; };
    std::size_t quotes = 0;
    while (quotes < 3 && is_quote()) ++quotes, ++at_;
    if (quotes == 2) return;
    for (std::size_t seen = 0; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n' && quotes == 1) return;  // never closed
      line_ += c == '\n' ? 1 : 0;
      if (c == '\\' && quote == '"' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      seen = c == quote ? seen + 1 : 0;
      if (seen < quotes) continue;
      ++at_;
      for (int more = 0; quotes == 3 && more < 2 && is_quote(); ++more) ++at_;
      return;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t total_ = 0;            ///< of all below, and of dots_
  std::size_t dots_ = 0;             ///< of the key that is read, or that the value which is read belongs to
  std::vector<std::size_t> open_{};  ///< dots and bracket of each that is open
  const char* fault_ = nullptr;
};

}  // namespace shard::foreign
