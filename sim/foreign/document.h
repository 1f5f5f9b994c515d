// A file of another tool as a tree of values, each with the line it stands on; JSON pointers (RFC 6901) name its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::foreign {

enum class Kind : std::uint8_t { null, boolean, integer, real, text, list, table };

[[nodiscard]] constexpr const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::null: return "null";
    case Kind::boolean: return "true or false";
    case Kind::integer: return "a whole number";
    case Kind::real: return "a number";
    case Kind::text: return "a text";
    case Kind::list: return "a list";
    case Kind::table: return "a table";
  }
  return "?";
}

struct Member;

struct Value {
  Kind kind = Kind::null;
  int line = 0;  ///< counted from 1
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;             ///< also of an integer
  std::string text{};          ///< a text; of an expression that a reader could not work out, the expression
  std::vector<Value> items{};  ///< of a list
  /// Of a table, in the file's order, each key once. Member is not complete here: clang 14 refuses the braces, without
  /// which GCC warns wherever a Value is made of some of its fields.
#ifdef __clang__
  std::vector<Member> members;
#else
  std::vector<Member> members{};
#endif

  /// The value of a table's key; null for none, and where this is no table.
  [[nodiscard]] const Value* find(std::string_view key) const;
  /// What a pointer names, "" being this; tables alone are looked into. Null for none.
  [[nodiscard]] const Value* at(std::string_view pointer) const;
  [[nodiscard]] bool is_table() const {
    return kind == Kind::table;
  }
};

struct Member {
  std::string key;
  Value value;
};

[[nodiscard]] Value text_value(std::string text, int line);
[[nodiscard]] Value integer_value(std::int64_t integer, int line);
[[nodiscard]] Value real_value(double real, int line);
[[nodiscard]] Value boolean_value(bool boolean, int line);

/// A value that is no table, or an empty one. A list is one leaf, whatever is in it.
struct Leaf {
  std::string pointer;
  const Value* value;
};
/// In the file's order. `value` must outlive them.
[[nodiscard]] std::vector<Leaf> leaves(const Value& value);

/// "/" and the key with "~" as "~0" and "/" as "~1".
[[nodiscard]] std::string pointer_part(std::string_view key);

/// The value on one line for messages, cut where it is long: "[0, 1, 2]", "\"auto\"".
[[nodiscard]] std::string shown(const Value& value);

/// No reader goes deeper, takes more keys in one table, or makes more values of aliases and the like.
inline constexpr std::size_t kDeepest = 64;
inline constexpr std::size_t kMostKeys = 4096;
inline constexpr std::size_t kMostValues = 20'000;

/// Whether all pointers of its leaves together are of a size that a configuration has: a long name above many leaves
/// stands in each of them. For readers.
[[nodiscard]] bool has_pointers_in_bounds(const Value& value);

/// JSON as Python's json.load reads it, with a key twice in a table refused. `where`: the file, for errors.
/// Errc::malformed names the line.
[[nodiscard]] Result<Value> read_json(std::string_view content, const std::string& where);

/// The same as DeepSpeed reads it, by Hjson: JSON with comments, commas too many or too few, texts without quotes. A
/// whole number is one in any notation (5e8). What is JSON but for a placeholder (ZERO_STAGE) is refused as above.
[[nodiscard]] Result<Value> read_deepspeed_json(std::string_view content, const std::string& where);
/// Hjson alone.
[[nodiscard]] Result<Value> read_hjson(std::string_view content, const std::string& where);

/// One YAML document as PyYAML's safe_load reads it: yes and no are booleans, aliases and merge keys are followed.
[[nodiscard]] Result<Value> read_yaml(std::string_view content, const std::string& where);

}  // namespace shard::foreign
