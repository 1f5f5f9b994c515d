// What `shardscope train --print-memory` shows: rank 0's memory at five moments, and the speed of its arithmetic.
#pragma once

#include <cstdint>
#include <string>

#include "executor/commands/prepared.h"
#include "sim/record/moments.h"

namespace shard::commands {

/// Each line has what is live on the device and in host memory, and whether the plan says the same.
class MemoryLines {
 public:
  MemoryLines(const Prepared& prepared, std::int64_t steps);

  /// Of what creation left.
  [[nodiscard]] std::string created(const record::LiveMemory& measured) const;
  /// `step` from 0.
  [[nodiscard]] std::string step(std::int64_t step, const record::PhaseMoments& measured) const;
  /// Of a step that took so long, by operator and by parameters (StepFlops).
  [[nodiscard]] std::string speed(double seconds) const;

 private:
  std::int64_t steps_;
  record::PlannedMoments planned_;
  StepFlops flops_;
};

}  // namespace shard::commands
