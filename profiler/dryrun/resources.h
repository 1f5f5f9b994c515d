// The files that a dry run puts beside the program, which this binary carries with it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace shard::dryrun {

/// The shared library of profiler/standin.
[[nodiscard]] std::span<const std::byte> standin_library();

/// A file of the folder python, by its name.
struct PythonFile {
  std::string_view name;
  std::span<const std::byte> content;
};
/// What is loaded into the program's Python (sitecustomize.py and what it loads), ranks.py, which starts ranks,
/// recipe.py, a program, and smi.py, which is nvidia-smi.
[[nodiscard]] std::span<const PythonFile> python_files();

}  // namespace shard::dryrun
