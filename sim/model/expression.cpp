// A recursive descent over the text; tables are short and read once per model.
#include "sim/model/expression.h"

#include <algorithm>
#include <cassert>
#include <charconv>

namespace shard::model {
namespace {

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::int64_t bounded(std::int64_t value) {
  return std::clamp(value, -kTooLarge, kTooLarge);
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  const bool negative = (a < 0) != (b < 0);
  const std::int64_t x = a < 0 ? -a : a;
  const std::int64_t y = b < 0 ? -b : b;
  const std::int64_t size = x > kTooLarge / y ? kTooLarge : x * y;
  return negative ? -size : size;
}

class Reader {
 public:
  Reader(std::string_view text, const Values& values) : rest_(text), values_(values) {}

  std::int64_t either() {
    std::int64_t value = comparison();
    for (;;) {
      if (take("|")) {
        const std::int64_t other = comparison();
        value = value != 0 || other != 0 ? 1 : 0;
      } else if (take("&")) {
        const std::int64_t other = comparison();
        value = value != 0 && other != 0 ? 1 : 0;
      } else {
        return value;
      }
    }
  }
  [[nodiscard]] bool good() const { return good_ && rest_.empty(); }

 private:
  bool take(std::string_view sign) {
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }
  std::int64_t comparison() {
    const std::int64_t a = sum();
    if (take("==")) return a == sum() ? 1 : 0;
    if (take("!=")) return a != sum() ? 1 : 0;
    if (take("<=")) return a <= sum() ? 1 : 0;
    if (take(">=")) return a >= sum() ? 1 : 0;
    if (take("<")) return a < sum() ? 1 : 0;
    if (take(">")) return a > sum() ? 1 : 0;
    return a;
  }
  std::int64_t sum() {
    std::int64_t value = term();
    for (;;) {
      if (take("+"))
        value = bounded(value + term());
      else if (take("-"))
        value = bounded(value - term());
      else
        return value;
    }
  }
  std::int64_t term() {
    std::int64_t value = factor();
    for (;;) {
      if (take("*")) {
        value = product(value, factor());
      } else if (take("/")) {
        const std::int64_t by = factor();
        value = by == 0 ? 0 : value / by;
      } else if (take("%")) {
        const std::int64_t by = factor();
        value = by == 0 ? 0 : value % by;
      } else {
        return value;
      }
    }
  }
  std::int64_t factor() {
    if (take("!")) return factor() == 0 ? 1 : 0;
    if (take("(")) {
      const std::int64_t value = either();
      good_ = take(")") && good_;
      return value;
    }
    const std::size_t length =
        static_cast<std::size_t>(std::find_if_not(rest_.begin(), rest_.end(), in_name) - rest_.begin());
    const std::string_view word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    if (word == "true" || word == "false") return word == "true" ? 1 : 0;
    if (!word.empty() && is_digit(word.front())) {
      std::int64_t number = 0;
      const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
      good_ = good_ && fault == std::errc{} && end == word.data() + word.size();
      return bounded(number);
    }
    const std::int64_t* value = values_.find(word);
    good_ = good_ && value != nullptr;
    return value == nullptr ? 0 : bounded(*value);
  }

  std::string_view rest_;
  const Values& values_;
  bool good_ = true;
};

}  // namespace

void Values::set(std::string_view name, std::int64_t value) {
  for (auto& [known, old] : values_) {
    if (known != name) continue;
    old = value;
    return;
  }
  values_.emplace_back(name, value);
}

const std::int64_t* Values::find(std::string_view name) const {
  for (const auto& [known, value] : values_)
    if (known == name) return &value;
  return nullptr;
}

std::int64_t evaluate(std::string_view expression, const Values& values) {
  Reader reader(expression, values);
  const std::int64_t value = reader.either();
  assert(reader.good() && "a family's table has an expression that is none");
  return value;
}

bool is_expression(std::string_view expression, const Values& values) {
  Reader reader(expression, values);
  static_cast<void>(reader.either());
  return reader.good();
}

std::string_view first_name(std::string_view expression) {
  for (std::size_t i = 0; i < expression.size();) {
    std::size_t end = i;
    while (end < expression.size() && in_name(expression[end])) ++end;
    if (end > i && !is_digit(expression[i])) return expression.substr(i, end - i);
    i = end + 1;
  }
  return {};
}

}  // namespace shard::model
