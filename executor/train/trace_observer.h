// Hands what a backend reports to the recorder of traces, one file per rank.
#pragma once

#include <cstdint>

#include "executor/train/session.h"
#include "sim/record/recorder.h"

namespace shard::train {

/// Events go to the writer as they come; it flushes by itself. Outlives the session that it observes.
class TraceObserver final : public executor::Observer {
 public:
  TraceObserver(const plan::Plan& plan, Rank rank, Writer& writer) : recorder_(plan, rank, writer) {}

  /// The phase and step that what follows belongs to.
  void begin(Phase phase, std::int64_t step) { recorder_.begin(phase, step); }
  /// Whether ops that end from here on become spans; memory is recorded in any case, since its sums need all of it.
  void record_spans(bool recorded) { records_spans_ = recorded; }
  void finished(const executor::OpRecord& record) override;
  void memory(const executor::MemoryRecord& record) override;
  /// Peaks and totals, at the end.
  void summarize(const SessionResult& result);

 private:
  record::Recorder recorder_;
  bool records_spans_ = true;
};

}  // namespace shard::train
