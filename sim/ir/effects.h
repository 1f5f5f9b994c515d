// What an op takes, gives back, sends and costs: the only code that knows, for every interpreter.
#pragma once

#include <optional>
#include <span>

#include "sim/ir/plan.h"

namespace shard::plan {

/// One collective call as it is counted: bytes are the full buffer, padding included.
struct Sends {
  Collective kind{};
  Bytes bytes{};
};

struct Effects {
  std::span<const BufferId> acquire{};  ///< taken before the op starts
  std::span<const BufferId> release{};  ///< given back once the op is issued, in plan order
  std::optional<Sends> sends{};
  Flops flops{};       ///< arithmetic of a compute op or optimizer step
  Bytes bytes_read{};  ///< sum over operands
  Bytes bytes_written{};
};

/// Valid for any op of a compiled plan; the spans live as long as the op.
[[nodiscard]] Effects effects(const Plan& plan, const Op& op);

/// The bytes a buffer takes in its arena: rounded up to kAlignment.
[[nodiscard]] constexpr Bytes arena_bytes(const Buffer& buffer) {
  return round_up(buffer.bytes, kAlignment);
}

}  // namespace shard::plan
