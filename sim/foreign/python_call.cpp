// The few functions, and the names of classes.
#include "sim/foreign/python_call.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace shard::foreign {
namespace {

using PyKind = PythonValue::Kind;

constexpr auto kBuiltins = std::to_array<std::string_view>({"dict",
                                                            "list",
                                                            "tuple",
                                                            "set",
                                                            "int",
                                                            "float",
                                                            "str",
                                                            "bool",
                                                            "len",
                                                            "max",
                                                            "min",
                                                            "abs",
                                                            "round",
                                                            "sum",
                                                            "pow",
                                                            "range",
                                                            "print",
                                                            "open",
                                                            "isinstance",
                                                            "getattr",
                                                            "hasattr",
                                                            "setattr",
                                                            "super",
                                                            "type",
                                                            "object",
                                                            "zip",
                                                            "map",
                                                            "filter",
                                                            "enumerate",
                                                            "sorted",
                                                            "any",
                                                            "all",
                                                            "iter",
                                                            "next",
                                                            "repr",
                                                            "vars",
                                                            "globals",
                                                            "locals",
                                                            "input",
                                                            "exit",
                                                            "quit",
                                                            "id",
                                                            "hash",
                                                            "bytes",
                                                            "format",
                                                            "reversed",
                                                            "property",
                                                            "staticmethod",
                                                            "classmethod",
                                                            "callable",
                                                            "Exception",
                                                            "ValueError",
                                                            "RuntimeError",
                                                            "NotImplementedError",
                                                            "KeyError",
                                                            "TypeError",
                                                            "ImportError",
                                                            "AssertionError",
                                                            "IndexError",
                                                            "StopIteration",
                                                            "OSError",
                                                            "FileNotFoundError",
                                                            "KeyboardInterrupt",
                                                            "slice",
                                                            "complex",
                                                            "frozenset",
                                                            "divmod",
                                                            "chr",
                                                            "ord",
                                                            "hex",
                                                            "bin",
                                                            "eval",
                                                            "exec",
                                                            "NotImplemented",
                                                            "Ellipsis",
                                                            "__name__",
                                                            "__file__",
                                                            "__doc__",
                                                            "__import__",
                                                            "AttributeError",
                                                            "Warning",
                                                            "UserWarning",
                                                            "DeprecationWarning",
                                                            "NameError",
                                                            "ZeroDivisionError",
                                                            "ModuleNotFoundError",
                                                            "TimeoutError",
                                                            "delattr",
                                                            "dir",
                                                            "memoryview",
                                                            "bytearray",
                                                            "issubclass"});

constexpr auto kClasses = std::to_array<std::string_view>({"TensorShardStrategy",
                                                           "BucketTensorShardStrategy",
                                                           "AMP_TYPE",
                                                           "HybridAdam",
                                                           "CPUAdam",
                                                           "FusedAdam",
                                                           "GeminiAdam",
                                                           "GeminiAdamOptimizer",
                                                           "Lamb",
                                                           "FusedLAMB",
                                                           "Lars",
                                                           "FusedSGD",
                                                           "ShardedModelV2",
                                                           "ShardedOptimizerV2",
                                                           "ZeroOptimizer",
                                                           "GeminiDDP",
                                                           "ZeroDDP",
                                                           "GeminiPlugin",
                                                           "LowLevelZeroPlugin",
                                                           "TorchDDPPlugin",
                                                           "HybridParallelPlugin",
                                                           "TorchFSDPPlugin",
                                                           "ChunkManager",
                                                           "GeminiManager",
                                                           "GeminiOptimizer",
                                                           "init_chunk_manager",
                                                           "ZeroInitContext",
                                                           "ColoInitContext",
                                                           "ProcessGroup",
                                                           "get_current_device",
                                                           "Booster",
                                                           "colossalai",
                                                           "torch"});

/// What is called by position, of Colossal-AI 0.1.5 to 0.3.0.
struct Parameters {
  std::string_view name;
  std::array<std::string_view, 9> in_order;
};
constexpr auto kParameters = std::to_array<Parameters>({
    {"search_chunk_size", {"", "search_range", "n_grids", "min_chunk_size", "filter_exlarge_params"}},
    {"init_chunk_manager", {"", "init_device", "hidden_dim", "search_range_mb", "min_chunk_size_mb"}},
    {"ChunkManager", {"chunk_size", "", "enable_distributed_storage", "init_device"}},
    {"GeminiManager", {"placement_policy"}},
    {"ZeroDDP", {"", "", "pin_memory", "force_outputs_fp32"}},
    {"GeminiDDP", {"", "", "placement_policy", "pin_memory", "force_outputs_fp32"}},
    {"GeminiPlugin", {"", "placement_policy", "pin_memory", "force_outputs_fp32"}},
    {"ShardedModelV2",
     {"", "shard_strategy", "", "", "reduce_scatter_bucket_size_mb", "fp32_reduce_scatter", "tensor_placement_policy",
      "gradient_predivide_factor", "reuse_fp16_shard"}},
});

std::optional<PythonValue> parsed_number(std::string_view text) {
  std::int64_t integer = 0;
  const char* end = text.data() + text.size();
  if (const auto [stop, code] = std::from_chars(text.data(), end, integer); code == std::errc{} && stop == end)
    return python_integer(integer);
  double real = 0;
  if (const auto [stop, code] = std::from_chars(text.data(), end, real); code == std::errc{} && stop == end)
    return std::isfinite(real) ? python_real(real) : python_fault("no finite number");
  return std::nullopt;
}

PythonValue as_int(const PythonValue& value) {
  if (value.is_integer()) return python_integer(value.as_integer());
  if (value.kind == PyKind::real) {
    if (!(std::abs(value.real) < 9.2e18)) return python_real(std::trunc(value.real));
    return python_integer(static_cast<std::int64_t>(value.real));
  }
  if (value.kind == PyKind::text) {
    const std::optional<PythonValue> number = parsed_number(value.text);
    return number && number->kind == PyKind::integer ? *number : python_fault("int() of '" + value.text + "'");
  }
  return python_opaque("worked out when it runs");
}

PythonValue as_float(const PythonValue& value) {
  if (value.is_number()) return python_real(value.as_real());
  if (value.kind == PyKind::text) {
    const std::optional<PythonValue> number = parsed_number(value.text);
    return number && number->is_number() ? python_real(number->as_real())
                                         : python_fault("float() of '" + value.text + "'");
  }
  return python_opaque("worked out when it runs");
}

PythonValue made_dict(const PythonValue& arguments) {
  PythonValue table = python_table();
  if (!arguments.items.empty()) {
    if (arguments.items.size() > 1 || arguments.items[0].kind != PyKind::table)
      return python_opaque("a dict that is made when it runs");
    table.entries = arguments.items[0].entries;
  }
  for (const auto& [key, value] : arguments.entries) place(table, key) = value;
  return table;
}

/// max and min of numbers.
PythonValue extreme(bool greatest, const PythonValue& arguments) {
  const std::vector<PythonValue>& all = arguments.items.size() == 1 && arguments.items[0].kind == PyKind::list
                                            ? arguments.items[0].items
                                            : arguments.items;
  if (all.empty() || !arguments.entries.empty()) return python_opaque("worked out when it runs");
  const PythonValue* best = nullptr;
  for (const PythonValue& each : all) {
    if (!each.is_number()) return python_opaque("worked out when it runs");
    if (best == nullptr || (greatest ? each.as_real() > best->as_real() : each.as_real() < best->as_real()))
      best = &each;
  }
  return *best;
}

PythonValue length(const PythonValue& value) {
  switch (value.kind) {
    case PyKind::text: return python_integer(static_cast<std::int64_t>(value.text.size()));
    case PyKind::list: return python_integer(static_cast<std::int64_t>(value.items.size()));
    case PyKind::table: return python_integer(static_cast<std::int64_t>(value.entries.size()));
    case PyKind::none:
    case PyKind::boolean:
    case PyKind::integer:
    case PyKind::real:
    case PyKind::symbol:
    case PyKind::call:
    case PyKind::opaque: break;
  }
  return python_opaque("worked out when it runs");
}

PythonValue of_one(std::string_view name, const PythonValue& value) {
  if (value.kind == PyKind::opaque) return value;
  if (name == "int") return as_int(value);
  if (name == "float") return as_float(value);
  if (name == "len") return length(value);
  if (name == "str") return value.kind == PyKind::text ? value : python_opaque("a text that is made when it runs");
  if (name == "bool") {
    const std::optional<bool> known = truth(value);
    return known ? python_boolean(*known) : python_opaque("worked out when it runs");
  }
  if (name == "abs" && value.is_number())
    return value.as_real() < 0 ? python_unary("-", value) : python_unary("+", value);
  if (name == "round" && value.is_number()) return as_int(python_real(std::nearbyint(value.as_real())));
  if ((name == "list" || name == "tuple" || name == "set") && value.kind == PyKind::list) return value;
  return python_opaque("worked out when it runs");
}

}  // namespace

