// What an nsys export says of a program, as recordings of PyTorch's profiler do.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "traces/base/result.h"
#include "traces/import/kineto_program.h"

namespace shard::import {

/// Kernels with grid and block, by the name that the compiler wrote where the export has it; copies and fills with
/// their bytes; CUDA's calls; and of NVTX ranges those of torch.autograd.profiler.emit_nvtx as operators. Errors:
/// unavailable in a program built without SQLite; malformed.
[[nodiscard]] Result<KinetoProgram> read_nsys_program(const std::filesystem::path& path);

/// "aten::mm, op_id = 5, sizes = [[2, 3], [3, 4]]", as emit_nvtx names its ranges. Sizes come without types and only
/// with record_shapes=True. Nothing where it is no operator's.
[[nodiscard]] std::optional<KinetoOperator> operator_of_range(std::string_view text);

}  // namespace shard::import
