// Tests of words.
#include "sim/foreign/shell_condition.h"

#include <charconv>
#include <cstdint>
#include <string>

namespace shard::foreign {
namespace {

using Known = std::optional<bool>;

constexpr int kMaxTestDepth = 32;

std::optional<std::int64_t> whole(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, code] = std::from_chars(text->data(), end, value);
  return code == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

class ShellTest {
 public:
  ShellTest(const std::vector<ShellText>& words, const ShellVariables& variables)
      : words_(words), variables_(variables) {}

  Known run() {
    if (words_.empty()) return false;
    const Known result = either();
    return at_ == words_.size() ? result : std::nullopt;
  }

 private:
  [[nodiscard]] std::string word(std::size_t ahead = 0) const {
    return at_ + ahead < words_.size() ? letters(words_[at_ + ahead]) : "";
  }
  [[nodiscard]] std::optional<std::string> value(std::size_t ahead) const {
    return at_ + ahead < words_.size() ? variables_.known(words_[at_ + ahead]) : std::nullopt;
  }

  Known either() {
    if (++depth_ > kMaxTestDepth) return at_ = words_.size(), std::nullopt;
    Known left = both();
    while (at_ < words_.size() && (word() == "||" || word() == "-o")) {
      ++at_;
      const Known right = both();
      left = left && *left ? left : right && *right ? right : left && right ? Known(false) : std::nullopt;
    }
    --depth_;
    return left;
  }

  Known both() {
    Known left = one();
    while (at_ < words_.size() && (word() == "&&" || word() == "-a")) {
      ++at_;
      const Known right = one();
      left = (left && !*left) || (right && !*right) ? Known(false) : left && right ? Known(true) : std::nullopt;
    }
    return left;
  }

  Known one() {
    bool negated = false;
    while (at_ + 1 < words_.size() && word() == "!") {
      negated = !negated;
      ++at_;
    }
    const Known result = plain();
    return negated && result ? Known(!*result) : result;
  }

  Known plain() {
    if (at_ >= words_.size()) return std::nullopt;
    if (word() == "(") {
      ++at_;
      const Known result = either();
      if (word() == ")") ++at_;
      return result;
    }
    if (at_ + 2 < words_.size())
      if (const std::optional<Known> compared = comparison(word(1))) return *compared;
    if (at_ + 1 < words_.size() && word().size() == 2 && word()[0] == '-') return unary(word()[1]);
    const std::optional<std::string> text = value(0);
    ++at_;
    return text ? Known(!text->empty()) : std::nullopt;
  }

  Known unary(char kind) {
    const std::optional<std::string> text = value(1);
    const std::string name = word(1);
    at_ += 2;
    if (kind == 'z') return text ? Known(text->empty()) : std::nullopt;
    if (kind == 'n') return text ? Known(!text->empty()) : std::nullopt;
    if (kind == 'v') return variables_.find(name) != nullptr;
    return false;  // files are absent
  }

  /// The comparison of the words around `op`; nothing where it is none.
  std::optional<Known> comparison(const std::string& op) {
    const std::optional<std::string> left = value(0);
    const std::optional<std::string> right = value(2);
    Known result;
    if (op == "=" || op == "==" || op == "!=") {
      if (left && right) result = shell_pattern_fits(*right, *left) == (op != "!=");
    } else if (op == "-eq" || op == "-ne" || op == "-lt" || op == "-le" || op == "-gt" || op == "-ge") {
      const std::optional<std::int64_t> a = whole(left);
      const std::optional<std::int64_t> b = whole(right);
      if (a && b)
        result = op == "-eq"   ? *a == *b
                 : op == "-ne" ? *a != *b
                 : op == "-lt" ? *a < *b
                 : op == "-le" ? *a <= *b
                 : op == "-gt" ? *a > *b
                               : *a >= *b;
    } else if (op == "<" || op == ">") {
      if (left && right) result = op == "<" ? *left < *right : *left > *right;
    } else if (op != "=~") {
      return std::nullopt;
    }
    at_ += 3;
    return result;
  }

  const std::vector<ShellText>& words_;
  const ShellVariables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<bool> shell_test(const std::vector<ShellText>& words, const ShellVariables& variables) {
  return ShellTest(words, variables).run();
}

bool shell_pattern_fits(std::string_view pattern, std::string_view text) {
  // The usual two pointers: behind a '*' one letter more is taken whenever the rest does not fit.
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] == text[t] && pattern[p] != '*'))) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace shard::foreign
