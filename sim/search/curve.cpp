// Walks from one layout change to the next.
#include "sim/search/curve.h"

#include <algorithm>

namespace shard {
namespace {

CurvePoint point_at(const SearchModel& model, const NextFit& fit, std::int64_t chunk) {
  const NextFitTally tally = fit.tally(chunk);
  return {Elems{chunk}, tally.chunks(), Elems{tally.capacity(chunk) - fit.total()},
          Elems{gather_working_set(model, fit, chunk)}, tally.uniform_chunks};
}

std::vector<CurvePoint> sampled_curve(const SearchModel& model, const NextFit& fit, std::int64_t world_size,
                                      Elems first, Elems last) {
  constexpr auto kSamples = static_cast<std::int64_t>(kMaxCurvePoints);
  const std::int64_t steps = (last - first).count() / world_size;
  const std::int64_t stride = std::max(std::int64_t{1}, (steps + kSamples - 2) / (kSamples - 1)) * world_size;
  std::vector<CurvePoint> curve;
  for (Elems chunk = first; chunk <= last; chunk += Elems{stride}) {
    curve.push_back(point_at(model, fit, chunk.count()));
  }
  return curve;
}

}  // namespace

CurvePoint curve_point(const SearchModel& model, std::int64_t world_size, Elems chunk, Oversize oversize) {
  return point_at(model, NextFit(model.sizes, world_size, oversize), chunk.count());
}

std::vector<CurvePoint> chunk_curve(const SearchModel& model, std::int64_t world_size, Elems first, Elems last) {
  const NextFit fit(model.sizes, world_size, Oversize::round_up);
  std::vector<CurvePoint> curve;
  for (Elems chunk = first; chunk <= last;) {
    curve.push_back(point_at(model, fit, chunk.count()));
    if (curve.size() > kMaxCurvePoints) return sampled_curve(model, fit, world_size, first, last);
    const std::int64_t next = fit.next_change(chunk.count());
    if (next > last.count()) break;
    chunk = round_up(Elems{next}, world_size);
  }
  return curve;
}

}  // namespace shard
