// The emulated device: what the GPU backend asks of CUDA, answered on the host.
#pragma once

#include <cstdint>
#include <memory>

#include "executor/cuda/api/api.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::cuda {

struct EmulatedOptions {
  Bytes capacity{std::int64_t{1} << 30};  ///< of the device's memory
  std::uint64_t seed = 1;                 ///< of every order that CUDA leaves open
};

/// A device of its own on each call.
[[nodiscard]] Result<std::unique_ptr<Api>> make_emulated(const EmulatedOptions& options);

}  // namespace shard::cuda
