// Keeps a rank's moments from what its backend reports, beside whoever else is told of it.
#pragma once

#include "executor/rank/observer.h"
#include "sim/record/moments.h"

namespace shard::train {

/// Told of phases as a session is (SessionOptions::before_phase, after_phase). Outlives the backend that it observes.
class MomentsObserver final : public executor::Observer {
 public:
  /// `next` is told the same; may be null.
  explicit MomentsObserver(const plan::Plan& plan, executor::Observer* next = nullptr) : book_(plan), next_(next) {}

  void begin(Phase phase) { book_.begin(phase); }
  void end() { last_ = book_.end(); }
  /// Of the phase that ended last.
  [[nodiscard]] const record::PhaseMoments& last() const { return last_; }

  void finished(const executor::OpRecord& record) override {
    if (next_ != nullptr) next_->finished(record);
  }
  void memory(const executor::MemoryRecord& record) override {
    book_.change(*record.op, record.buffer, record.acquire);
    if (next_ != nullptr) next_->memory(record);
  }
  void host(executor::HostWork work, std::int64_t begin_ns, std::int64_t end_ns) override {
    if (next_ != nullptr) next_->host(work, begin_ns, end_ns);
  }
  [[nodiscard]] bool times_device_ops() const override { return next_ != nullptr && next_->times_device_ops(); }

 private:
  record::MomentBook book_;
  executor::Observer* next_;
  record::PhaseMoments last_{};
};

}  // namespace shard::train
