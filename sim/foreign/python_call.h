// Calls that the restricted Python reader works out itself: dict, int, max and their like.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/foreign/python_value.h"

namespace shard::foreign {

/// The call's value; empty where the function is not one of ours. `arguments`: a call with its items and entries.
[[nodiscard]] std::optional<PythonValue> python_builtin(std::string_view name, const PythonValue& arguments);

/// `table.get(...)`, `table.copy()`, `os.environ.get(...)`: the method's value; empty where we have none. An
/// environment variable has its default.
[[nodiscard]] std::optional<PythonValue> python_method(const PythonValue& object, std::string_view method,
                                                       const PythonValue& arguments);

/// Names that Python has without an import.
[[nodiscard]] bool is_python_builtin(std::string_view name);
/// Classes of configurations whose import may be missing in what people paste: TensorShardStrategy, HybridAdam, ...
[[nodiscard]] bool is_known_class(std::string_view name);
/// Parameters of Colossal-AI's classes and functions that programs give by position, in order; "" for what says nothing
/// here. None: not one of these.
[[nodiscard]] std::span<const std::string_view> known_parameters(std::string_view name);

}  // namespace shard::foreign
