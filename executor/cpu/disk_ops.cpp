// Ops that touch the disk.
#include "executor/cpu/disk_ops.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace shard::cpu {
namespace {

bool on_disk(const plan::Plan& plan, const plan::Operand& operand) {
  return plan.buffer(operand.buffer).memory == Memory::disk;
}

/// run(at, tile) over bytes [begin, begin + bytes) in order, through a buffer on the stack.
template <class Run>
Result<void> for_each_tile(std::int64_t begin, std::int64_t bytes, const Run& run) {
  alignas(8) std::array<std::byte, std::size_t{64} << 10> buffer;
  const auto size = static_cast<std::int64_t>(buffer.size());
  for (std::int64_t done = 0; done < bytes; done += size) {
    const std::span<std::byte> tile = std::span(buffer).first(static_cast<std::size_t>(std::min(size, bytes - done)));
    if (Result<void> r = run(begin + done, tile); !r) return r;
  }
  return {};
}

}  // namespace

bool touches_disk(const plan::Plan& plan, const plan::Op& op) {
  return std::ranges::any_of(op.operands, [&](const plan::Operand& o) { return on_disk(plan, o); });
}

Result<void> run_on_disk(const plan::Plan& plan, const plan::Position& position, const Memories& memories,
                         const plan::Op& op, std::span<std::byte* const> at, const StateOps& state,
                         Progress* progress) {
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
  if (const auto* birth = std::get_if<plan::ZeroState>(&op.action)) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const plan::Operand& o = op.operands[i];
      const auto zero = [&](std::int64_t begin, std::size_t n) {
        return memories.zero_disk(offset(o) + begin, static_cast<std::int64_t>(n));
      };
      const auto read = [&](std::int64_t begin, std::size_t n) {
        return for_each_tile(begin, static_cast<std::int64_t>(n), [&](std::int64_t byte, std::span<std::byte> tile) {
          if (Result<void> r = state.born(*birth, i, byte, tile); !r) return r;
          return memories.write_disk(offset(o) + byte, tile);
        });
      };
      if (Result<void> r = state.goes_on() ? in_pieces(o.bytes, read) : in_pieces(o.bytes, zero); !r) return r;
    }
    return {};
  }
  if (const auto* save = std::get_if<plan::Save>(&op.action)) {
    const plan::Operand& o = op.operands[0];
    return in_pieces(o.bytes, [&](std::int64_t begin, std::size_t n) {
      return for_each_tile(begin, static_cast<std::int64_t>(n),
                           [&](std::int64_t byte, std::span<std::byte> tile) -> Result<void> {
                             if (Result<void> r = memories.read_disk(offset(o) + byte, tile); !r) return r;
                             state.save(*save, plan.buffer(o.buffer).dtype, byte, tile);
                             return {};
                           });
    });
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
