// Which of a kernel's arguments it writes to: of kernels without a description, by their names and what their arguments
// look like.
#pragma once

#include <cstddef>

namespace shard::standin {

/// What output_by_name says of most kernels: PyTorch's have their output before their inputs.
inline constexpr int kFirstPointer = 1;

/// Which of the pointers among a kernel's arguments is its output, by its mangled name: from one on, 0 where it is not
/// known, or a number below that for output_of alone.
[[nodiscard]] int output_by_name(const char* name);

/// What a kernel writes to; nullptr where that is not known.
struct Written {
  const void* begin = nullptr;
  std::size_t bytes = 1;  ///< at least
};

/// Of a kernel that is launched with `arguments`. `which`: as output_by_name says.
[[nodiscard]] Written output_of(void* const* arguments, int which);

}  // namespace shard::standin
