// CUPTI in a program of ours that records itself. Includes none of CUPTI's headers, so that programs may.
#pragma once

#include <cstdint>

#include "profiler/spool/spool.h"
#include "traces/base/result.h"

namespace shard::profiler {

class Collector;

/// One per process, since CUPTI is. Never destroyed.
class OwnProgram {
 public:
  /// Before the first call of CUDA. `spool` is never destroyed. Errc::unavailable where CUPTI is missing, held by
  /// another profiler, or not for this user: the program is to go on.
  [[nodiscard]] static Result<OwnProgram*> start(Spool& spool);
  OwnProgram(const OwnProgram&) = delete;
  OwnProgram& operator=(const OwnProgram&) = delete;

  /// See Collector.
  void push(std::uint64_t id);
  void pop();
  void look_at_clocks();
  /// Has all delivered that there is; nothing is recorded from here on.
  void finish();

 private:
  explicit OwnProgram(Collector& collector) : collector_(collector) {}
  Collector& collector_;
};

}  // namespace shard::profiler
