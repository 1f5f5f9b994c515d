// Who is told what a backend does, op by op and buffer by buffer.
#pragma once

#include <cstdint>

#include "sim/ir/op.h"

namespace shard::executor {

/// One finished op of the measured run. Times are of std::chrono::steady_clock.
struct OpRecord {
  const plan::Op* op = nullptr;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t waiting_ns = 0;  ///< of a collective: while no data moved (Communicator::moving_time)
};

/// A buffer taken or given back, in plan order.
struct MemoryRecord {
  const plan::Op* op = nullptr;
  BufferId buffer;
  bool acquire = true;
  std::int64_t time_ns = 0;
};

/// What a rank's own thread does beside the ops that it runs itself. Stretches may lie within one another.
enum class HostWork : std::uint8_t {
  between,     ///< ops: what they take and give back, collectives that go on, what is told of ops
  books,       ///< what the ops of a graph take and give back
  start,       ///< of a collective
  wait,        ///< for a collective, or for what has been enqueued
  enqueue,     ///< ops, on the streams of a device
  capture,     ///< the same, into a graph
  launch,      ///< of a graph
  read_times,  ///< of ops, from events
};
[[nodiscard]] constexpr const char* to_string(HostWork work) {
  switch (work) {
    case HostWork::between: return "between ops";
    case HostWork::books: return "keep books";
    case HostWork::start: return "start a collective";
    case HostWork::wait: return "wait";
    case HostWork::enqueue: return "enqueue";
    case HostWork::capture: return "capture a graph";
    case HostWork::launch: return "launch a graph";
    case HostWork::read_times: return "read times";
  }
  return "?";
}

/// Receives what happens; called on the training thread, must be quick.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void finished(const OpRecord& record) = 0;
  virtual void memory(const MemoryRecord& record) = 0;
  virtual void host(HostWork, std::int64_t /*begin_ns*/, std::int64_t /*end_ns*/) {}
  /// Whether finished() is wanted of ops that a device runs: not where the device's own records say when they ran.
  [[nodiscard]] virtual bool times_device_ops() const { return true; }
};

/// Of std::chrono::steady_clock.
[[nodiscard]] std::int64_t now_ns();

/// A stretch of the thread, told at its end.
class HostStretch {
 public:
  /// `observer` may be null.
  HostStretch(Observer* observer, HostWork work)
      : observer_(observer), work_(work), begin_ns_(observer == nullptr ? 0 : now_ns()) {}
  HostStretch(const HostStretch&) = delete;
  HostStretch& operator=(const HostStretch&) = delete;
  ~HostStretch() {
    if (observer_ != nullptr) observer_->host(work_, begin_ns_, now_ns());
  }

 private:
  Observer* observer_;
  HostWork work_;
  std::int64_t begin_ns_;
};

}  // namespace shard::executor
