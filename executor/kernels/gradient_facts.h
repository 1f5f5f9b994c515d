// What is known of a step's gradients: their squares, exactly, and what of them is not finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "sim/ir/control_block.h"

namespace shard {

/// What is known of gradients, as 22 words of i64 in a planned buffer (plan::kGradientFactsBytes).
///
/// The sum of squares is the fixed-point number sum over i of limbs[i] 2^(32 i - 298): 2^-298 is the square of the
/// smallest fp32 subnormal, and the largest square, 2^256, ends in limb 17. Limbs are kept apart (carry-save), each
/// non-negative. A call of square_sum_add() adds less than 2^32 to a limb for every 16384 elements it begins, so 2^31
/// such pieces are safe over all that is ever combined: 2^45 elements in whole pieces, 2^31 in pieces of one element.
struct GradientFacts {
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  static constexpr int kLimbs = 20;
  std::int64_t limbs[kLimbs] = {};  ///< summed to combine
  std::int64_t nonfinite = 0;       ///< number of elements that are infinite or NaN, not in the sum; summed to combine
  std::int64_t first_nonfinite = kNone;  ///< smallest key of such an element; the minimum combines
};
static_assert(sizeof(GradientFacts) == plan::kGradientFactsBytes.count());
static_assert(offsetof(GradientFacts, first_nonfinite) == 8 * plan::kGradientSumWords);

}  // namespace shard
