// The books that a rank keeps of its arenas.
#include "executor/rank/books.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "executor/rank/backend.h"
#include "sim/ir/effects.h"

namespace shard::executor {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Books::begin_phase() {
  for (ArenaLedger& ledger : ledgers_) ledger.reset_peaks();
}

Result<void> Books::acquire(const plan::Op& op, std::span<const BufferId> buffers) {
  for (BufferId id : buffers) {
    const plan::Buffer& buffer = plan_.buffer(id);
    if (Result<void> r =
            ledger_of(buffer).acquire(id, Bytes{buffer.offset}, plan::arena_bytes(buffer), buffer.category);
        !r)
      return r;
    if (observer_ != nullptr) observer_->memory({.op = &op, .buffer = id, .acquire = true, .time_ns = now_ns()});
  }
  for (std::size_t m = 0; m < ledgers_.size(); ++m) {
    peaks_[m] = std::max(peaks_[m], ledgers_[m].extent());
    live_peaks_[m] = std::max(live_peaks_[m], ledgers_[m].live_peak());
  }
  return {};
}

Result<void> Books::release(const plan::Op& op, std::span<const BufferId> buffers) {
  for (BufferId id : buffers) {
    if (Result<void> r = ledger_of(plan_.buffer(id)).release(id); !r) return r;
    if (observer_ != nullptr) observer_->memory({.op = &op, .buffer = id, .acquire = false, .time_ns = now_ns()});
  }
  live_after_[static_cast<std::size_t>(op.part)] = phase_ledger(Memory::device).live_by_category();
  return {};
}

Result<void> Books::check_operands(const plan::Op& op, std::int32_t shard_rank, Rank rank) const {
  for (const plan::Operand& o : op.operands) {
    const plan::Buffer& buffer = plan_.buffer(o.buffer);
    const std::int64_t begin = o.offset_on(shard_rank);
    const bool live = phase_ledger(buffer.memory).is_live(o.buffer);
    if (live && begin >= 0 && begin + o.bytes <= buffer.bytes.count()) continue;
    return Error{.code = Errc::internal,
                 .what = "op '" + std::string(op.name) + "' touches bytes [" + std::to_string(begin) + ", " +
                         std::to_string(begin + o.bytes) + ") of buffer '" + std::string(buffer.name) + "', which " +
                         (live ? "has " + std::to_string(buffer.bytes.count()) : "is not live"),
                 .where = "rank " + std::to_string(rank.value) + " op " + std::to_string(op.id.value),
                 .help = {}};
  }
  return {};
}

Bytes optimizer_state_bytes(const plan::Plan& plan, const plan::Position& position) {
  Bytes total{0};
  const plan::PhaseOps* step = plan.find(Phase::steady_step);
  for (const plan::Op& op : step->ops) {
    const auto* a = std::get_if<plan::OptimizerStep>(&op.action);
    if (a == nullptr || op.operands.size() <= 4) continue;
    for (std::size_t i = 4; i < op.operands.size(); ++i)
      if (op.operands[i].writes()) total += Bytes{op.operands[i].bytes};
    const plan::Flat& flat = plan.flats[static_cast<std::size_t>(a->flat)];
    const Elems begin{a->first_elem.count() + position.shard * a->rank_stride_elems.count()};
    total += Bytes{4 * static_cast<std::int64_t>(plan::param_ranges(flat, begin, begin + a->elems).size())};
  }
  return total;
}

}  // namespace shard::executor
