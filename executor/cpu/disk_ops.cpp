// Ops that touch the disk.
#include "executor/cpu/disk_ops.h"

#include <algorithm>
#include <cassert>

namespace shard::cpu {
namespace {

bool on_disk(const plan::Plan& plan, const plan::Operand& operand) {
  return plan.buffer(operand.buffer).memory == Memory::disk;
}

}  // namespace

bool touches_disk(const plan::Plan& plan, const plan::Op& op) {
  return std::ranges::any_of(op.operands, [&](const plan::Operand& o) { return on_disk(plan, o); });
}

Result<void> run_on_disk(const plan::Plan& plan, const plan::Position& position, const Memories& memories,
                         const plan::Op& op, std::span<std::byte* const> at) {
  const auto offset = [&](const plan::Operand& o) {
    return plan.buffer(o.buffer).offset + o.offset_on(position.shard);
  };
  if (std::holds_alternative<plan::ZeroState>(op.action)) {
    for (const plan::Operand& o : op.operands)
      if (Result<void> r = memories.zero_disk(offset(o), o.bytes); !r) return r;
    return {};
  }
  assert(std::holds_alternative<plan::Copy>(op.action) && "nothing else touches the disk (P24)");
  const plan::Operand& from = op.operands[0];
  const plan::Operand& to = op.operands[1];
  const auto bytes = static_cast<std::size_t>(from.bytes);
  if (on_disk(plan, from)) return memories.read_disk(offset(from), {at[1], bytes});
  return memories.write_disk(offset(to), {at[0], bytes});
}

}  // namespace shard::cpu
