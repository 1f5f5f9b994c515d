// Values of the restricted Python reader, and the arithmetic on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shard::foreign {

struct PythonValue {
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    symbol,  ///< a class, module or enumerator by its dotted name: AMP_TYPE.NAIVE
    list,    ///< a tuple and a set, too
    table,
    call,    ///< `text` is the dotted name that is called, `entries` the keyword arguments, `items` the others
    opaque,  ///< known only when it runs: `text` is its source, `why` the reason
  };
  Kind kind = Kind::none;
  bool flag = false;
  bool fault = false;        ///< opaque: Python itself would stop here
  bool undefined = false;    ///< fault: of a name that nothing defines
  bool looked_into = false;  ///< opaque: of a call whose arguments are taken
  std::int64_t integer = 0;
  double real = 0;
  std::string text{};
  std::string why{};
  std::vector<PythonValue> items{};
  std::vector<std::pair<std::string, PythonValue>> entries{};  ///< in order of their first assignment
  int line = 0;

  [[nodiscard]] bool is_number() const { return kind == Kind::boolean || kind == Kind::integer || kind == Kind::real; }
  [[nodiscard]] bool is_integer() const { return kind == Kind::boolean || kind == Kind::integer; }
  [[nodiscard]] std::int64_t as_integer() const { return kind == Kind::boolean ? (flag ? 1 : 0) : integer; }
  [[nodiscard]] double as_real() const { return kind == Kind::real ? real : static_cast<double>(as_integer()); }
};

[[nodiscard]] PythonValue python_none();
[[nodiscard]] PythonValue python_boolean(bool flag);
[[nodiscard]] PythonValue python_integer(std::int64_t integer);
[[nodiscard]] PythonValue python_real(double real);
[[nodiscard]] PythonValue python_text(std::string text);
[[nodiscard]] PythonValue python_symbol(std::string name);
[[nodiscard]] PythonValue python_table();
/// Known only when it runs.
[[nodiscard]] PythonValue python_opaque(std::string why);
/// Python itself would stop here.
[[nodiscard]] PythonValue python_fault(std::string why);

/// How many values it is made of, itself included, each 32 letters of text as one more.
[[nodiscard]] std::size_t python_size(const PythonValue& value);

/// The table's entry; null for none.
[[nodiscard]] const PythonValue* find(const PythonValue& table, std::string_view key);
/// The entry's place, made if there is none.
[[nodiscard]] PythonValue& place(PythonValue& table, const std::string& key);

/// What `if` makes of it; empty where only a run knows.
[[nodiscard]] std::optional<bool> truth(const PythonValue& value);

/// +, -, ~, not.
[[nodiscard]] PythonValue python_unary(std::string_view op, const PythonValue& value);
/// Arithmetic. What does not fit in 64 bits becomes a real number; what does not fit there either is a fault.
[[nodiscard]] PythonValue python_binary(std::string_view op, const PythonValue& left, const PythonValue& right);
/// ==, !=, <, <=, >, >=, in, not in, is, is not.
[[nodiscard]] PythonValue python_compare(std::string_view op, const PythonValue& left, const PythonValue& right);
/// value[key]
[[nodiscard]] PythonValue python_subscript(const PythonValue& value, const PythonValue& key);

/// The first fault in a tree of values and where it lies ("/model_config/shard_strategy"); null for none.
struct PythonFault {
  const PythonValue* value = nullptr;
  std::string pointer{};
};
[[nodiscard]] PythonFault find_fault(const PythonValue& value);

}  // namespace shard::foreign
