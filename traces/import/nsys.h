// Imports what `nsys export --type sqlite` writes (NVIDIA Nsight Systems).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "traces/base/result.h"
#include "traces/import/import.h"

namespace shard::import {

/// Kernels, copies and memsets by device and stream, CUDA calls and NVTX ranges by thread, CUDA memory events, and an
/// arrow from every call to what it launched. nsys makes tables only when it has rows for them, and columns differ by
/// version: what is not there is left out. The database is opened read-only; nothing in it is executed.
/// Fails with Errc::unavailable in a program built without SQLite, and Errc::malformed where the file is no database or
/// has no table of nsys.
[[nodiscard]] Result<LoadedTrace> import_nsys(const std::filesystem::path& path);

/// The same for a database in memory.
[[nodiscard]] Result<LoadedTrace> import_nsys(std::span<const std::byte> bytes, std::string_view label);

}  // namespace shard::import