std::optional<PythonValue> python_builtin(std::string_view name, const PythonValue& arguments) {
  constexpr auto kOfOne =
      std::to_array<std::string_view>({"int", "float", "len", "str", "bool", "abs", "round", "list", "tuple", "set"});
  if (name == "dict") return made_dict(arguments);
  if (name == "max" || name == "min") return extreme(name == "max", arguments);
  if (name == "pow" && arguments.items.size() == 2) return python_binary("**", arguments.items[0], arguments.items[1]);
  if (std::find(kOfOne.begin(), kOfOne.end(), name) == kOfOne.end()) return std::nullopt;
  if (arguments.items.size() == 1 && arguments.entries.empty()) return of_one(name, arguments.items[0]);
  if (!arguments.items.empty() || !arguments.entries.empty()) return python_opaque("worked out when it runs");
  if (name == "int") return python_integer(0);
  if (name == "float") return python_real(0);
  if (name == "str") return python_text("");
  if (name == "bool") return python_boolean(false);
  PythonValue empty;
  empty.kind = PyKind::list;
  return empty;
}

std::optional<PythonValue> python_method(const PythonValue& object, std::string_view method,
                                         const PythonValue& arguments) {
  const std::vector<PythonValue>& given = arguments.items;
  const bool environment = object.kind == PyKind::symbol && ((object.text == "os.environ" && method == "get") ||
                                                             (object.text == "os" && method == "getenv"));
  if (environment && !given.empty()) {
    if (given.size() > 1) return given[1];
    if (const PythonValue* otherwise = find(arguments, "default")) return *otherwise;
    return python_none();
  }
  if (object.kind == PyKind::table && method == "get" && !given.empty() && given[0].kind == PyKind::text) {
    if (const PythonValue* found = find(object, given[0].text)) return *found;
    return given.size() > 1 ? given[1] : python_none();
  }
  if (object.kind == PyKind::table && method == "copy") return object;
  return std::nullopt;
}

bool is_python_builtin(std::string_view name) {
  return std::find(kBuiltins.begin(), kBuiltins.end(), name) != kBuiltins.end();
}

std::span<const std::string_view> known_parameters(std::string_view name) {
  const auto known =
      std::find_if(kParameters.begin(), kParameters.end(), [&](const Parameters& each) { return each.name == name; });
  return known == kParameters.end() ? std::span<const std::string_view>() : known->in_order;
}

bool is_known_class(std::string_view name) {
  return std::find(kClasses.begin(), kClasses.end(), name) != kClasses.end();
}

}  // namespace shard::foreign
