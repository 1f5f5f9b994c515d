// What a rank's flight recorder is told of the ops that a device runs, as far as the host sees them.
#pragma once

#include <array>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "executor/cuda/backend/lanes.h"
#include "executor/flight/recorder.h"
#include "sim/ir/plan.h"

namespace shard::cuda {

/// The host sees the words that streams write behind each op, whenever it looks: ops that have ended since, of several
/// on a stream the last one, and on each stream the op that has what it waits for, and so runs or is about to. Of
/// collectives none is left out, so that ranks count them alike. Used by the rank's thread.
class FlightLog {
 public:
  /// Both outlive it; without a recorder nothing is done.
  FlightLog(const plan::Plan& plan, flight::Recorder* recorder) : plan_(plan), recorder_(recorder) {}

  /// The phase is about to be enqueued, or launched again; no stream has come behind an op of it.
  void begin(const plan::PhaseOps& phase);
  void look(const Lanes& lanes);

 private:
  struct LaneOps {
    std::vector<std::size_t> places;  ///< in the phase, in order
    std::size_t next = 0;             ///< of `places`: has not ended
    bool told = false;                ///< that it has begun
  };
  void tell_ended(LaneOps& lane, std::int32_t progress, std::int64_t now_ns);
  void tell_begun(LaneOps& lane, const Lanes& lanes, std::int64_t now_ns);
  [[nodiscard]] bool has_ended(std::size_t place, const Lanes& lanes) const;

  const plan::Plan& plan_;
  flight::Recorder* recorder_;
  const plan::PhaseOps* phase_ = nullptr;
  std::array<LaneOps, kStreamCount> lanes_{};
  std::unordered_map<std::int32_t, std::size_t> place_of_;  ///< by id of op
};

}  // namespace shard::cuda
