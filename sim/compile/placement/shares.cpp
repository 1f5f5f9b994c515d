// Largest first, as long as the sum stays below the fraction.
#include "sim/compile/placement/shares.h"

#include <algorithm>
#include <numeric>

namespace shard::plan {
namespace {

std::vector<Memory> memories(const Share& share, const std::vector<Elems>& sizes) {
  std::vector<Memory> result(sizes.size(), share.on_device >= 1 ? Memory::device : share.rest);
  if (share.on_device <= 0 || share.on_device >= 1) return result;
  Elems total{0};
  for (Elems size : sizes) total += size;
  const double allowed = share.on_device * static_cast<double>(total.count());
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  Elems kept{0};
  for (std::size_t unit : order) {
    if (static_cast<double>((kept + sizes[unit]).count()) > allowed) continue;
    kept += sizes[unit];
    result[unit] = Memory::device;
  }
  return result;
}

}  // namespace

std::vector<Elems> unit_elems(const std::vector<Flat>& flats, const std::vector<Unit>& units, bool frozen_too) {
  std::vector<Elems> sizes;
  for (const Unit& unit : units) {
    Elems& size = sizes.emplace_back(0);
    for (std::int32_t f : unit.flats)
      if (const Flat& flat = flats[static_cast<std::size_t>(f)]; frozen_too || !flat.frozen) size += flat.elems;
  }
  return sizes;
}

std::vector<Resting> rest_by_share(const Strategy& strategy, const std::vector<Flat>& flats,
                                   const std::vector<Unit>& units) {
  const Placement& placement = strategy.placement;
  const bool on_host = placement.policy == PlacementPolicy::host || placement.policy == PlacementPolicy::automatic;
  const Share usual = on_host ? kOnHost : kOnDevice;
  const std::vector<Elems> sizes = unit_elems(flats, units);
  // A gradient in its parameters' place rests where they do.
  const bool shared = strategy.reuses_shards();
  const Share alike = shared ? placement.gradients.value_or(usual) : usual;
  const std::vector<Memory> parameters = memories(placement.parameters.value_or(alike), sizes);
  const std::vector<Elems> trained = unit_elems(flats, units, false);
  const std::vector<Memory> gradients = shared ? parameters : memories(placement.gradients.value_or(usual), trained);
  const std::vector<Memory> optimizer = memories(placement.optimizer.value_or(usual), trained);
  std::vector<Resting> resting;
  for (std::size_t u = 0; u < units.size(); ++u)
    resting.push_back({.parameters = parameters[u], .gradients = gradients[u], .optimizer = optimizer[u]});
  return resting;
}

}  // namespace shard::plan
