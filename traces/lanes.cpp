// The spans of each track in order of begin, and the lane that takes each.
#include "traces/lanes.h"

#include <numeric>
#include <span>

#include "traces/lane_fit.h"
#include "traces/span_order.h"

namespace shard {

std::int64_t Lanes::count() const {
  return std::accumulate(lanes_of_track.begin(), lanes_of_track.end(), std::int64_t{0});
}

Lanes assign_lanes(const Trace& trace) {
  const SpanTable& spans = trace.spans;
  Lanes lanes;
  lanes.lanes_of_track.assign(trace.tracks.size(), 0);
  lanes.lane.assign(spans.size(), 0);
  lanes.order.resize(spans.size());
  // Each span goes to its track, in file order.
  std::vector<std::size_t> next(trace.tracks.size() + 1, 0);
  for (const TrackId track : spans.track) ++next[static_cast<std::size_t>(track.value) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  const std::vector<std::size_t> first = next;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    lanes.order[next[static_cast<std::size_t>(spans.track[i].value)]++] = static_cast<std::uint32_t>(i);
  }
  for (std::size_t track = 0; track + 1 < first.size(); ++track) {
    sort_spans(spans, std::span(lanes.order).subspan(first[track], first[track + 1] - first[track]));
  }
  LaneFit fit;
  TrackId track;
  for (const std::uint32_t i : lanes.order) {
    if (spans.track[i] != track) {
      track = spans.track[i];
      fit.clear();
    }
    const std::size_t lane = fit.place(spans.begin_ns[i], spans.begin_ns[i] + spans.duration_ns[i]).lane;
    lanes.lane[i] = static_cast<std::int32_t>(lane);
    lanes.lanes_of_track[static_cast<std::size_t>(track.value)] = static_cast<std::int32_t>(fit.lane_count());
  }
  return lanes;
}

}  // namespace shard
