// Builds the op of one collective over a unit's flats, with planned staging where the transport needs it.
#pragma once

#include <string>

#include "sim/plan/plan.h"

namespace shard::plan {

/// One flat's part of a call: `full` holds all of the flat; `shard` is this rank's part, empty where the kind has none.
struct FlatPart {
  std::int32_t flat = -1;
  Operand full{};
  Operand shard{};
};

/// Among the ranks of `group`, which must have more than one member.
[[nodiscard]] Op make_collective(Plan& plan, Collective kind, Group group, std::string name, Part part, UnitId unit,
                                 const std::vector<FlatPart>& parts);

/// This rank's shard of a flat inside a buffer that holds all of it.
[[nodiscard]] Operand own_part(const Plan& plan, std::int32_t flat, BufferId full, Access access);

}  // namespace shard::plan
