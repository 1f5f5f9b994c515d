// What a block of a kernel may ask of a card, by its compute capability.
#pragma once

#include <cstdint>

#include "traces/base/units.h"

namespace shard::cuda {

struct CardLimits {
  std::int32_t threads = 1024;  ///< of a block
  Bytes shared{};               ///< of a block, where the kernel opts in to more than 48 KB
};

/// Of the table "Technical Specifications per Compute Capability" in the CUDA C++ Programming Guide 12.8, "Maximum
/// amount of shared memory per thread block". `compute_capability`: 10 x major + minor; of one that the table lacks,
/// and of 0, which stands for no card, the largest: its launches tell.
[[nodiscard]] constexpr CardLimits card_limits(std::int32_t compute_capability) {
  constexpr std::int64_t kKb = 1024;
  switch (compute_capability) {
    case 80:
    case 87: return {.shared = Bytes{163 * kKb}};
    case 86:
    case 89:
    case 120: return {.shared = Bytes{99 * kKb}};
    default: return {.shared = Bytes{227 * kKb}};
  }
}

}  // namespace shard::cuda
