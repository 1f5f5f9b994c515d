// What a PyTorch program was doing when it asked for memory or gave it back, by the frames of its stacks.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/reader.h"

namespace shard::import {

/// What a program was doing when it asked for memory.
enum class Doing : std::uint8_t {
  unknown,  ///< no frames
  other,    ///< Python code that is none of the following
  setup,    ///< a module's parameters come into being or move
  forward,
  gathering,  ///< FSDP's full parameters
  backward,
  accumulating,  ///< of a backward, what goes into .grad
  stepping,      ///< a step of PyTorch's optimizers
  own_step,      ///< the same of somebody's own optimizer: state, or parameters anew
  calling,       ///< a library, which wants a workspace for that
};

/// What a stack does.
struct Deed {
  Doing doing = Doing::unknown;
  bool under_backward = false;   ///< a forward there computes again
  bool begins_backward = false;  ///< makes the gradient of a loss
  bool sets_data = false;        ///< within `tensor.data = other`
  bool to_device = false;        ///< copies to another device: `tensor.to(device)`, `tensor.cuda()`
  bool adam_step = false;        ///< PyTorch's Adam or AdamW updates
  bool adam_state = false;       ///< PyTorch's Adam or AdamW makes its state
};

/// By stack.
[[nodiscard]] std::vector<Deed> deeds(const Trace& trace);

}  // namespace shard::import
