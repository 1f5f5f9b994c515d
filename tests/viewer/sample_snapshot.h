// A PyTorch memory snapshot as a small training program leaves it: allocator, segments, stacks, of any length.
#pragma once

#include <cstdint>

#include "traces/reader.h"
#include "traces/snapshot.h"
#include "viewer/ui/session.h"

namespace shard::view {

struct SampleProgram {
  int layers = 4;
  int steps = 3;
  bool stacks = true;
};

/// What the allocator recorded; `trace` has the names and stacks, and nothing else.
struct SampleSnapshot {
  Trace trace;
  Snapshot snapshot;
};

/// Parameters (model.py:12 __init__), activations (model.py:31 forward), gradients (the backward of an operator, under
/// train.py:21 step), optimizer state (train.py:23 step), and a workspace without a stack. Blocks are given out by
/// PyTorch's rules: small ones from segments of 2 MiB, others from segments of 20 MiB or their own size.
[[nodiscard]] SampleSnapshot sample_snapshot(const SampleProgram& program = {});

/// The same as the viewer opens it, by way of a file's bytes.
[[nodiscard]] Session snapshot_session(const SampleProgram& program = {});

/// Writes it as a file of the tests' temporary folder; returns its path.
[[nodiscard]] std::string snapshot_file(const SampleProgram& program, const std::string& name);

}  // namespace shard::view
