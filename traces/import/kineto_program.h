// What PyTorch's profiler says of a program: operators with their tensors, and the kernels that they launched.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "traces/base/result.h"
#include "traces/import/byte_source.h"

namespace shard::import {

/// A tensor that an operator was called with, alone or in a list.
struct Operand {
  std::vector<std::int64_t> sizes, strides;
  std::string type;           ///< "c10::BFloat16", "float"; of lists "TensorList"
  std::int32_t argument = 0;  ///< which one of the operator it is, or is in the list of
};

/// Times in nanoseconds, on the file's clock: since the epoch where the file says from when on it counts.
struct KinetoOperator {
  std::string name;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t thread = 0;
  std::int64_t external_id = -1, correlation = -1;
  std::vector<Operand> inputs;
  std::vector<std::string> values;          ///< by argument, what is no tensor; empty where that is not said
  std::vector<std::int64_t> process_group;  ///< ranks of a collective's group, of its record
};

/// A kernel, a copy or a fill on a GPU.
struct KinetoKernel {
  std::string name;
  std::string category;  ///< "kernel", "gpu_memcpy", "gpu_memset"
  std::int64_t begin_ns = 0, duration_ns = 0;
  std::int64_t process = 0, stream = 0;
  std::array<std::int64_t, 3> grid{}, block{};
  std::int64_t bytes = -1;  ///< of a copy or a fill; -1: not said
  std::int64_t external_id = -1, correlation = -1;
};

/// A call of CUDA's runtime or driver.
struct KinetoCall {
  std::int64_t begin_ns = 0, thread = 0, correlation = -1;
};

struct KinetoProgram {
  std::vector<KinetoOperator> operators;
  std::vector<KinetoCall> calls;
  std::vector<KinetoKernel> kernels;
  std::vector<std::string> devices;  ///< names of GPUs
};

/// Reads a recording, gzip or not. Events of which a number is no number are left out. Errors: no_input; malformed,
/// with the byte, where the text is no JSON.
[[nodiscard]] Result<KinetoProgram> read_kineto_program(const std::filesystem::path& path);
[[nodiscard]] Result<KinetoProgram> read_kineto_program(ByteSource& source);

}  // namespace shard::import
