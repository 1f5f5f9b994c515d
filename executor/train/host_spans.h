// What a rank's own thread does, phase by phase, beside the ops: spans on a track of the host.
#pragma once

#include <cstdint>

#include "executor/rank/observer.h"
#include "traces/writer.h"

namespace shard::train {

/// Writer outlives it. A phase begins when the session turns to it and ends when the backend has come back, so that
/// what lies between ops is seen to belong to a step. What the backend does meanwhile lies within it.
class HostSpans {
 public:
  static constexpr const char* kTrack = "host";
  static constexpr const char* kStep = "step";  ///< the name of a step, whichever phase it is

  HostSpans(Rank rank, Writer& writer) : rank_(rank), writer_(writer) {}

  void begin(Phase phase, std::int64_t step);
  void end();
  void worked(executor::HostWork work, std::int64_t begin_ns, std::int64_t end_ns);

 private:
  Rank rank_;
  Writer& writer_;
  TrackId track_{};
  Span open_{};
};

}  // namespace shard::train
