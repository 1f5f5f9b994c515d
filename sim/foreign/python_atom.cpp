// What stands between operators: literals, names, brackets.
#include <algorithm>
#include <array>
#include <charconv>

#include "sim/foreign/python_call.h"
#include "sim/foreign/python_expression.h"

namespace shard::foreign {
namespace {

using PyKind = PythonValue::Kind;
using PyToken = PythonTokenKind;

constexpr auto kKeywords = std::to_array<std::string_view>(
    {"and",  "as",       "assert",  "break", "class", "continue", "def", "del",    "elif",
     "else", "except",   "finally", "for",   "from",  "global",   "if",  "import", "in",
     "is",   "nonlocal", "or",      "pass",  "raise", "return",   "try", "while",  "with"});

bool is_keyword(std::string_view word) {
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

}  // namespace

PythonValue PythonExpressions::atom() {
  switch (now().kind) {
    case PyToken::integer:
    case PyToken::real: return number();
    case PyToken::string:
    case PyToken::formatted: return strings();
    case PyToken::name: return word();
    case PyToken::op: break;
    case PyToken::newline:
    case PyToken::indent:
    case PyToken::dedent:
    case PyToken::end: break;
  }
  if (is_op("(")) return parenthesised();
  if (is_op("[")) return bracketed();
  if (is_op("{")) return braced();
  if (take("...")) return python_symbol("...");
  if (!error_) {
    const bool ends = now().kind != PyToken::op;
    fail(ends ? "a value is missing at the end of the line" : "'" + now().text + "' stands where a value belongs",
         "write the value, or remove the line", now().line);
  }
  return {};
}

PythonValue PythonExpressions::number() {
  const PythonToken& token = now();
  const int line = token.line;
  const std::string& text = token.text;
  const bool real = token.kind == PyToken::real;
  advance();
  std::string_view digits = text;
  int base = 10;
  if (!real && digits.size() > 1 && digits[0] == '0' && (digits[1] < '0' || digits[1] > '9')) {
    base = digits[1] == 'x' || digits[1] == 'X' ? 16 : digits[1] == 'o' || digits[1] == 'O' ? 8 : 2;
    digits.remove_prefix(2);
  }
  const char* const end = digits.data() + digits.size();
  if (!real) {
    std::int64_t integer = 0;
    const auto [stop, code] = std::from_chars(digits.data(), end, integer, base);
    if (code == std::errc{} && stop == end) return python_integer(integer);
    if (base != 10 || stop != end) {
      fail("'" + text + "' is no number", "write the number in decimal", line);
      return {};
    }
  }
  double value = 0;
  const auto [stop, code] = std::from_chars(digits.data(), end, value);
  if (code == std::errc{} && stop == end) return python_real(value);
  // 1e-400 is 0 to Python, and 1e400 infinite: neither says anything in a configuration.
  return python_fault("'" + text + "' is out of the range of numbers");
}

PythonValue PythonExpressions::strings() {
  std::string text;
  bool formatted = false;
  while (now().kind == PyToken::string || now().kind == PyToken::formatted) {
    formatted = formatted || now().kind == PyToken::formatted;
    text += now().text;
    advance();
  }
  return formatted ? unknown("a text that is made when it runs") : python_text(std::move(text));
}

PythonValue PythonExpressions::word() {
  const std::string name = now().text;
  const int line = now().line;
  if (is_keyword(name)) {
    fail("'" + name + "' stands where a value belongs", "write the value", line);
    return {};
  }
  advance();
  if (name == "None") return python_none();
  if (name == "True" || name == "False") return python_boolean(name == "True");
  if (name == "yield") {
    if (is_word("from")) advance();
    if (now().kind != PyToken::newline && !is_op(")")) static_cast<void>(expressions());
    return unknown("made when it runs");
  }
  for (auto scope = names_.scopes.rbegin(); scope != names_.scopes.rend(); ++scope) {
    const auto at = scope->find(name);
    if (at == scope->end()) continue;
    if ((made_ += python_size(at->second)) > kMaxPythonMade) too_much();
    return at->second;
  }
  if (is_python_builtin(name) || is_known_class(name)) return python_symbol(name);
  if (names_.star_import) return unknown("'" + name + "' comes from a module that is imported with *");
  PythonValue value = python_fault("the name '" + name + "' is not defined");
  value.undefined = true;
  return value;
}

PythonValue PythonExpressions::parenthesised() {
  advance();
  PythonValue list;
  list.kind = PyKind::list;
  if (take(")")) return list;
  PythonValue value = expressions();
  if (comprehension()) {
    skip_to_closing();
    value = unknown("worked out when it runs");
  }
  expect(")");
  return value;
}

PythonValue PythonExpressions::bracketed() {
  advance();
  PythonValue list;
  list.kind = PyKind::list;
  while (!is_op("]") && !error_) {
    list.items.push_back(expression());
    if (comprehension()) {
      skip_to_closing();
      list = unknown("worked out when it runs");
      break;
    }
    if (!is_op("]")) expect(",");
  }
  expect("]");
  return list;
}

PythonValue PythonExpressions::braced() {
  advance();
  PythonValue table = python_table();
  PythonValue set;
  set.kind = PyKind::list;
  bool computed = false;
  while (!is_op("}") && !error_) {
    if (take("**")) {
      const PythonValue more = expression();
      computed = computed || more.kind != PyKind::table;
      for (const auto& [key, value] : more.entries) place(table, key) = value;
    } else {
      const PythonValue key = expression();
      if (take(":")) {
        PythonValue value = expression();
        const bool plain = key.kind == PyKind::text || key.kind == PyKind::symbol;
        place(table, plain                         ? key.text
                     : key.kind == PyKind::integer ? std::to_string(key.integer)
                                                   : "?") = std::move(value);
      } else {
        set.items.push_back(key);
      }
    }
    if (comprehension()) {
      skip_to_closing();
      computed = true;
      break;
    }
    if (!is_op("}")) expect(",");
  }
  expect("}");
  if (computed) return unknown("worked out when it runs");
  return set.items.empty() ? table : set;
}

PythonValue PythonExpressions::lambda() {
  advance();
  for (std::size_t depth = 0; now().kind != PyToken::end && now().kind != PyToken::newline; advance()) {
    if (is_op(":") && depth == 0) break;
    if (is_op("(") || is_op("[") || is_op("{")) ++depth;
    if (is_op(")") || is_op("]") || is_op("}")) {
      if (depth == 0) break;
      --depth;
    }
  }
  expect(":");
  static_cast<void>(expression());
  return unknown("a function");
}

}  // namespace shard::foreign
