// $((...)) on 64-bit integers.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "sim/foreign/shell_variables.h"

namespace shard::foreign {
namespace {

constexpr int kMaxArithmeticDepth = 64;
/// Operators by how they bind, loosest first.
constexpr std::array<std::string_view, 10> kArithmeticLevels{" || ",    " && ",        " | ",     " ^ ",   " & ",
                                                             " == != ", " <= >= < > ", " << >> ", " + - ", " * / % "};

class ShellArithmetic {
 public:
  explicit ShellArithmetic(std::string_view text) : text_(text) {}

  std::optional<std::int64_t> run() {
    const std::int64_t value = choice();
    blanks();
    return failed_ || at_ != text_.size() ? std::nullopt : std::optional(value);
  }

 private:
  void blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  std::int64_t fail() {
    failed_ = true;
    at_ = text_.size();
    return 0;
  }

  bool take(std::string_view op) {
    blanks();
    if (!text_.substr(at_).starts_with(op)) return false;
    at_ += op.size();
    return true;
  }

  std::int64_t choice() {
    if (++depth_ > kMaxArithmeticDepth) return fail();
    std::int64_t value = binary(0);
    if (take("?")) {
      const std::int64_t yes = choice();
      if (!take(":")) return fail();
      const std::int64_t no = choice();
      value = value != 0 ? yes : no;
    }
    --depth_;
    return value;
  }

  /// The operator of a level that stands here, longest first; empty for none.
  std::string_view op_of(std::size_t level) {
    blanks();
    static constexpr auto kAll = std::to_array<std::string_view>(
        {"**", "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "|", "^", "&", "<", ">", "+", "-", "*", "/", "%"});
    const auto here = std::find_if(kAll.begin(), kAll.end(),
                                   [this](std::string_view each) { return text_.substr(at_).starts_with(each); });
    if (here == kAll.end()) return {};
    return kArithmeticLevels[level].find(" " + std::string(*here) + " ") == std::string_view::npos ? std::string_view{}
                                                                                                   : *here;
  }

  std::int64_t binary(std::size_t level) {
    if (level == kArithmeticLevels.size()) return unary();
    std::int64_t left = binary(level + 1);
    for (std::string_view op = op_of(level); !op.empty() && !failed_; op = op_of(level)) {
      at_ += op.size();
      left = applied(op, left, binary(level + 1));
    }
    return left;
  }

  std::int64_t applied(std::string_view op, std::int64_t left, std::int64_t right) {
    std::int64_t result = 0;
    if (op == "+") return __builtin_add_overflow(left, right, &result) ? fail() : result;
    if (op == "-") return __builtin_sub_overflow(left, right, &result) ? fail() : result;
    if (op == "*") return __builtin_mul_overflow(left, right, &result) ? fail() : result;
    if (op == "/" || op == "%") {
      if (right == 0 || right == -1) return right == 0 ? fail() : op == "%" ? 0 : applied("-", 0, left);
      return op == "/" ? left / right : left % right;
    }
    if (op == "<<" || op == ">>") {
      if (right < 0 || right > 62) return fail();
      return op == "<<" ? applied("*", left, std::int64_t{1} << right) : left >> right;
    }
    if (op == "||") return left != 0 || right != 0 ? 1 : 0;
    if (op == "&&") return left != 0 && right != 0 ? 1 : 0;
    if (op == "|") return left | right;
    if (op == "^") return left ^ right;
    if (op == "&") return left & right;
    const bool yes = op == "=="   ? left == right
                     : op == "!=" ? left != right
                     : op == "<=" ? left <= right
                     : op == ">=" ? left >= right
                     : op == "<"  ? left < right
                                  : left > right;
    return yes ? 1 : 0;
  }

  std::int64_t unary() {
    std::string signs;
    while (take("-") || take("+") || take("!") || take("~")) {
      signs += text_[at_ - 1];
      if (signs.size() > kMaxArithmeticDepth) return fail();
    }
    std::int64_t value = power();
    for (; !signs.empty(); signs.pop_back())
      value = signs.back() == '-'   ? applied("-", 0, value)
              : signs.back() == '!' ? (value == 0 ? 1 : 0)
              : signs.back() == '~' ? ~value
                                    : value;
    return value;
  }

  std::int64_t power() {
    const std::int64_t base = atom();
    if (!take("**")) return base;
    if (++depth_ > kMaxArithmeticDepth) return fail();
    const std::int64_t exponent = unary();
    --depth_;
    if (exponent < 0) return fail();
    std::int64_t result = 1;
    if (base == 0 || base == 1 || base == -1) return exponent == 0 ? 1 : exponent % 2 == 0 ? base * base : base;
    for (std::int64_t i = 0; i < exponent && !failed_; ++i) result = applied("*", result, base);
    return result;
  }

  std::int64_t atom() {
    if (take("(")) {
      const std::int64_t value = choice();
      return take(")") ? value : fail();
    }
    blanks();
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code != std::errc{}) return fail();
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(std::string_view expression) {
  return ShellArithmetic(expression).run();
}

}  // namespace shard::foreign
