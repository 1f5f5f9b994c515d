// A GPU's records by CUPTI, which this process asks for itself.
#pragma once

#include <memory>

#include "executor/cuda/api/witness.h"
#include "profiler/spool/spool.h"
#include "traces/base/result.h"

namespace shard::device_profile {

/// What a witness of GPUs does beside witnessing.
class GpuWitness : public cuda::Witness {
 public:
  /// Times of the device between two looks at both clocks are as exact as these are near.
  virtual void look_at_clocks() = 0;
  /// Has all delivered that there is; nothing is recorded from here on.
  virtual void finish() = 0;
};

/// Before the first call of CUDA. `spool` is never destroyed: CUPTI delivers until the process is gone.
/// Errc::unavailable where CUPTI is missing, held by another profiler, or not for this user.
[[nodiscard]] Result<std::unique_ptr<GpuWitness>> make_gpu_witness(profiler::Spool& spool);

}  // namespace shard::device_profile
