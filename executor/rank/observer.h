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

/// Receives what happens; called on the training thread, must be quick.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void finished(const OpRecord& record) = 0;
  virtual void memory(const MemoryRecord& record) = 0;
};

/// Of std::chrono::steady_clock.
[[nodiscard]] std::int64_t now_ns();

}  // namespace shard::executor
