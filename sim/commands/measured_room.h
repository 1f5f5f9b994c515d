// What a measured run says of the device memory that model data may take.
#pragma once

#include <string>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::commands {

struct MeasuredRoom {
  /// Most that anything but parameters, gradients and optimizer state took at one time on a rank: of the rank that took
  /// most, so that the smallest room decides for all.
  Bytes non_model_peak;
  std::string plan_hash;  ///< of the plan that was measured
};

/// Reads a trace. Errors: as load(); malformed (65) where it is incomplete or has no device memory in it.
[[nodiscard]] Result<MeasuredRoom> read_measured_room(const std::string& path);

}  // namespace shard::commands
