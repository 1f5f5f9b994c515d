// Learning-rate schedules.
#include "executor/rates/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shard::rates {

double learning_rate(const Schedule& s, std::int64_t step) {
  if (s.torch != nullptr) return s.torch->at(s.peak, step);
  if (step < s.warmup_steps) return s.peak * static_cast<double>(step + 1) / static_cast<double>(s.warmup_steps);
  // A loop of somebody's own may go on behind the schedule's end.
  const double x =
      s.steps > s.warmup_steps
          ? std::min(1.0, static_cast<double>(step - s.warmup_steps) / static_cast<double>(s.steps - s.warmup_steps))
          : 0.0;
  switch (s.kind) {
    case ScheduleKind::constant: break;
    case ScheduleKind::linear: return s.lowest + (s.peak - s.lowest) * (1 - x);
    case ScheduleKind::cosine: return s.lowest + (s.peak - s.lowest) * 0.5 * (1 + std::cos(std::numbers::pi * x));
  }
  return s.peak;
}

}  // namespace shard::rates
