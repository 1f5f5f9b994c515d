// Kernels' names, as whoever wrote them down spelled them: the compiler, PyTorch's profiler, nsys.
#pragma once

#include <string>
#include <string_view>

namespace shard::steptime {

/// As C++ has it, where the compiler wrote it.
[[nodiscard]] std::string readable(std::string_view name);

/// One spelling for one kernel: demangled, without its type and arguments, spaces, casts and endings of numbers; what
/// is anonymous and lambdas in one form, and of functions that these are in no arguments.
[[nodiscard]] std::string bare_name(std::string_view name);

/// Of bare_name(), what comes before its template's arguments.
[[nodiscard]] std::string_view without_template(std::string_view bare);

}  // namespace shard::steptime
