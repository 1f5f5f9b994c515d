// Stretches joined where they touch, then one walk over both kinds.
#include "profiler/timeline/copy_overlap.h"

#include <algorithm>
#include <cstddef>
#include <map>

namespace shard::profiler {
namespace {

struct Stretch {
  std::int64_t begin_ns = 0, end_ns = 0;
};

void join(std::vector<Stretch>& stretches) {
  std::ranges::sort(stretches, {}, &Stretch::begin_ns);
  std::vector<Stretch> joined;
  for (const Stretch& each : stretches) {
    if (!joined.empty() && each.begin_ns <= joined.back().end_ns) {
      joined.back().end_ns = std::max(joined.back().end_ns, each.end_ns);
    } else {
      joined.push_back(each);
    }
  }
  stretches = std::move(joined);
}

struct Work {
  std::vector<Stretch> copies, kernels;
};

}  // namespace

std::vector<CopyOverlap> copy_overlap(const Trace& trace) {
  std::map<DevicePlace, Work> devices;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const Span span = trace.spans[i];
    const Track& track = trace.track_of(span.track);
    if (track.kind != TrackKind::stream) continue;
    const Activity activity = activity_of(track, span.activity, trace.name_of(span.name));
    const bool copies = activity == Activity::copy || activity == Activity::fill;
    if (!copies && activity != Activity::kernel) continue;
    Work& work = devices[{track.rank, device_of(track)}];
    (copies ? work.copies : work.kernels).push_back({span.begin_ns, span.begin_ns + span.duration_ns});
  }
  std::vector<CopyOverlap> result;
  for (auto& [place, work] : devices) {
    if (work.copies.empty()) continue;
    join(work.copies);
    join(work.kernels);
    CopyOverlap overlap{.place = place};
    std::size_t kernel = 0;
    for (const Stretch& copy : work.copies) {
      overlap.copy_ns += copy.end_ns - copy.begin_ns;
      while (kernel < work.kernels.size() && work.kernels[kernel].end_ns <= copy.begin_ns) ++kernel;
      for (std::size_t k = kernel; k < work.kernels.size() && work.kernels[k].begin_ns < copy.end_ns; ++k)
        overlap.hidden_ns +=
            std::min(copy.end_ns, work.kernels[k].end_ns) - std::max(copy.begin_ns, work.kernels[k].begin_ns);
    }
    result.push_back(overlap);
  }
  return result;
}

}  // namespace shard::profiler
