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
                         const plan::Op& op, std::span<std::byte* const> at, Progress* progress) {
  const auto offset = [&](const plan::Operand& o) {
    return plan.buffer(o.buffer).offset + o.offset_on(position.shard);
  };
  const auto in_pieces = [&](std::int64_t bytes, const auto& run) -> Result<void> {
    constexpr std::int64_t kPiece = std::int64_t{1} << 26;  // well below a second
    for (std::int64_t begin = 0; begin < bytes; begin += kPiece) {
      if (Result<void> r = run(begin, static_cast<std::size_t>(std::min(kPiece, bytes - begin))); !r) return r;
      if (progress != nullptr) progress->note();
    }
    return {};
  };
  if (std::holds_alternative<plan::ZeroState>(op.action)) {
    for (const plan::Operand& o : op.operands) {
      const auto zero = [&](std::int64_t begin, std::size_t n) {
        return memories.zero_disk(offset(o) + begin, static_cast<std::int64_t>(n));
      };
      if (Result<void> r = in_pieces(o.bytes, zero); !r) return r;
    }
    return {};
  }
  assert(std::holds_alternative<plan::Copy>(op.action) && "nothing else touches the disk (P24)");
  const plan::Operand& from = op.operands[0];
  const plan::Operand& to = op.operands[1];
  return in_pieces(from.bytes, [&](std::int64_t begin, std::size_t n) {
    if (on_disk(plan, from)) return memories.read_disk(offset(from) + begin, {at[1] + begin, n});
    return memories.write_disk(offset(to) + begin, {at[0] + begin, n});
  });
}

}  // namespace shard::cpu
