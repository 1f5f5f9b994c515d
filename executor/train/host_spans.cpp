// One span a phase.
#include "executor/train/host_spans.h"

namespace shard::train {

void HostSpans::begin(Phase phase, std::int64_t step) {
  if (!track_.valid()) track_ = writer_.track({.rank = rank_, .kind = TrackKind::other, .name = kTrack});
  const bool is_step = phase == Phase::first_step || phase == Phase::steady_step;
  open_ = {.track = track_,
           .begin_ns = executor::now_ns(),
           .name = writer_.name(is_step ? kStep : to_string(phase)),
           .phase = phase,
           .step = static_cast<std::int32_t>(step),
           .micro_step = -1,
           .activity = Activity::annotation};
}

void HostSpans::end() {
  open_.duration_ns = executor::now_ns() - open_.begin_ns;
  writer_.add(open_);
}

void HostSpans::worked(executor::HostWork work, std::int64_t begin_ns, std::int64_t end_ns) {
  if (end_ns <= begin_ns) return;
  Span span = open_;
  span.begin_ns = begin_ns;
  span.duration_ns = end_ns - begin_ns;
  span.name = writer_.name(to_string(work));
  span.activity = work == executor::HostWork::wait ? Activity::wait : Activity::annotation;
  writer_.add(span);
}

}  // namespace shard::train
