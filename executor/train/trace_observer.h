// Hands what a backend reports to the recorder of traces, one file per rank.
#pragma once

#include <cstdint>

#include "executor/train/host_spans.h"
#include "executor/train/session.h"
#include "sim/record/recorder.h"

namespace shard::train {

/// Events go to the writer as they come; it flushes by itself. Outlives the session that it observes.
class TraceObserver final : public executor::Observer {
 public:
  /// `host`: told what the thread does beside ops; may be null, else outlives it.
  TraceObserver(const plan::Plan& plan, Rank rank, Writer& writer, HostSpans* host = nullptr)
      : recorder_(plan, rank, writer), host_(host) {}

  /// The phase and step that what follows belongs to.
  void begin(Phase phase, std::int64_t step) { recorder_.begin(phase, step); }
  /// Whether ops that end from here on become spans; memory is recorded in any case, since its sums need all of it.
  void record_spans(bool recorded) { records_spans_ = recorded; }
  void finished(const executor::OpRecord& record) override;
  void memory(const executor::MemoryRecord& record) override;
  void host(executor::HostWork work, std::int64_t begin_ns, std::int64_t end_ns) override;
  [[nodiscard]] bool times_device_ops() const override { return times_device_ops_; }
  /// The device's own records say when ops ran. Before a backend is made.
  void leave_times_to_device() { times_device_ops_ = false; }
  /// Peaks and totals, at the end.
  void summarize(const SessionResult& result);

 private:
  record::Recorder recorder_;
  HostSpans* host_;
  bool records_spans_ = true;
  bool times_device_ops_ = true;
};

}  // namespace shard::train
