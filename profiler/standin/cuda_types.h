// How long the numbers are that a cudaDataType names.
#pragma once

#include <cstddef>

namespace shard::standin {

inline constexpr int kFloat = 0;  // CUDA_R_32F

/// 8 bits, such as int8 and float8, where it is none of the longer ones.
[[nodiscard]] constexpr std::size_t bytes_of_cuda_type(int type) {
  constexpr int kDouble = 1, kHalf = 2, kBfloat16 = 14;
  return type == kDouble ? 8 : type == kFloat ? 4 : type == kHalf || type == kBfloat16 ? 2 : 1;
}

}  // namespace shard::standin
