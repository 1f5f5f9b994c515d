// What the buffers hold that steer a step: its scalars, the user's knobs, and the decision that every step op reads.
#pragma once

#include <cstdint>

#include "sim/ir/scaler.h"
#include "traces/base/units.h"

namespace shard::plan {

/// Written by load_scalars; read by begin_control and decide.
struct ControlKnobs {
  ScalerKnobs scaler{};
  float max_norm = 0.0F;             ///< --clip-norm
  std::int32_t inject_overflow = 0;  ///< 1: the loss scale of this rank is infinite in this step
};

/// Written by decide, the same on every rank; read by every step op, and by the host when the step has ended.
struct ControlBlock {
  double norm = 0.0;          ///< of the whole gradient, unscaled, before clipping; not a number after an overflow
  float multiplier = 1.0F;    ///< of gradients: 1 / loss scale x what clipping leaves
  float scale_before = 1.0F;  ///< loss scale of this step
  float scale_after = 1.0F;   ///< of the next
  std::int32_t skip = 0;      ///< 1: step ops change nothing
  std::int32_t rank = -1;     ///< rank whose own gradient overflowed first; -1: none did, or only the sum over ranks
  std::int32_t tensor = -1;   ///< the parameter; -1: nothing overflowed
  std::int64_t element = -1;
};

inline constexpr Bytes kControlKnobsBytes{sizeof(ControlKnobs)};
inline constexpr Bytes kControlBlockBytes{sizeof(ControlBlock)};
inline constexpr Bytes kScalerStateBytes{sizeof(ScalerState)};

/// The planned buffer that holds a step's learning rate and other hyperparameters (OptimizerScalars).
inline constexpr Bytes kOptimizerScalarsBytes{48};

/// The planned buffer that holds what is known of a step's gradients (GradientFacts): i64 words, of which the
/// first kGradientSumWords are added to become those of several parts, by an all_reduce say; the last is a minimum.
inline constexpr std::int64_t kGradientSumWords = 21;
inline constexpr Bytes kGradientFactsBytes{8 * (kGradientSumWords + 1)};

}  // namespace shard::plan
