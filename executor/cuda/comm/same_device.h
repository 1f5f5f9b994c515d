// Ranks that share one device, as threads of one process: copies and sums between their arenas, ordered by events.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/cuda/api/api.h"
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

/// What the ranks of one device share. Outlives their communicators; touched by the rank whose turn it is.
struct DeviceRoom {
  Api& api;
  const Kernels& kernels;
  Turns& turns;
  PhaseGraph* graph = nullptr;                                 ///< of a step; null: every step is enqueued op by op
  std::vector<std::function<std::optional<Stuck>()>> stuck{};  ///< by rank, of those that run
};

/// One rank's end; its thread holds its turn whenever it calls. A call is enqueued on the rank's stream when the last
/// member has started it, and start() returns then: what the stream comes to before the call has finished on every
/// member before any touches another's memory, and what comes behind runs when all members are done with the call.
///
/// The arena is device memory: its span is for arithmetic with addresses, not for the host to touch.
class SameDevice : public Communicator {
 public:
  /// Before make_arena: the stream that this rank's calls are enqueued on.
  virtual void use(Stream stream) = 0;
  /// Calls that a graph has made again.
  void launched_again(const CollectiveTotals& calls) { count_again(calls); }
};

/// One communicator per rank. `room` outlives them.
[[nodiscard]] std::vector<std::unique_ptr<SameDevice>> make_same_device(int world, DeviceRoom& room);

}  // namespace shard::cuda
