// The machine of a published run: its card, what a process can allocate on it, and the example cluster that is like it.
#pragma once

#include <optional>
#include <string>

#include "sim/cluster/cluster.h"
#include "sim/validate/published_run.h"

namespace shard::validate {

struct RunMachine {
  std::string cluster;  ///< an example's name; empty: none is alike
  std::optional<cluster::Card> card;
  std::optional<Bytes> device_memory;
  bool alike = true;  ///< the example is this card, not a neighbour of its generation
};

/// By the names of tests/validation/rules.py.
[[nodiscard]] RunMachine machine_of(const PublishedRun& run);

/// What a process holds of a card besides its allocator: CUDA's context with PyTorch's kernels loaded, and the buffers
/// of NCCL's communicators.
[[nodiscard]] Bytes outside_allocator(const PublishedRun& run, const RunMachine& machine);

}  // namespace shard::validate
