// Forward and backward of a whole model over memory, with calls where a framework gathers, frees and reduces.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/validate/block.h"
#include "sim/validate/memory_stream.h"
#include "sim/validate/operators.h"
#include "sim/validate/run_description.h"

namespace shard::validate {

/// What a framework does around blocks. Groups: 0 to layers - 1 are blocks; `layers` is what lies outside of them.
class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual void before_forward(std::int64_t /*group*/) {}
  virtual void after_forward(std::int64_t /*group*/) {}
  virtual void before_backward(std::int64_t /*group*/) {}
  /// Takes the gradients over.
  virtual void after_backward(std::int64_t group, std::vector<Held>& gradients) = 0;
};

/// One micro-batch. Its gradients of weights go to the hooks.
void run_micro_batch(MemoryStream& memory, const RunDescription& run, Hooks& hooks);

/// The rules of a framework: what one rank allocates and frees.
class Rank {
 public:
  virtual ~Rank() = default;
  /// Model, buffers and what else is there before the first step.
  virtual void create() = 0;
  virtual void step() = 0;
};

}  // namespace shard::validate
