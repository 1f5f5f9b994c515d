// Builds the op of one collective over a unit's flats, with planned staging where the transport needs it.
#pragma once

#include <string_view>

#include "sim/ir/plan.h"

namespace shard::plan {

/// One flat's part of a call: `full` holds all of the flat; `shard` is this rank's part, empty where the kind has none.
struct FlatPart {
  std::int32_t flat = -1;
  Operand full{};
  Operand shard{};
};

/// Among the ranks of `group`, which must have more than one member. `name`: in the plan's pool, or a literal.
[[nodiscard]] Op make_collective(Plan& plan, Collective kind, Group group, std::string_view name, Part part,
                                 UnitId unit, const std::vector<FlatPart>& parts);

/// Stage 3: flats of one unit made whole on every rank of the shard group, from their shards, or by their owner.
[[nodiscard]] Op make_gather(Plan& plan, const std::vector<std::int32_t>& flats, std::string_view name, Part part);

/// Stages 1 and 2: what each rank of the shard group has stepped of one unit's flats, on all of them.
[[nodiscard]] Op make_refresh(Plan& plan, const std::vector<std::int32_t>& flats, std::string_view name);

/// This rank's shard of a flat inside a buffer that holds all of it; the owner of a flat has all of it.
[[nodiscard]] Operand own_part(const Plan& plan, std::int32_t flat, BufferId full, Access access);

}  // namespace shard::plan
