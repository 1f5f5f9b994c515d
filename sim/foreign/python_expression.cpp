// Recursive descent over the tokens of an expression.
#include "sim/foreign/python_expression.h"

#include <algorithm>
#include <array>

#include "sim/foreign/python_call.h"

namespace shard::foreign {
namespace {

using PyKind = PythonValue::Kind;
using PyToken = PythonTokenKind;

/// Of expressions within expressions: no configuration comes near, and no stack runs out.
constexpr std::size_t kMaxExpressionDepth = 100;

/// Operators by how they bind, loosest first; ** stands apart.
constexpr std::array<std::string_view, 6> kLevels{" | ", " ^ ", " & ", " << >> ", " + - ", " * / // % @ "};

std::string last_part(const std::string& dotted) {
  return dotted.substr(dotted.rfind('.') + 1);
}

}  // namespace

void PythonExpressions::fail(std::string what, std::string help, int line) {
  if (!error_)
    error_ = Error{.code = Errc::malformed,
                   .what = std::move(what),
                   .where = std::string(file_) + ":" + std::to_string(line),
                   .help = std::move(help)};
  at_ = tokens_.size() - 1;
}

void PythonExpressions::too_much() {
  fail("values grow beyond what a configuration has", "write the values out", now().line);
}

void PythonExpressions::expect(std::string_view op) {
  if (take(op)) return;
  const std::string found = now().kind == PyToken::newline || now().kind == PyToken::end
                                ? "the line ends"
                                : "'" + std::string(source_.substr(now().begin, now().end - now().begin)) + "' stands";
  fail(found + " where '" + std::string(op) + "' is missing", "write '" + std::string(op) + "' there", now().line);
}

std::string PythonExpressions::source_since(std::size_t first) const {
  if (at_ <= first || first >= tokens_.size()) return {};
  const std::size_t begin = tokens_[first].begin;
  std::string text(source_.substr(begin, tokens_[at_ - 1].end - begin));
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() > 200) text = text.substr(0, 200) + "...";
  return text;
}

void PythonExpressions::skip_to_closing() {
  for (std::size_t depth = 0; now().kind != PyToken::end && now().kind != PyToken::newline; advance()) {
    if (is_op("(") || is_op("[") || is_op("{")) ++depth;
    if (!is_op(")") && !is_op("]") && !is_op("}")) continue;
    if (depth == 0) return;
    --depth;
  }
}

PythonValue PythonExpressions::settled(PythonValue value, std::size_t first, int line) {
  value.line = line;
  if (value.kind == PyKind::opaque) value.text = source_since(first);
  return value;
}

PythonValue PythonExpressions::expressions() {
  const std::size_t first = at_;
  const int line = now().line;
  PythonValue value = expression();
  if (!is_op(",")) return value;
  PythonValue list;
  list.kind = PyKind::list;
  list.items.push_back(std::move(value));
  while (take(",")) {
    if (now().kind == PyToken::newline || is_op("=") || is_op(")") || is_op("]") || now().kind == PyToken::end) break;
    list.items.push_back(expression());
  }
  return settled(std::move(list), first, line);
}

PythonValue PythonExpressions::expression() {
  const std::size_t first = at_;
  const int line = now().line;
  if (++depth_ > kMaxExpressionDepth) {
    fail("expressions are nested deeper than " + std::to_string(kMaxExpressionDepth), "a configuration file", line);
    --depth_;
    return {};
  }
  PythonValue value;
  if (is_word("lambda")) {
    value = lambda();
  } else if (is_op("*") || is_op("**")) {
    advance();
    value = expression();
    if (value.kind != PyKind::opaque) value = unknown("unpacked when it runs");
  } else {
    value = either();
    if (is_op(":=")) {
      advance();
      value = expression();
    } else if (is_word("if")) {
      advance();
      const std::optional<bool> known = truth(either());
      if (!is_word("else")) {
        fail("'else' is missing behind '... if ...'", "value if condition else other", now().line);
      } else {
        advance();
        PythonValue other = expression();
        value = !known ? unknown("decided when it runs") : *known ? std::move(value) : std::move(other);
      }
    }
  }
  --depth_;
  return settled(std::move(value), first, line);
}

