// Which functions of CUDA's libraries a program's own libraries import: what a stand-in for these has to answer.
#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "traces/base/result.h"

namespace shard::dryrun {

/// Names of the undefined dynamic symbols of an ELF file that belong to the CUDA runtime and driver, cuBLAS, cuDNN,
/// NCCL and their like, by their prefixes. Empty for files of another kind, of which folders of libraries are full.
/// Errc::no_input where the file cannot be read.
[[nodiscard]] Result<std::set<std::string>> imported_functions(const std::filesystem::path& library);

/// The same for bytes in memory, which may be anything.
[[nodiscard]] std::set<std::string> imported_functions(std::span<const std::byte> elf);

/// Names of functions of the CUDA driver that stand in a file's text: libraries ask for these by name when they run.
/// Empty for files that are long or cannot be read.
[[nodiscard]] std::set<std::string> named_functions(const std::filesystem::path& file);
[[nodiscard]] std::set<std::string> functions_named_in(std::string_view text);

/// Names of the functions that a shared library offers, of whatever kind. Fails likewise.
[[nodiscard]] Result<std::set<std::string>> exported_functions(const std::filesystem::path& library);

}  // namespace shard::dryrun
