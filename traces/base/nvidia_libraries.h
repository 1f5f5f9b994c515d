// Where shared libraries of NVIDIA's lie that are opened at run time, and opening them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "traces/base/result.h"

namespace shard::cuda {

/// Looks up an environment variable; nullptr when it is not set.
using Environment = std::function<const char*(const char* name)>;

/// Folders that may hold them, of those that exist, in the order in which they are tried after the loader's own path:
/// SHARDSCOPE_CUDA_LIBRARIES (a list with colons); lib64 and lib of CUDA_HOME, of CUDA_PATH and of /usr/local/cuda; and
/// the nvidia/*/lib of Python's packages: of PYTHONPATH, of the environment in VIRTUAL_ENV or CONDA_PREFIX, of the
/// first python3 on PATH, and of the user.
[[nodiscard]] std::vector<std::filesystem::path> library_folders(const Environment& environment);
/// Of this process's environment.
[[nodiscard]] std::vector<std::filesystem::path> library_folders();

/// An open library; it is never closed.
struct OpenLibrary {
  void* handle = nullptr;
  std::string path{};  ///< where it was found
};

/// Opens `name` ("libcublasLt.so.13") from the loader's path (LD_LIBRARY_PATH, the program's own) or from the first of
/// `folders` that has it. Errc::unavailable where none has, or where it cannot be loaded, in the loader's words.
[[nodiscard]] Result<OpenLibrary> open_library(const std::string& name,
                                               const std::vector<std::filesystem::path>& folders);

/// The address of `symbol`. Errc::unavailable where the library lacks it.
[[nodiscard]] Result<void*> find_symbol(const OpenLibrary& library, const char* symbol);

/// Sets `target`, a function pointer, to the library's function.
template <class F>
[[nodiscard]] Result<void> bind(const OpenLibrary& library, const char* symbol, F*& target) {
  const Result<void*> found = find_symbol(library, symbol);
  if (!found) return found.error();
  target = reinterpret_cast<F*>(*found);
  return {};
}

}  // namespace shard::cuda