PythonValue PythonExpressions::either() {
  PythonValue value = both();
  while (is_word("or")) {
    advance();
    PythonValue other = both();
    const std::optional<bool> known = truth(value);
    if (value.fault) continue;
    value = !known ? unknown("decided when it runs") : *known ? std::move(value) : std::move(other);
  }
  return value;
}

PythonValue PythonExpressions::both() {
  PythonValue value = negated();
  while (is_word("and")) {
    advance();
    PythonValue other = negated();
    const std::optional<bool> known = truth(value);
    if (value.fault) continue;
    value = !known ? unknown("decided when it runs") : *known ? std::move(other) : std::move(value);
  }
  return value;
}

PythonValue PythonExpressions::negated() {
  std::size_t times = 0;
  for (; is_word("not"); advance()) ++times;
  PythonValue value = comparison();
  if (times == 0) return value;
  value = python_unary("not", value);
  return times % 2 == 1 ? value : python_unary("not", value);
}

PythonValue PythonExpressions::comparison() {
  PythonValue left = binary(0);
  while (true) {
    std::string op;
    if (is_word("not") && is_word("in", 1)) {
      op = "not in";
      advance();
    } else if (is_word("is")) {
      op = is_word("not", 1) ? "is not" : "is";
      if (is_word("not", 1)) advance();
    } else if (is_word("in") || is_op("==") || is_op("!=") || is_op("<") || is_op("<=") || is_op(">") || is_op(">=")) {
      op = now().text;
    } else {
      return left;
    }
    advance();
    const PythonValue right = binary(0);
    left = python_compare(op, left, right);
  }
}

PythonValue PythonExpressions::binary(std::size_t level) {
  if (level == kLevels.size()) return unary();
  PythonValue left = binary(level + 1);
  while (now().kind == PyToken::op && kLevels[level].find(" " + now().text + " ") != std::string_view::npos) {
    const std::string op = now().text;
    advance();
    left = python_binary(op, left, binary(level + 1));
    if ((made_ += python_size(left)) > kMaxPythonMade) too_much();
  }
  return left;
}

PythonValue PythonExpressions::unary() {
  std::vector<std::string> ops;
  for (; is_op("-") || is_op("+") || is_op("~"); advance()) ops.push_back(now().text);
  PythonValue value = power();
  for (; !ops.empty(); ops.pop_back()) value = python_unary(ops.back(), value);
  return value;
}

PythonValue PythonExpressions::power() {
  if (is_word("await")) advance();
  PythonValue base = postfix();
  if (!is_op("**")) return base;
  const int line = now().line;
  advance();
  if (++depth_ > kMaxExpressionDepth) fail("powers of powers without end", "write the number out", line);
  const PythonValue exponent = unary();
  --depth_;
  return python_binary("**", base, exponent);
}

PythonValue PythonExpressions::postfix() {
  const std::size_t first = at_;
  PythonValue value = atom();
  while (!error_) {
    if (is_op("(")) {
      value = called(std::move(value), first);
    } else if (is_op("[")) {
      value = subscript(value);
    } else if (is_op(".")) {
      advance();
      if (now().kind != PyToken::name) {
        fail("a name is missing behind '.'", "remove the '.'", now().line);
        break;
      }
      const std::string name = now().text;
      advance();
      value = attribute(value, name);
    } else {
      break;
    }
  }
  return value;
}

PythonValue PythonExpressions::attribute(const PythonValue& value, const std::string& name) {
  if (value.kind == PyKind::symbol) return python_symbol(value.text + "." + name);
  if (value.kind == PyKind::opaque) return value;
  if (is_op("(")) {
    const std::size_t first = at_;
    PythonValue method = python_symbol("." + name);
    PythonValue arguments = called(std::move(method), first);
    if (const std::optional<PythonValue> known = python_method(value, name, arguments)) return *known;
  }
  return unknown("worked out when it runs");
}

