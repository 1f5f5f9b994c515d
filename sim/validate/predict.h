// The memory that a framework takes for a run: the one question, whatever answers it.
#pragma once

#include <cstdint>

#include "sim/validate/published_run.h"
#include "sim/validate/run_description.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::validate {

/// Of the rank that holds most.
struct Prediction {
  Bytes states;     ///< parameters, gradients and optimizer states
  Bytes allocated;  ///< peak of steady steps, by PyTorch's allocator
  Bytes active;
  Bytes reserved;
  Bytes outside;  ///< of the allocator: context and communicators
  bool fits = true;
  [[nodiscard]] Bytes of(MemoryKind kind) const;
};

/// Errors: contradiction with the reason where there are no rules for such a run.
[[nodiscard]] Result<Prediction> predict(const RunDescription& run);

}  // namespace shard::validate
