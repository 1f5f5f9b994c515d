// First fit over the spans of each track in order of begin; every lane keeps the stack of its open spans' ends.
#include "traces/lanes.h"

#include <algorithm>
#include <numeric>

namespace shard {
namespace {

/// Ends of the spans that are open on one lane, the innermost last.
using OpenEnds = std::vector<std::int64_t>;

bool takes(OpenEnds& open, std::int64_t begin, std::int64_t end) {
  while (!open.empty() && open.back() <= begin) open.pop_back();
  return open.empty() || end <= open.back();
}

}  // namespace

std::int64_t Lanes::count() const {
  return std::accumulate(lanes_of_track.begin(), lanes_of_track.end(), std::int64_t{0});
}

Lanes assign_lanes(const Trace& trace) {
  const SpanTable& spans = trace.spans;
  Lanes lanes;
  lanes.lanes_of_track.assign(trace.tracks.size(), 0);
  lanes.lane.assign(spans.size(), 0);
  lanes.order.resize(spans.size());
  // Files hold runs of one track, mostly in order: each span goes to its track, and only what is out of order is
  // sorted.
  std::vector<std::size_t> next(trace.tracks.size() + 1, 0);
  for (const TrackId track : spans.track) ++next[static_cast<std::size_t>(track.value) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  const std::vector<std::size_t> first = next;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    lanes.order[next[static_cast<std::size_t>(spans.track[i].value)]++] = static_cast<std::uint32_t>(i);
  }
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    if (spans.begin_ns[a] != spans.begin_ns[b]) return spans.begin_ns[a] < spans.begin_ns[b];
    return spans.duration_ns[a] > spans.duration_ns[b];
  };
  for (std::size_t track = 0; track + 1 < first.size(); ++track) {
    const auto from = lanes.order.begin() + static_cast<std::ptrdiff_t>(first[track]);
    const auto to = lanes.order.begin() + static_cast<std::ptrdiff_t>(first[track + 1]);
    if (!std::is_sorted(from, to, before)) std::stable_sort(from, to, before);
  }
  std::vector<OpenEnds> open;
  TrackId track;
  for (const std::uint32_t i : lanes.order) {
    if (spans.track[i] != track) {
      track = spans.track[i];
      open.clear();
    }
    const std::int64_t begin = spans.begin_ns[i], end = begin + spans.duration_ns[i];
    std::size_t lane = 0;
    while (lane < open.size() && !takes(open[lane], begin, end)) ++lane;
    if (lane == open.size()) open.emplace_back();
    open[lane].push_back(end);
    lanes.lane[i] = static_cast<std::int32_t>(lane);
    lanes.lanes_of_track[static_cast<std::size_t>(track.value)] = static_cast<std::int32_t>(open.size());
  }
  return lanes;
}

}  // namespace shard
