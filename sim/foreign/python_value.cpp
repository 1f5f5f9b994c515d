// Python's arithmetic on 64-bit integers, reals, texts and lists.
#include "sim/foreign/python_value.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shard::foreign {
namespace {

using PyKind = PythonValue::Kind;

/// Elements of a list, letters of a text, that repetition may make.
constexpr std::int64_t kMaxRepeated = 4096;

/// The operand that is not known, so that what is made of it says why.
const PythonValue* unknown_of(const PythonValue& left, const PythonValue& right) {
  if (left.kind == PyKind::opaque) return &left;
  if (right.kind == PyKind::opaque) return &right;
  return nullptr;
}

const char* type_of(const PythonValue& value) {
  switch (value.kind) {
    case PyKind::none: return "None";
    case PyKind::boolean: return "a bool";
    case PyKind::integer: return "an int";
    case PyKind::real: return "a float";
    case PyKind::text: return "a str";
    case PyKind::symbol:
    case PyKind::call: return "an object";
    case PyKind::list: return "a list";
    case PyKind::table: return "a dict";
    case PyKind::opaque: return "?";
  }
  return "?";
}

PythonValue checked(double result) {
  if (!std::isfinite(result)) return python_fault("the number is too large");
  return python_real(result);
}

PythonValue integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 0 ? python_fault("division by zero") : checked(std::pow(base, exponent));
  if (base == 0 || base == 1) return python_integer(exponent == 0 ? 1 : base);
  if (base == -1) return python_integer(exponent % 2 == 0 ? 1 : -1);
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result))
      return checked(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  return python_integer(result);
}

PythonValue shifted(std::string_view op, std::int64_t left, std::int64_t right) {
  if (right < 0) return python_fault("negative shift count");
  if (op == ">>") return python_integer(right > 62 ? (left < 0 ? -1 : 0) : left >> right);
  return right > 1100 ? python_fault("the number is too large")
                      : python_binary("*", python_integer(left), integer_power(2, right));
}

PythonValue integer_binary(std::string_view op, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  const auto real = [&](double value) { return checked(value); };
  if (op == "+")
    return __builtin_add_overflow(left, right, &result) ? real(static_cast<double>(left) + static_cast<double>(right))
                                                        : python_integer(result);
  if (op == "-")
    return __builtin_sub_overflow(left, right, &result) ? real(static_cast<double>(left) - static_cast<double>(right))
                                                        : python_integer(result);
  if (op == "*")
    return __builtin_mul_overflow(left, right, &result) ? real(static_cast<double>(left) * static_cast<double>(right))
                                                        : python_integer(result);
  if (op == "**") return integer_power(left, right);
  if (op == "<<" || op == ">>") return shifted(op, left, right);
  if (op == "&") return python_integer(left & right);
  if (op == "|") return python_integer(left | right);
  if (op == "^") return python_integer(left ^ right);
  if (right == 0) return python_fault("division by zero");
  if (op == "/") return real(static_cast<double>(left) / static_cast<double>(right));
  if (right == -1) return op == "%" ? python_integer(0) : python_binary("-", python_integer(0), python_integer(left));
  const std::int64_t rest = left % right;
  const bool down = rest != 0 && (rest < 0) != (right < 0);  // Python rounds towards minus infinity
  if (op == "//") return python_integer(left / right - (down ? 1 : 0));
  if (op == "%") return python_integer(down ? rest + right : rest);
  return python_opaque("'" + std::string(op) + "' is not worked out");
}

PythonValue real_binary(std::string_view op, double left, double right) {
  if (op == "+") return checked(left + right);
  if (op == "-") return checked(left - right);
  if (op == "*") return checked(left * right);
  if (op == "**") return checked(std::pow(left, right));
  if (op == "/" || op == "//" || op == "%") {
    if (right == 0) return python_fault("division by zero");
    const double floor = std::floor(left / right);
    return checked(op == "/" ? left / right : op == "//" ? floor : left - right * floor);
  }
  return python_fault("'" + std::string(op) + "' has no meaning for a float");
}

