// The rule of dynamic loss scaling: how the scale follows overflows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace shard::plan {

/// What a user chooses. Defaults: class DynamicGradScaler of Colossal-AI, with the scale floored at 1 (the class has no
/// floor of its own, its optimizers pass 1).
struct ScalerKnobs {
  float initial_scale = 65536.0F;
  float min_scale = 1.0F;
  float max_scale = std::numeric_limits<float>::infinity();
  float growth_factor = 2.0F;
  float backoff_factor = 0.5F;
  std::int32_t growth_interval = 1000;  ///< good steps in a row before the scale grows
  std::int32_t hysteresis = 2;          ///< overflows that are borne before the scale backs off; 0 means 1
};

/// What is kept from step to step, in a planned buffer.
struct ScalerState {
  float scale = 0.0F;  ///< 0: newborn, the first step takes initial_scale
  std::int32_t good_steps = 0;
  std::int32_t overflows = 0;  ///< since the scale grew last; a good step and a backoff leave it
  friend bool operator==(const ScalerState&, const ScalerState&) = default;
};

/// The state that the next step finds. From Colossal-AI's DynamicGradScaler.update: the count of overflows is reset by
/// growth alone, so once `hysteresis` of them have been seen, every further one backs off at once.
[[nodiscard]] constexpr ScalerState after_step(ScalerState s, const ScalerKnobs& knobs, bool overflow) {
  if (overflow) {
    s.good_steps = 0;
    ++s.overflows;
    if (s.overflows >= knobs.hysteresis) s.scale = std::max(s.scale * knobs.backoff_factor, knobs.min_scale);
    return s;
  }
  ++s.good_steps;
  if (s.good_steps == knobs.growth_interval) {
    s.good_steps = 0;
    s.overflows = 0;
    s.scale = std::min(s.scale * knobs.growth_factor, knobs.max_scale);
  }
  return s;
}

}  // namespace shard::plan
