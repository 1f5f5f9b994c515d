// The parts of pass `place`: gradients, optimizer state, parameters. Each rewrites the ops of a plan whose resting
// buffers already are in the memory that Plan::placed says.
#pragma once

#include <vector>

#include "sim/compile/draft.h"
#include "sim/compile/passes/moves.h"

namespace shard::plan {

/// Where units have owners, the others have an absent op for each move that only the owner has.

/// Gradients that rest on the host leave the device when nothing on it needs them next: after their reduction, or, as
/// nodes of the gradient tree that wait, before it. Tree nodes are added on the host.
[[nodiscard]] std::vector<Op> place_gradients(Draft& plan, Mover& mover, std::vector<Op> step);

/// Each shard steps in the memory that its state rests in, or, from disk, in host memory. What a step needs is brought
/// there. Parameters are rounded to their stored type before they cross.
[[nodiscard]] std::vector<Op> place_steps(Plan& plan, Mover& mover, std::vector<Op> step);

/// Parameters that rest on the host are brought to the device before uses and dropped behind them; in stage 3 a shard
/// goes to its place inside what is gathered. Refreshes happen in device memory.
[[nodiscard]] std::vector<Op> place_parameters(Plan& plan, Mover& mover, std::vector<Op> step);
/// The same for creation and digest, and the births of master parameters.
void place_creation(Plan& plan, Mover& mover);
void place_digest(Plan& plan, Mover& mover);

/// Another rank of the shard group owns all of the flat.
[[nodiscard]] inline bool is_foreign(const Plan& plan, std::int32_t flat) {
  const std::int32_t owner = plan.flats[static_cast<std::size_t>(flat)].owner;
  return owner >= 0 && owner != position(plan.topology, plan.rank).shard;
}

[[nodiscard]] inline const Resting& resting(const Plan& plan, std::int32_t flat) {
  return plan.placed.resting[static_cast<std::size_t>(plan.flats[static_cast<std::size_t>(flat)].unit.value)];
}

}  // namespace shard::plan
