// Which spans of a trace stand for ops.
#pragma once

#include <cstddef>
#include <set>

#include "traces/reader.h"

namespace shard {

/// An op whose parts a device recorded has a stretch of its own as well, and is once what the stretch is: on ranks with
/// such stretches these alone stand for ops. The trace outlives it.
class OpSpans {
 public:
  explicit OpSpans(const Trace& trace) : trace_(trace) {
    for (std::size_t i = 0; i < trace.spans.size(); ++i)
      if (trace.spans.op[i].valid() && trace.spans.activity[i] == Activity::mark) stretched_.insert(rank_of(i));
  }
  [[nodiscard]] bool contains(std::size_t span) const {
    return trace_.spans.op[span].valid() &&
           (trace_.spans.activity[span] == Activity::mark || !stretched_.contains(rank_of(span)));
  }

 private:
  [[nodiscard]] Rank rank_of(std::size_t span) const { return trace_.track_of(trace_.spans.track[span]).rank; }

  const Trace& trace_;
  std::set<Rank> stretched_;
};

}  // namespace shard