/// text * n, list * n
PythonValue repeated(const PythonValue& what, std::int64_t times) {
  const auto length = static_cast<std::int64_t>(what.kind == PyKind::text ? what.text.size() : what.items.size());
  times = std::max<std::int64_t>(times, 0);
  if (length > 0 && times > kMaxRepeated / length) return python_opaque("too long to write out");
  PythonValue result = what;
  result.text.clear();
  result.items.clear();
  for (std::int64_t i = 0; i < (length == 0 ? 0 : times); ++i) {
    result.text += what.kind == PyKind::text ? what.text : "";
    if (what.kind == PyKind::list) result.items.insert(result.items.end(), what.items.begin(), what.items.end());
  }
  return result;
}

bool is_sequence(const PythonValue& value) {
  return value.kind == PyKind::text || value.kind == PyKind::list;
}

std::optional<bool> equal(const PythonValue& left, const PythonValue& right) {
  if (unknown_of(left, right) != nullptr || left.kind == PyKind::call || right.kind == PyKind::call)
    return std::nullopt;
  if (left.is_number() && right.is_number())
    return left.is_integer() && right.is_integer() ? left.as_integer() == right.as_integer()
                                                   : left.as_real() == right.as_real();
  if (left.kind != right.kind) {
    if (left.kind == PyKind::symbol || right.kind == PyKind::symbol) return std::nullopt;
    return false;
  }
  if (left.kind == PyKind::list || left.kind == PyKind::table) return std::nullopt;
  return left.text == right.text;
}

std::optional<bool> contains(const PythonValue& where, const PythonValue& what) {
  if (where.kind == PyKind::text && what.kind == PyKind::text) return where.text.find(what.text) != std::string::npos;
  if (where.kind == PyKind::table && what.kind == PyKind::text) return find(where, what.text) != nullptr;
  if (where.kind != PyKind::list) return std::nullopt;
  bool found = false;
  for (const PythonValue& each : where.items) {
    const std::optional<bool> same = equal(each, what);
    if (!same) return std::nullopt;
    found = found || *same;
  }
  return found;
}

}  // namespace

PythonValue python_none() {
  return {};
}
PythonValue python_boolean(bool flag) {
  PythonValue value;
  value.kind = PyKind::boolean;
  value.flag = flag;
  return value;
}
PythonValue python_integer(std::int64_t integer) {
  PythonValue value;
  value.kind = PyKind::integer;
  value.integer = integer;
  return value;
}
PythonValue python_real(double real) {
  PythonValue value;
  value.kind = PyKind::real;
  value.real = real;
  return value;
}
PythonValue python_text(std::string text) {
  PythonValue value;
  value.kind = PyKind::text;
  value.text = std::move(text);
  return value;
}
PythonValue python_symbol(std::string name) {
  PythonValue value;
  value.kind = PyKind::symbol;
  value.text = std::move(name);
  return value;
}
PythonValue python_table() {
  PythonValue value;
  value.kind = PyKind::table;
  return value;
}
PythonValue python_opaque(std::string why) {
  PythonValue value;
  value.kind = PyKind::opaque;
  value.why = std::move(why);
  return value;
}
PythonValue python_fault(std::string why) {
  PythonValue value = python_opaque(std::move(why));
  value.fault = true;
  return value;
}

std::size_t python_size(const PythonValue& value) {
  std::size_t size = 1 + (value.text.size() + value.why.size()) / 32;
  for (const PythonValue& each : value.items) size += python_size(each);
  for (const auto& [key, each] : value.entries) size += 1 + key.size() / 32 + python_size(each);
  return size;
}

const PythonValue* find(const PythonValue& table, std::string_view key) {
  const auto at =
      std::find_if(table.entries.begin(), table.entries.end(), [&](const auto& each) { return each.first == key; });
  return at == table.entries.end() ? nullptr : &at->second;
}

PythonValue& place(PythonValue& table, const std::string& key) {
  for (auto& [name, value] : table.entries)
    if (name == key) return value;
  return table.entries.emplace_back(key, PythonValue{}).second;
}

std::optional<bool> truth(const PythonValue& value) {
  switch (value.kind) {
    case PyKind::none: return false;
    case PyKind::boolean:
    case PyKind::integer: return value.as_integer() != 0;
    case PyKind::real: return value.real != 0;
    case PyKind::text: return !value.text.empty();
    case PyKind::list: return !value.items.empty();
    case PyKind::table: return !value.entries.empty();
    case PyKind::symbol:
    case PyKind::call:
    case PyKind::opaque: return std::nullopt;
  }
  return std::nullopt;
}

