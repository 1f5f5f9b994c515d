// Streams and dependencies.
#include "sim/engine/timeline.h"

#include <algorithm>
#include <cassert>

namespace shard::engine {

void Timeline::begin_phase() {
  free_.fill(now_);
  ++phase_;
}

Interval Timeline::add(const plan::Op& op, Seconds duration) {
  Seconds& stream_free = free_[static_cast<std::size_t>(op.stream)];
  Seconds begin = overlap_ ? stream_free : now_;
  const auto wait_for = [&](OpId id) {
    const auto i = static_cast<std::size_t>(id.value);
    if (i < finish_.size() && finish_[i].phase == phase_) begin = std::max(begin, finish_[i].end);
  };
  for (const OpId id : op.dependencies) wait_for(id);
  if (const auto* call = std::get_if<plan::Communicate>(&op.action); call != nullptr && call->behind.valid())
    wait_for(call->behind);
  const Interval interval{begin, begin + duration};
  stream_free = interval.end;
  now_ = std::max(now_, interval.end);
  if (op.id.valid()) {
    const auto i = static_cast<std::size_t>(op.id.value);
    if (i >= finish_.size()) finish_.resize(std::max(i + 1, 2 * finish_.size()));
    finish_[i] = Finish{phase_, interval.end};
  }
  return interval;
}

}  // namespace shard::engine
