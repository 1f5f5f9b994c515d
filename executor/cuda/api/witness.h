// Who is told which op's work a thread enqueues: a recorder of what the device does.
#pragma once

#include <cstdint>

#include "traces/base/ids.h"

namespace shard::cuda {

/// Told on any of the program's threads, several at once; quick, and never fails.
class Witness {
 public:
  Witness() = default;
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  virtual ~Witness() = default;

  /// What the calling thread enqueues or allocates until end_op() belongs to this op of this rank; where the op is
  /// invalid, to the rank alone. What is captured in a graph belongs to it whenever it runs. Nests: the inner one
  /// counts.
  virtual void begin_op(Rank rank, OpId op) = 0;
  virtual void end_op() = 0;
  /// The host worked for an op when its stream came there. Times: std::chrono::steady_clock.
  virtual void host_worked(Rank rank, OpId op, std::int64_t begin_ns, std::int64_t end_ns) = 0;
};

/// From its beginning to its end, what this thread enqueues is the op's. Nothing where nobody is told.
class Witnessed {
 public:
  Witnessed(Witness* witness, Rank rank, OpId op) : witness_(witness) {
    if (witness_ != nullptr) witness_->begin_op(rank, op);
  }
  Witnessed(const Witnessed&) = delete;
  Witnessed& operator=(const Witnessed&) = delete;
  ~Witnessed() {
    if (witness_ != nullptr) witness_->end_op();
  }

 private:
  Witness* witness_;
};

}  // namespace shard::cuda
