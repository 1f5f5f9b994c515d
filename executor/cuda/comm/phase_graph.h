// One phase of all ranks of a device as one graph: captured from one origin, launched as a whole.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/cuda/api/api.h"
#include "executor/cuda/comm/turns.h"

namespace shard::cuda {

/// A plan allocates nothing and no op's argument changes from one step to the next, so that what a step enqueues is
/// kept and launched again. Shared by the ranks of a device; every function is called by all of them, each at its turn
/// with its seat among them (DeviceCommunicator), in the same order, and returns when all have called it.
class PhaseGraph {
 public:
  PhaseGraph(Api& api, Turns& turns, int ranks) : api_(api), turns_(turns), ranks_(ranks) {}
  PhaseGraph(const PhaseGraph&) = delete;
  PhaseGraph& operator=(const PhaseGraph&) = delete;
  ~PhaseGraph();

  [[nodiscard]] bool is_captured() const { return graph_ != nullptr; }
  /// From here on, what the rank enqueues on `stream`, and on streams that come from it by events, is kept.
  [[nodiscard]] Result<void> begin(int seat, Stream stream);
  /// All that the rank has enqueued has come back to `stream`.
  [[nodiscard]] Result<void> end(int seat, Stream stream);
  /// Runs all ranks' phase.
  [[nodiscard]] Result<void> launch(int seat);
  /// Lets go of what was captured, also in the midst of a capture; what was launched of it still ends. A communicator
  /// that graphs refer to ends behind them: it calls this first. For the one rank of a device that it has alone.
  void let_go();
  /// Of what was launched; any rank, at any of its turns.
  [[nodiscard]] Result<bool> is_done() { return api_.is_done(done_); }

 private:
  /// Returns when every rank has called it as often as this one.
  [[nodiscard]] Result<void> meet(int seat);
  [[nodiscard]] Result<void> make_events();

  Api& api_;
  Turns& turns_;
  int ranks_;
  std::int64_t met_ = 0;
  Stream origin_ = nullptr;
  Event fork_ = nullptr;
  Event done_ = nullptr;
  std::vector<Event> ends_{};  ///< by seat
  Graph graph_ = nullptr;
  bool captures_ = false;
};

}  // namespace shard::cuda