PythonValue python_unary(std::string_view op, const PythonValue& value) {
  if (value.kind == PyKind::opaque) return value;
  if (op == "not") {
    const std::optional<bool> known = truth(value);
    return known ? python_boolean(!*known) : python_opaque("decided when it runs");
  }
  if (op == "~" && value.is_integer()) return python_integer(~value.as_integer());
  if (op != "~" && value.is_integer())
    return op == "-" ? integer_binary("-", 0, value.as_integer()) : python_integer(value.as_integer());
  if (op != "~" && value.kind == PyKind::real) return python_real(op == "-" ? -value.real : value.real);
  return python_fault("'" + std::string(op) + "' has no meaning for " + type_of(value));
}

PythonValue python_binary(std::string_view op, const PythonValue& left, const PythonValue& right) {
  if (const PythonValue* unknown = unknown_of(left, right)) return *unknown;
  if (left.is_integer() && right.is_integer()) return integer_binary(op, left.as_integer(), right.as_integer());
  if (left.is_number() && right.is_number()) return real_binary(op, left.as_real(), right.as_real());
  if (op == "*" && is_sequence(left) && right.is_integer()) return repeated(left, right.as_integer());
  if (op == "*" && is_sequence(right) && left.is_integer()) return repeated(right, left.as_integer());
  if (op == "+" && is_sequence(left) && left.kind == right.kind) {
    PythonValue result = left;
    result.text += right.text;
    result.items.insert(result.items.end(), right.items.begin(), right.items.end());
    return result;
  }
  if (op == "%" && left.kind == PyKind::text) return python_opaque("a text that is made when it runs");
  const auto object = [](const PythonValue& v) { return v.kind == PyKind::symbol || v.kind == PyKind::call; };
  if (object(left) || object(right)) return python_opaque("worked out when it runs");
  return python_fault("'" + std::string(op) + "' has no meaning between " + type_of(left) + " and " + type_of(right));
}

PythonValue python_compare(std::string_view op, const PythonValue& left, const PythonValue& right) {
  if (const PythonValue* unknown = unknown_of(left, right)) return *unknown;
  std::optional<bool> answer;
  if (op == "==" || op == "is") answer = equal(left, right);
  if (op == "!=" || op == "is not") {
    answer = equal(left, right);
    if (answer) answer = !*answer;
  }
  if (op == "in" || op == "not in") {
    answer = contains(right, left);
    if (answer && op == "not in") answer = !*answer;
  }
  if (left.is_number() && right.is_number()) {
    const double a = left.as_real();
    const double b = right.as_real();
    if (op == "<") answer = a < b;
    if (op == "<=") answer = a <= b;
    if (op == ">") answer = a > b;
    if (op == ">=") answer = a >= b;
  }
  return answer ? python_boolean(*answer) : python_opaque("decided when it runs");
}

PythonValue python_subscript(const PythonValue& value, const PythonValue& key) {
  if (const PythonValue* unknown = unknown_of(value, key)) return *unknown;
  if (value.kind == PyKind::table && key.kind == PyKind::text) {
    const PythonValue* found = find(value, key.text);
    return found != nullptr ? *found : python_fault("no key '" + key.text + "'");
  }
  if (value.kind == PyKind::list && key.is_integer()) {
    const auto size = static_cast<std::int64_t>(value.items.size());
    std::int64_t at = key.as_integer();
    if (at < 0 && at >= -size) at += size;
    if (at < 0 || at >= size) return python_fault("list index out of range");
    return value.items[static_cast<std::size_t>(at)];
  }
  return python_opaque("looked up when it runs");
}

PythonFault find_fault(const PythonValue& value) {
  if (value.fault) return {.value = &value, .pointer = ""};
  for (const auto& [key, each] : value.entries)
    if (const PythonFault inner = find_fault(each); inner.value != nullptr)
      return {.value = inner.value, .pointer = "/" + key + inner.pointer};
  for (const PythonValue& each : value.items)
    if (const PythonFault inner = find_fault(each); inner.value != nullptr)
      return {.value = inner.value, .pointer = ""};
  return {};
}

}  // namespace shard::foreign
