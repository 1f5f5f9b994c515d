// Writes what a backend reports into a trace, one file per rank.
#pragma once

#include <array>
#include <cstdint>

#include "executor/train/session.h"
#include "sim/ir/events.h"
#include "traces/writer.h"

namespace shard::train {

/// Events go to the writer as they come; it flushes by itself. Outlives the session that it observes.
class Recorder final : public cpu::Observer {
 public:
  Recorder(const plan::Plan& plan, Rank rank, Writer& writer) : plan_(plan), writer_(writer) { place_.rank = rank; }

  /// The phase and step that what follows belongs to.
  void begin(Phase phase, std::int64_t step);
  void finished(const cpu::OpRecord& record) override;
  void memory(const cpu::MemoryRecord& record) override;
  /// Peaks and totals, at the end.
  void summarize(const SessionResult& result);

 private:
  const plan::Plan& plan_;
  Writer& writer_;
  plan::EventPlace place_{};
  std::array<TrackId, kStreamCount> tracks_{};
};

}  // namespace shard::train
