// Expressions of the restricted Python reader: parsed and worked out in one go, as far as literals, arithmetic, known
// names and `dict` go. What only a run knows is opaque; nothing is called.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/foreign/python_tokens.h"
#include "sim/foreign/python_value.h"
#include "traces/base/result.h"

namespace shard::foreign {

/// Where names are looked up, innermost last.
struct PythonNames {
  std::vector<std::map<std::string, PythonValue, std::less<>>> scopes{1};
  bool star_import = false;  ///< names may come from a module that is not here
  bool keep_calls = false;   ///< a call that is not worked out is a value of kind call, not opaque
};

/// A call of something that is not worked out, by keyword: Name(a=1, b=2), or of what known_parameters() names.
struct PythonCall {
  std::string name;   ///< dotted
  PythonValue table;  ///< its arguments by their names
};

/// Values that references may copy.
inline constexpr std::size_t kMaxPythonMade = 400'000;
/// Keys of one dict.
inline constexpr std::size_t kMaxPythonEntries = 10'000;

class PythonExpressions {
 public:
  /// `source`, `tokens` and `names` must outlive it. `calls` collects them.
  PythonExpressions(std::string_view source, std::string_view file, const std::vector<PythonToken>& tokens,
                    PythonNames& names, std::vector<PythonCall>& calls)
      : source_(source), file_(file), tokens_(tokens), names_(names), calls_(calls) {}

  [[nodiscard]] const PythonToken& now(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  [[nodiscard]] std::size_t position() const { return at_; }
  void go_to(std::size_t position) { at_ = position; }
  void advance() { at_ = std::min(at_ + 1, tokens_.size() - 1); }
  [[nodiscard]] bool is_op(std::string_view op, std::size_t ahead = 0) const {
    return now(ahead).kind == PythonTokenKind::op && now(ahead).text == op;
  }
  [[nodiscard]] bool is_word(std::string_view word, std::size_t ahead = 0) const {
    return now(ahead).kind == PythonTokenKind::name && now(ahead).text == word;
  }
  bool take(std::string_view op) {
    if (!is_op(op)) return false;
    advance();
    return true;
  }
  void expect(std::string_view op);

  /// The first error; parsing goes on at the last token, which ends every loop.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  void fail(std::string what, std::string help, int line);
  /// For what a loop of references could make of a short file.
  void too_much();

  /// `a, b` is a list; else one expression.
  [[nodiscard]] PythonValue expressions();
  [[nodiscard]] PythonValue expression();
  /// What the tokens from `first` up to here say in the source, on one line.
  [[nodiscard]] std::string source_since(std::size_t first) const;
  /// Skips to the bracket that closes the one we are in, which stays.
  void skip_to_closing();

 private:
  PythonValue either();
  PythonValue both();
  PythonValue negated();
  PythonValue comparison();
  PythonValue binary(std::size_t level);
  PythonValue unary();
  PythonValue power();
  PythonValue postfix();
  PythonValue atom();
  PythonValue number();
  PythonValue strings();
  PythonValue word();
  PythonValue parenthesised();
  PythonValue bracketed();
  PythonValue braced();
  PythonValue lambda();
  PythonValue subscript(const PythonValue& value);
  PythonValue attribute(const PythonValue& value, const std::string& name);
  PythonValue called(PythonValue callee, std::size_t first);
  PythonValue applied(const PythonValue& callee, const PythonValue& arguments, std::size_t first);
  void argument(PythonValue& arguments);
  [[nodiscard]] bool comprehension();
  [[nodiscard]] PythonValue settled(PythonValue value, std::size_t first, int line);
  [[nodiscard]] PythonValue unknown(std::string why) { return python_opaque(std::move(why)); }

  std::string_view source_;
  std::string_view file_;
  const std::vector<PythonToken>& tokens_;
  PythonNames& names_;
  std::vector<PythonCall>& calls_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::size_t made_ = 0;
  std::optional<Error> error_{};
};

}  // namespace shard::foreign
