// A Python file as it stands, read without running it: what its top-level names are, and what is called by keyword.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/foreign/python_expression.h"
#include "sim/foreign/python_value.h"
#include "traces/base/result.h"

namespace shard::foreign {

struct PythonFile {
  PythonValue root;                    ///< a table: top-level names in order of their first assignment
  std::vector<PythonCall> calls{};     ///< by keyword, anywhere, in the file's order
  std::vector<std::string> modules{};  ///< that are imported
};

/// Assignments, dict(...) and {...}, literals, arithmetic and references are worked out; functions and classes are
/// looked into for calls by keyword, with the defaults of their parameters; imports are skipped; an `if` whose
/// condition is known takes its branch. What only a run knows stays as its source, with the reason. Fails with
/// Errc::malformed: no Python, beyond the limits, or what Python itself would stop at on the way (an undefined name, a
/// missing key, a division by zero, a number that nothing holds); the message has the key's JSON pointer.
[[nodiscard]] Result<PythonFile> read_python(std::string_view source, std::string_view file);

}  // namespace shard::foreign
