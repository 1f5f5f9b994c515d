// Walks from one layout change to the next.
#include "sim/search/curve.h"

#include "sim/search/grid_scan.h"

namespace shard {
namespace {

CurvePoint point_at(const SearchModel& model, const NextFit& fit, std::int64_t chunk) {
  const NextFitTally tally = fit.tally(chunk);
  return {Elems{chunk}, tally.chunks(), Elems{tally.capacity(chunk) - fit.total()},
          Elems{gather_working_set(model, fit, chunk)}, tally.uniform_chunks};
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
    if (curve.size() > kMaxCurvePoints) {
      curve.clear();
      const SizeGrid grid{first.count(), world_size, (last - first).count() / world_size + 1};
      for_each_tally(fit, grid,
                     [&](std::int64_t size, const NextFitTally&) { curve.push_back(point_at(model, fit, size)); });
      return curve;
    }
    const std::int64_t next = fit.next_change(chunk.count());
    if (next > last.count()) break;
    chunk = round_up(Elems{next}, world_size);
  }
  return curve;
}

}  // namespace shard
