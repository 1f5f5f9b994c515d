// What is born once and stays lies at the bottom of its memory's arena, in order of birth.
#pragma once

#include <array>
#include <cstddef>

#include "sim/ir/effects.h"
#include "sim/ir/plan.h"

namespace shard::plan {

/// By memory: where what comes and goes begins.
using Bases = std::array<Bytes, kMemoryCount>;

/// Calls visit(buffer, first byte) for each buffer that stays. The plan has its lifetimes.
template <class Visit>
[[nodiscard]] Bases lay_what_stays(const Plan& plan, const Visit& visit) {
  Bases bases{};
  for (const PhaseOps& phase : plan.phases)
    for (const Op& op : phase.ops)
      for (BufferId id : op.acquire)
        if (const Buffer& buffer = plan.buffer(id); buffer.persistent) {
          Bytes& end = bases[static_cast<std::size_t>(buffer.memory)];
          visit(id, end);
          end += arena_bytes(buffer);
        }
  return bases;
}

}  // namespace shard::plan
