// The one way from a plan's ops and buffers to the events of a trace, for prediction and measurement alike: names,
// lanes, units, parts, categories and the states of units.
#pragma once

#include <array>
#include <cstdint>

#include "sim/ir/plan.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"
#include "traces/writer.h"

namespace shard::record {

/// When an op ran, on the trace's clock.
struct OpTime {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t waiting_ns = 0;  ///< of a collective: while no data moved
  bool has_parts = false;       ///< what the op did has spans of its own, as the device recorded it
};

/// Writes what one rank does. Plan and writer outlive it; ops and buffers are the plan's.
class Recorder {
 public:
  Recorder(const plan::Plan& plan, Rank rank, Writer& writer) : plan_(plan), rank_(rank), writer_(writer) {}

  /// The repetition of a phase that what follows belongs to. Steps count from 0: that of creation and of the first
  /// step; the digest has the last step's.
  void begin(Phase phase, std::int64_t step);
  /// A span, and what became of the op's unit.
  void op(const plan::Op& op, const OpTime& time);
  /// A buffer that `op` takes or gives back, in plan order; a unit whose gathered parameters go rests again.
  void acquired(const plan::Op& op, BufferId buffer, std::int64_t time_ns);
  void released(const plan::Op& op, BufferId buffer, std::int64_t time_ns);

  /// What the producer itself counted. Memories that the plan does not use are left out.
  void peak(Phase phase, Memory memory, Bytes extent, Bytes live_peak);
  /// Totals over creation and steps; a collective that was never called is left out.
  void collective(Collective kind, std::int64_t count, Bytes bytes);

 private:
  void change(const plan::Op& op, BufferId buffer, bool acquired, std::int64_t time_ns);
  [[nodiscard]] TrackId track(Stream stream);

  const plan::Plan& plan_;
  Rank rank_;
  Writer& writer_;
  Phase phase_ = Phase::creation;
  std::int32_t step_ = 0;
  std::array<TrackId, kStreamCount> tracks_{};
};

}  // namespace shard::record