PythonValue PythonExpressions::subscript(const PythonValue& value) {
  advance();
  PythonValue key = is_op(":") ? unknown("a slice") : expressions();
  if (!is_op("]") && !error_) {
    if (!is_op(":") && !is_op(",")) expect("]");
    skip_to_closing();
    key = unknown("a slice");
  }
  expect("]");
  if (value.kind == PyKind::symbol && value.text == "os.environ" && key.kind == PyKind::text)
    return unknown("the environment variable " + key.text + " says it when it runs");
  PythonValue found = python_subscript(value, key);
  if ((made_ += python_size(found)) > kMaxPythonMade) too_much();
  return found;
}

PythonValue PythonExpressions::called(PythonValue callee, std::size_t first) {
  PythonValue arguments;
  arguments.kind = PyKind::call;
  arguments.text = callee.kind == PyKind::symbol ? callee.text : "";
  const int line = now().line;
  advance();
  while (!is_op(")") && !error_) {
    argument(arguments);
    if (comprehension()) {
      skip_to_closing();
      break;
    }
    if (!is_op(")")) expect(",");
  }
  expect(")");
  arguments.line = line;
  return applied(callee, arguments, first);
}

void PythonExpressions::argument(PythonValue& arguments) {
  if (now().kind == PyToken::name && is_op("=", 1)) {
    const std::string key = now().text;
    const int line = now().line;
    advance();
    advance();
    if (find(arguments, key) != nullptr)
      fail("the keyword '" + key + "' is given twice", "keep one '" + key + "='", line);
    PythonValue value = expression();
    place(arguments, key) = std::move(value);
    if (arguments.entries.size() > kMaxPythonEntries) too_much();
    return;
  }
  if (take("**")) {
    const PythonValue more = expression();
    if (more.kind != PyKind::table) return;
    for (const auto& [key, value] : more.entries) place(arguments, key) = value;
    return;
  }
  arguments.items.push_back(expression());
}

bool PythonExpressions::comprehension() {
  return is_word("for") || is_word("async");
}

PythonValue PythonExpressions::applied(const PythonValue& callee, const PythonValue& arguments, std::size_t first) {
  if (callee.kind == PyKind::opaque) return callee;
  if (callee.kind != PyKind::symbol) return unknown("called when it runs");
  if (callee.text.starts_with(".")) return arguments;  // attribute() knows the object
  if (const std::optional<PythonValue> known = python_builtin(callee.text, arguments)) return *known;
  if (const std::size_t dot = callee.text.rfind('.'); dot != std::string::npos)
    if (const std::optional<PythonValue> known =
            python_method(python_symbol(callee.text.substr(0, dot)), last_part(callee.text), arguments))
      return *known;
  if (names_.keep_calls) {
    PythonValue call = arguments;
    call.text = callee.text;
    return call;
  }
  const std::span<const std::string_view> parameters = known_parameters(last_part(callee.text));
  if ((!arguments.entries.empty() || !parameters.empty()) && calls_.size() < 1000) {
    PythonValue table = python_table();
    table.line = arguments.line;
    table.entries = arguments.entries;
    for (std::size_t i = 0; i < std::min(parameters.size(), arguments.items.size()); ++i)
      if (!parameters[i].empty() && find(table, parameters[i]) == nullptr)
        place(table, std::string(parameters[i])) = arguments.items[i];
    if ((made_ += python_size(table)) > kMaxPythonMade) too_much();
    calls_.push_back({.name = callee.text, .table = std::move(table)});
  }
  if (arguments.entries.empty() && arguments.items.empty()) return python_symbol(callee.text + "()");
  PythonValue value = unknown(last_part(callee.text) + "(...) is called when it runs");
  value.text = source_since(first);
  value.looked_into = !parameters.empty();
  return value;
}

}  // namespace shard::foreign
