// Edges between streams: an op waits for those of other streams whose bytes it reads or overwrites.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan {

/// Adds an edge for every read-after-write, write-after-read and write-after-write on one buffer across streams that is
/// not already implied by other edges and stream order. Ops must have ids, ascending in plan order.
void order_buffers(const Plan& plan, PhaseOps& phase);

/// Where in its arena each buffer that comes and goes begins and ends, as numbers in the order of the bytes. Of the
/// offsets that the plan has when it is made.
class ArenaPlaces {
 public:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  explicit ArenaPlaces(const Plan& plan);
  [[nodiscard]] Range of(BufferId buffer) const { return of_buffer_[static_cast<std::size_t>(buffer.value)]; }
  [[nodiscard]] std::size_t count(Memory memory) const { return count_[static_cast<std::size_t>(memory)]; }

 private:
  std::vector<Range> of_buffer_;
  std::array<std::size_t, kMemoryCount> count_{};
};

/// Adds edges where a buffer takes bytes that another gave back, from the last accesses of the old to the op that
/// acquires the new. Needs acquire, release and offsets. What stays takes bytes that nobody had before.
void order_reuse(const Plan& plan, const ArenaPlaces& places, PhaseOps& phase);

}  // namespace shard::plan
