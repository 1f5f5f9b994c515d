// Reads TOML by toml++.
#include "sim/foreign/toml_document.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

// toml++ 3.3 asserts what malformed files break ("[a.", for one), and lets the optimizer assume it where NDEBUG is
// defined. Here it throws instead, in every build.
#undef NDEBUG
namespace {
[[noreturn]] void garbled() {
  throw std::runtime_error("it is cut short or garbled");
}
}  // namespace
#define TOML_ASSERT(expr) ((expr) ? static_cast<void>(0) : garbled())
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace shard::foreign {
namespace {

/// Lists within lists and tables within tables, that toml++ would follow deeper.
constexpr int kDeepestToml = 32;
constexpr std::size_t kLargestToml = std::size_t{1} << 20;

int line_of(const toml::node& node) {
  return static_cast<int>(node.source().begin.line);
}

Value toml_value(const toml::node& node, int depth) {
  const int line = line_of(node);
  if (const toml::table* table = node.as_table(); table != nullptr && depth < kDeepestToml) {
    Value result{.kind = Kind::table, .line = line};
    for (const auto& [key, each] : *table)
      result.members.push_back({std::string(key.str()), toml_value(each, depth + 1)});
    // toml++ keeps keys in their alphabet's order.
    std::ranges::stable_sort(result.members, {}, [](const Member& each) { return each.value.line; });
    return result;
  }
  if (const toml::array* array = node.as_array(); array != nullptr && depth < kDeepestToml) {
    Value result{.kind = Kind::list, .line = line};
    for (const toml::node& each : *array) result.items.push_back(toml_value(each, depth + 1));
    return result;
  }
  if (const auto* text = node.as_string()) return text_value(text->get(), line);
  if (const auto* integer = node.as_integer()) return integer_value(integer->get(), line);
  if (const auto* real = node.as_floating_point())
    return std::isfinite(real->get()) ? real_value(real->get(), line)
                                      : text_value(real->get() > 0 ? "inf" : "nan", line);
  if (const auto* boolean = node.as_boolean()) return boolean_value(boolean->get(), line);
  std::ostringstream date;
  date << toml::node_view<const toml::node>(node);
  return text_value(date.str(), line);
}

}  // namespace

Result<Value> read_toml(std::string_view content, const std::string& where) {
  if (content.size() > kLargestToml)
    return Error{.code = Errc::malformed, .what = "more than 1 MiB of TOML", .where = where, .help = "a configuration"};
  const auto malformed = [&](const std::string& what, std::uint32_t line) {
    return Error{.code = Errc::malformed,
                 .what = "is no TOML: " + what,
                 .where = where + (line > 0 ? ":" + std::to_string(line) : ""),
                 .help = "mend the line, or restore the file's end"};
  };
  try {
    return toml_value(toml::parse(content), 0);
  } catch (const toml::parse_error& fault) {
    return malformed(std::string(fault.description()), fault.source().begin.line);
  } catch (const std::exception& fault) {
    return malformed(fault.what(), 0);
  }
}

}  // namespace shard::foreign
