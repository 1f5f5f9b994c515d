// Parameters into units: what is gathered, released and reduced together, for each kind of unit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan {

/// Flats padded to multiples of the ranks that share shards, and the units made of them, in parameter order. Frozen
/// parameters are in flats of their own: of the same unit, or for chunks in chunks of their own, behind the others.
/// Ownership by rank pads nothing but chunks: unit u belongs to member u mod S of a shard group; with a chunk per
/// tensor, to the member that has the fewest elements so far (first on ties).
[[nodiscard]] std::pair<std::vector<Flat>, std::vector<Unit>> make_units(const model::Model& model,
                                                                         const Strategy& strategy);

/// PyTorch's ZeroRedundancyOptimizer: parameters by size, largest first (stable), each to the rank with the fewest
/// elements so far (first on ties). Returns the owner of each parameter, -1 for those that are `frozen` (one flag per
/// parameter, or none).
[[nodiscard]] std::vector<std::int32_t> greedy_owners(const ParameterList& parameters, std::int32_t ranks,
                                                      const std::vector<bool>& frozen = {});

/// What ops and buffers of a flat are named after: its unit, or where a unit has several flats, what tells them apart.
[[nodiscard]] std::string flat_name(const Plan& plan, const Flat& flat);

/// The unit with those of its flats that are trained: what is reduced, stepped and refreshed.
[[nodiscard]] Unit trained_part(const Plan& plan, Unit unit);

}  // namespace shard::plan
