// Learning-rate schedules: the rate of each step, a value that the plan's scalars carry.
#pragma once

#include <cstdint>
#include <memory>

#include "executor/rates/torch_schedule.h"

namespace shard::rates {

enum class ScheduleKind : std::uint8_t { constant, linear, cosine };

/// W warm-up steps, N steps in all, step s from 0, peak rate p, lowest rate m:
///   s < W: p (s + 1) / W
///   else, with x = (s - W) / (N - W), which is 0 behind the warm-up and below 1 in the last step:
///     constant p,   linear m + (p - m)(1 - x),   cosine m + (p - m)(1 + cos(pi x)) / 2
/// A step that is skipped counts: the rate depends on the step's number alone. Cosine is nanoGPT's get_lr().
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double peak = 1e-3;
  double lowest = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t steps = 1;                                ///< at least warmup_steps
  std::shared_ptr<const TorchSchedule> torch = nullptr;  ///< says it all, of peak; null: what stands before it
};
[[nodiscard]] double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace shard::rates
