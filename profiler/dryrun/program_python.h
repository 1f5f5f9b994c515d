// The PyTorch that a program would run with: asked of the Python that would run it, without running the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/base/result.h"

namespace shard::dryrun {

struct PyTorch {
  std::string version;                       ///< "2.11.0+cu130"
  int cuda_version = 0;                      ///< that it was built for: 1000 * major + 10 * minor
  std::filesystem::path packages;            ///< the folder that it is installed in
  std::vector<std::filesystem::path> paths;  ///< where else that Python finds modules, but for its own library
  std::string python;                        ///< the interpreter that was asked
};

/// The interpreter of a program: itself, that of its first line, or the one that was named.
[[nodiscard]] std::string interpreter_of(const std::string& program, const std::string& named);

/// `program`: as it would be started: an interpreter, a script with a first line that names one, or anything else,
/// for which `python` is asked. Errc::unavailable where there is no such program, no Python, no PyTorch, or one
/// without CUDA.
[[nodiscard]] Result<PyTorch> pytorch_of(const std::vector<std::string>& program, const std::string& python);

/// Shared libraries that the program may load: of PyTorch, of the packages beside it and wherever Python finds modules,
/// but for those of CUDA itself.
[[nodiscard]] std::vector<std::filesystem::path> libraries_of(const PyTorch& pytorch);

/// Sources that Triton compiles and loads when a program runs, and that call the driver.
[[nodiscard]] std::vector<std::filesystem::path> sources_of_triton(const PyTorch& pytorch);

}  // namespace shard::dryrun
