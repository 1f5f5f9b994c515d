// What the ranks of one device share: the device, its kernels, whose turn it is, the graph of a step.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/cuda/api/api.h"
#include "executor/cuda/api/witness.h"
#include "executor/cuda/comm/phase_graph.h"
#include "executor/cuda/comm/turns.h"
#include "executor/cuda/kernels/kernels.h"

namespace shard::cuda {

/// An op that has not ended although all that it waits for on its own rank has.
struct Stuck {
  Rank rank{};
  OpId op{};
  std::string what{};       ///< "op 7 'gather h.0'", with the unit that it is about
  bool collective = false;  ///< it may wait for another rank
};

/// Outlives the communicators of its ranks; touched by the rank whose turn it is.
struct DeviceRoom {
  Api& api;
  const Kernels& kernels;
  Turns& turns;
  PhaseGraph* graph = nullptr;                                 ///< of a step; null: every step is enqueued op by op
  std::vector<std::function<std::optional<Stuck>()>> stuck{};  ///< by seat, of those that run
  Witness* witness = nullptr;                                  ///< told whose work is enqueued; null: nobody
};

}  // namespace shard::cuda
