// A Python file as a document.
#include <algorithm>
#include <utility>

#include "sim/foreign/python_file.h"
#include "sim/foreign/script_document.h"

namespace shard::foreign {
namespace {

class PythonDocument {
 public:
  ScriptDocument run(const PythonFile& file, std::span<const std::string_view> classes,
                     std::span<const std::string_view> beside) {
    PythonValue root = file.root;
    add_calls(root, file.calls, classes);
    for (const std::string_view each : beside) add_calls(root, file.calls, {&each, 1});
    document_.root = converted(root, "");
    document_.names = file.modules;
    return std::move(document_);
  }

 private:
  void add_calls(PythonValue& root, const std::vector<PythonCall>& calls, std::span<const std::string_view> classes) {
    std::string first;
    for (const PythonCall& call : calls) {
      const std::string name = call.name.substr(call.name.rfind('.') + 1);
      if (std::find(classes.begin(), classes.end(), name) == classes.end()) continue;
      if (find(root, name) != nullptr) continue;
      if (first.empty()) {
        first = name;
        place(root, name) = call.table;
      } else if (std::find(others_.begin(), others_.end(), name) == others_.end()) {
        others_.push_back(name);
        for (const auto& [key, value] : call.table.entries)
          document_.unread.push_back({pointer_part(name) + pointer_part(key), first + " comes first, and counts"});
      }
    }
  }

  /// Only leaves that are known stay.
  Value converted(const PythonValue& value, const std::string& pointer) {
    Value result{.kind = Kind::table, .line = value.line};
    for (const auto& [key, each] : value.entries) {
      const std::string at = pointer + pointer_part(key);
      if (each.looked_into) continue;
      if (each.kind == PythonValue::Kind::opaque)
        document_.unread.push_back({at, each.why + ": " + each.text});
      else if (each.kind == PythonValue::Kind::table && !each.entries.empty())
        result.members.push_back({key, converted(each, at)});
      else
        result.members.push_back({key, leaf(each)});
    }
    return result;
  }

  static Value leaf(const PythonValue& value) {
    switch (value.kind) {
      case PythonValue::Kind::none: break;
      case PythonValue::Kind::boolean: return boolean_value(value.flag, value.line);
      case PythonValue::Kind::integer: return integer_value(value.integer, value.line);
      case PythonValue::Kind::real: return real_value(value.real, value.line);
      case PythonValue::Kind::symbol: {
        const bool made = value.text.ends_with("()");
        return text_value(made ? value.text.substr(0, value.text.size() - 2) : value.text, value.line);
      }
      case PythonValue::Kind::text:
      case PythonValue::Kind::call:
      case PythonValue::Kind::opaque: return text_value(value.text, value.line);
      case PythonValue::Kind::list: {
        Value list{.kind = Kind::list, .line = value.line};
        for (const PythonValue& item : value.items) list.items.push_back(leaf(item));
        return list;
      }
      case PythonValue::Kind::table: return {.kind = Kind::table, .line = value.line};
    }
    return {.kind = Kind::null, .line = value.line};
  }

  ScriptDocument document_{};
  std::vector<std::string> others_{};
};

}  // namespace

Result<ScriptDocument> python_document(std::string_view content, const std::string& where,
                                       std::span<const std::string_view> classes,
                                       std::span<const std::string_view> beside) {
  const Result<PythonFile> file = read_python(content, where);
  if (!file) return file.error();
  return PythonDocument().run(*file, classes, beside);
}

}  // namespace shard::foreign
