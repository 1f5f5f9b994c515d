// What a shell script's variables are, and what the shell makes of words that mention them. No command runs: what one
// would print is missing, and stands in words as it is written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/foreign/shell_text.h"
#include "traces/base/result.h"

namespace shard::foreign {

class ShellVariables {
 public:
  explicit ShellVariables(std::string_view file) : file_(file) {}

  /// A scalar, or a list.
  void set(const std::string& name, ShellText value) { values_[name] = {std::move(value)}; }
  void set_list(const std::string& name, std::vector<ShellText> values) { values_[name] = std::move(values); }
  /// NAME+=value
  void append(const std::string& name, const ShellText& value);
  void append_list(const std::string& name, const std::vector<ShellText>& values);
  void unset(const std::string& name) { values_.erase(name); }
  [[nodiscard]] const std::vector<ShellText>* find(const std::string& name) const;

  /// $1, $2, ... of the function that is called.
  std::vector<ShellText> positional{};

  /// Quotes removed, variables put in. Words are not split: as in an assignment.
  [[nodiscard]] Result<ShellText> expand(const ShellText& raw);
  /// As a command's arguments: split at blanks that came out of variables; "${LIST[@]}" is a word per element.
  [[nodiscard]] Result<std::vector<ShellText>> split(const ShellText& raw);
  /// $((...)); a decimal number, or the expression as missing.
  [[nodiscard]] Result<ShellText> arithmetic(const ShellText& expression, std::string_view written);

  [[nodiscard]] const std::vector<ShellMissing>& missing() const { return missing_; }
  [[nodiscard]] ShellWord word(const ShellText& text) const;
  /// As a test sees it: variables that nothing sets are empty. Nothing where a command would have to say it.
  [[nodiscard]] std::optional<std::string> known(const ShellText& text) const;

 private:
  struct Expansion;
  Result<void> piece(const ShellText& raw, std::size_t& at, bool quoted, Expansion& to, int depth);
  Result<void> dollar(const ShellText& piece, bool quoted, Expansion& to, int depth);
  Result<void> braces(const ShellText& inside, const ShellText& piece, bool quoted, Expansion& to, int depth);
  Result<void> command(const ShellText& inside, const ShellText& piece, bool quoted, Expansion& to, int depth);
  Result<void> text(const ShellText& raw, bool quoted, Expansion& to, int depth);
  void variable(const std::string& name, std::string_view index, const ShellText& piece, bool quoted, Expansion& to);
  void not_known(const ShellText& piece, bool unset, Expansion& to);
  void put(const ShellText& value, bool quoted, Expansion& to);

  std::string file_;
  std::map<std::string, std::vector<ShellText>> values_{};
  std::vector<ShellMissing> missing_{};
  std::size_t made_ = 0;
};

/// The integer that an expression of the shell is; empty where it is none. Names stand for what `of` says.
[[nodiscard]] std::optional<std::int64_t> shell_arithmetic(std::string_view expression);

}  // namespace shard::foreign
