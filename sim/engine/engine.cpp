// One op at a time: clock, ledger, counters.
#include "sim/engine/engine.h"

#include <algorithm>
#include <utility>

namespace shard::engine {
namespace {

Work work_of(const plan::Op& op) {
  if (std::holds_alternative<plan::Communicate>(op.action)) return Work::communication;
  if (op.stream == Stream::copy_in || op.stream == Stream::copy_out) return Work::transfer;
  return Work::compute;
}

}  // namespace

Engine::Engine(const plan::Plan& plan, const cluster::Cluster& cluster)
    : plan_(plan),
      cost_(plan, cluster),
      timeline_(cluster.streams_overlap),
      ledgers_{ArenaLedger{Memory::device, plan::kAlignment}, ArenaLedger{Memory::host, plan::kAlignment},
               ArenaLedger{Memory::disk, plan::kAlignment}, ArenaLedger{Memory::pinned, plan::kAlignment}},
      live_(plan.buffers.size(), false) {}

Result<void> Engine::begin_phase(const plan::PhaseOps& phase) {
  timeline_.begin_phase();
  run_ = PhaseRun{};
  run_.phase = phase.phase;
  run_.interval.begin = timeline_.now();
  run_.ops.reserve(phase.ops.size());
  run_.changes.reserve(2 * phase.ops.size());
  for (int m = 0; m < kMemoryCount; ++m) {
    ArenaLedger& books = ledgers_[static_cast<std::size_t>(m)];
    books.reset_peaks();
    ArenaRun& arena = run_.arenas[static_cast<std::size_t>(m)];
    arena.memory = static_cast<Memory>(m);
    arena.live_begin = books.live();
    arena.begin_by_category = books.live_by_category();
  }
  for (std::size_t b = 0; b < live_.size(); ++b) {
    if (!live_[b]) continue;
    const BufferId id{static_cast<std::int32_t>(b)};
    run_.arenas[static_cast<std::size_t>(plan_.buffer(id).memory)].resident.push_back(id);
  }
  return {};
}

const Engine::Price& Engine::price(const plan::Op& op) {
  const auto id = static_cast<std::size_t>(op.id.valid() ? op.id.value : 0);
  if (id >= prices_.size()) prices_.resize(std::max(id + 1, 2 * prices_.size()));
  Price& known = prices_[id];
  if (known.op != nullptr && known.op->operands.data() == op.operands.data() && known.op->action == op.action)
    return known;
  const plan::Effects effects = plan::effects(plan_, op);
  known = {.op = &op,
           .seconds = cost_(op, effects),
           .flops = effects.flops,
           .sends = effects.sends,
           .bytes_read = effects.bytes_read};
  return known;
}

Result<void> Engine::acquire(const plan::Op& op, std::span<const BufferId> buffers) {
  // The clock first: what an op takes, it takes when it begins.
  price_ = &price(op);
  current_ = OpRun{.op = &op,
                   .interval = timeline_.add(op, price_->seconds),
                   .work = work_of(op),
                   .bytes = {},
                   .flops = price_->flops};
  for (const BufferId id : buffers) {
    if (Result<void> r = change(op, id, true, current_.interval.begin); !r) return r;
  }
  return {};
}

Result<void> Engine::issue(const plan::Op& op) {
  if (price_->sends) {
    CollectiveCount& counter = run_.collectives[static_cast<std::size_t>(price_->sends->kind)];
    const std::int64_t times = plan_.times_of(op);
    counter.count += times;
    counter.bytes += times * price_->sends->bytes;
    current_.bytes = price_->sends->bytes;
  } else if (current_.work == Work::transfer) {
    current_.bytes = price_->bytes_read;
  }
  run_.ops.push_back(current_);
  return {};
}

Result<void> Engine::release(const plan::Op& op, std::span<const BufferId> buffers) {
  for (const BufferId id : buffers) {
    if (Result<void> r = change(op, id, false, current_.interval.end); !r) return r;
  }
  return {};
}

Result<void> Engine::change(const plan::Op& op, BufferId id, bool taken, Seconds time) {
  const plan::Buffer& buffer = plan_.buffer(id);
  const Bytes bytes = plan::arena_bytes(buffer);
  ArenaLedger& books = ledger(buffer.memory);
  if (Result<void> r = taken ? books.acquire(id, Bytes{buffer.offset}, bytes, buffer.category) : books.release(id);
      !r) {
    Error e = r.error();
    e.where =
        "op " + std::to_string(op.id.value) + " (" + std::string(op.name) + "), buffer " + std::string(buffer.name);
    return e;
  }
  live_[static_cast<std::size_t>(id.value)] = taken;
  // Memory lives in plan order; an event is shown no earlier than the one before it.
  if (!run_.changes.empty()) time = std::max(time, run_.changes.back().time);
  run_.changes.push_back(MemoryChange{&op, id, taken ? bytes : Bytes{0} - bytes, time});
  return {};
}

Result<void> Engine::end_phase(const plan::PhaseOps&) {
  run_.interval.end = timeline_.now();
  for (ArenaRun& arena : run_.arenas) {
    const ArenaLedger& books = ledger(arena.memory);
    arena.extent = books.extent();
    arena.live_peak = books.live_peak();
    arena.live_end = books.live();
    arena.end_by_category = books.live_by_category();
    arena.peak_by_category = books.by_category_at_peak();
  }
  return {};
}

}  // namespace shard::engine
