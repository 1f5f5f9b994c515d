// One span a phase.
#include "executor/train/host_spans.h"

#include "executor/rank/observer.h"

namespace shard::train {

void HostSpans::begin(Phase phase, std::int64_t step) {
  if (!track_.valid()) track_ = writer_.track({.rank = rank_, .kind = TrackKind::other, .name = "host"});
  const bool is_step = phase == Phase::first_step || phase == Phase::steady_step;
  open_ = {.track = track_,
           .begin_ns = executor::now_ns(),
           .name = writer_.name(is_step ? "step" : to_string(phase)),
           .phase = phase,
           .step = static_cast<std::int32_t>(step),
           .micro_step = -1,
           .activity = Activity::annotation};
}

void HostSpans::end() {
  open_.duration_ns = executor::now_ns() - open_.begin_ns;
  writer_.add(open_);
}

}  // namespace shard::train
