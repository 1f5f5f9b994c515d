// Reads TOML by toml++.
#include "sim/foreign/toml_document.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "sim/foreign/toml_scan.h"

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

constexpr std::size_t kLargestToml = std::size_t{1} << 20;

/// The tree, as far as a configuration has one; then a fault and its line.
class TomlTree {
 public:
  Value value(const toml::node& node, std::size_t depth) {
    const int line = static_cast<int>(node.source().begin.line);
    if (++made_ > kMostValues) refuse("more values than any configuration has", line);
    if (depth > kDeepest) refuse(kTomlTooDeep, line);
    if (!fault_.empty()) return {};
    if (const toml::table* table = node.as_table()) return members(*table, line, depth);
    if (const toml::array* array = node.as_array()) {
      Value result{.kind = Kind::list, .line = line};
      for (const toml::node& each : *array) result.items.push_back(value(each, depth + 1));
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

  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] int fault_line() const { return fault_line_; }

 private:
  Value members(const toml::table& table, int line, std::size_t depth) {
    Value result{.kind = Kind::table, .line = line};
    if (table.size() > kMostKeys) refuse("a table has more keys than any configuration", line);
    for (const auto& [key, each] : table)
      if (fault_.empty()) result.members.push_back({std::string(key.str()), value(each, depth + 1)});
    // toml++ keeps keys in their alphabet's order.
    std::ranges::stable_sort(result.members, {}, [](const Member& each) { return each.value.line; });
    return result;
  }
  void refuse(const char* why, int line) {
    if (!fault_.empty()) return;
    fault_ = why;
    fault_line_ = line;
  }

  std::size_t made_ = 0;
  std::string fault_;
  int fault_line_ = 0;
};

}  // namespace

Result<Value> read_toml(std::string_view content, const std::string& where) {
  if (content.size() > kLargestToml)
    return Error{.code = Errc::malformed, .what = "more than 1 MiB of TOML", .where = where, .help = "a configuration"};
  const auto malformed = [&](const std::string& what, int line) {
    return Error{.code = Errc::malformed,
                 .what = "is no TOML: " + what,
                 .where = where + (line > 0 ? ":" + std::to_string(line) : ""),
                 .help = "mend the line, or restore the file's end"};
  };
  if (TomlScan scan(content); const char* fault = scan.fault()) return malformed(fault, scan.line());
  try {
    TomlTree tree;
    Value root = tree.value(toml::parse(content), 0);
    if (!tree.fault().empty()) return malformed(tree.fault(), tree.fault_line());
    if (!has_pointers_in_bounds(root)) return malformed("names are longer than any configuration has them", 0);
    return root;
  } catch (const toml::parse_error& fault) {
    return malformed(std::string(fault.description()), static_cast<int>(fault.source().begin.line));
  } catch (const std::exception& fault) {
    return malformed(fault.what(), 0);
  }
}

}  // namespace shard::foreign
