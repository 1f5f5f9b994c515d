// What a backend reports, op by op and buffer by buffer.
#include "executor/train/trace_observer.h"

namespace shard::train {

void TraceObserver::finished(const executor::OpRecord& record) {
  if (!records_spans_) return;
  recorder_.op(*record.op, {.begin_ns = record.begin_ns, .end_ns = record.end_ns, .waiting_ns = record.waiting_ns});
}

void TraceObserver::host(executor::HostWork work, std::int64_t begin_ns, std::int64_t end_ns) {
  if (host_ != nullptr && records_spans_) host_->worked(work, begin_ns, end_ns);
}

void TraceObserver::memory(const executor::MemoryRecord& record) {
  if (record.acquire) {
    recorder_.acquired(*record.op, record.buffer, record.time_ns);
  } else {
    recorder_.released(*record.op, record.buffer, record.time_ns);
  }
}

void TraceObserver::summarize(const SessionResult& result) {
  for (const PhasePeak& phase : result.phases) recorder_.peak(phase.phase, phase.memory, phase.peak, phase.live_peak);
  for (int k = 0; k < kCollectiveCount; ++k) {
    const auto kind = static_cast<Collective>(k);
    const CollectiveCount& total = result.collectives[kind];
    recorder_.collective(kind, total.calls, total.bytes);
  }
}

}  // namespace shard::train
