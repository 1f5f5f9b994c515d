// Which functions of CUDA's libraries a program's own libraries import: what a stand-in for these has to answer.
#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <string>

#include "traces/base/result.h"

namespace shard::dryrun {

/// Names of the undefined dynamic symbols of an ELF file that belong to the CUDA runtime and driver, cuBLAS, cuDNN,
/// NCCL and their like, by their prefixes. Empty for files of another kind, of which folders of libraries are full.
/// Errc::no_input where the file cannot be read.
[[nodiscard]] Result<std::set<std::string>> imported_functions(const std::filesystem::path& library);

/// The same for bytes in memory, which may be anything.
[[nodiscard]] std::set<std::string> imported_functions(std::span<const std::byte> elf);

/// Names of such functions that stand as texts in a library: it may ask for them by name, dlsym(3). Empty for libraries
/// of over 16 MiB, which nobody would want to search, and where nothing can be read.
[[nodiscard]] std::set<std::string> functions_named_in(const std::filesystem::path& library);

/// Names of the functions that a shared library offers, of whatever kind. Fails likewise.
[[nodiscard]] Result<std::set<std::string>> exported_functions(const std::filesystem::path& library);

}  // namespace shard::dryrun
