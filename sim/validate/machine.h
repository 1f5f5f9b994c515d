// The machine of a published run: its card, what a process can allocate on it, and the example cluster that is like it.
#pragma once

#include "sim/validate/run_description.h"

namespace shard::validate {

/// Sets `machine`, `card` and `device_memory` from the words of the row's column for the GPU.
void settle_machine(RunDescription& description, const PublishedRun& run);

/// What a process holds of a card besides its allocator: CUDA's context with PyTorch's kernels loaded, and the buffers
/// of NCCL's communicators.
[[nodiscard]] Bytes outside_allocator(const RunDescription& description);

}  // namespace shard::validate
