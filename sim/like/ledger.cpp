// Sums over a plan's ops.
#include "sim/like/ledger.h"

#include <algorithm>
#include <cassert>

#include "sim/ir/effects.h"

namespace shard::like {
namespace {

static_assert(plan::Backend<Ledger>);

bool is_model_data(Category category) {
  return category == Category::parameter || category == Category::gathered || category == Category::master_parameter;
}

}  // namespace

Ledger::Ledger(const plan::Plan& plan, const std::vector<Mark>& marks)
    : plan_(plan), marks_(marks), live_(plan.buffers.size(), false) {}

Result<void> Ledger::begin_phase(const plan::PhaseOps& phase) {
  phase_ = &phase;
  done_ = 0;
  LedgerMoment fresh{.name = {}, .phase = phase.phase};
  std::copy(std::begin(now_.model_data), std::end(now_.model_data), std::begin(fresh.model_data));
  fresh.model_data_peak = now_.model_data[static_cast<std::size_t>(Memory::device)];
  now_ = std::move(fresh);
  note_marks();
  return {};
}

void Ledger::add(BufferId id, bool taken) {
  assert(live_[static_cast<std::size_t>(id.value)] != taken && "taken twice, or given back without being taken");
  const plan::Buffer& buffer = plan_.buffer(id);
  const Bytes bytes{taken ? buffer.bytes.count() : -buffer.bytes.count()};
  live_[static_cast<std::size_t>(id.value)] = taken;
  if (is_model_data(buffer.category)) now_.model_data[static_cast<std::size_t>(buffer.memory)] += bytes;
  if (buffer.memory == Memory::device) device_ += bytes;
}

Result<void> Ledger::acquire(const plan::Op& op, std::span<const BufferId> buffers) {
  for (BufferId id : buffers) add(id, true);
  if (device_ > peak_) {
    peak_ = device_;
    peak_op_ = op.name;
    live_at_peak_ = live_;
  }
  return {};
}

Result<void> Ledger::issue(const plan::Op& op) {
  if (const auto sends = plan::effects(plan_, op).sends) {
    Calls& calls = now_.calls[static_cast<std::size_t>(sends->kind)];
    ++calls.count;
    calls.bytes += sends->bytes;
  }
  if (std::holds_alternative<plan::Copy>(op.action) && op.operands.size() == 2 && op.operands[1].writes()) {
    const Memory from = plan_.buffer(op.operands[0].buffer).memory, to = plan_.buffer(op.operands[1].buffer).memory;
    if (from == Memory::host && to == Memory::device) now_.to_device += Bytes{op.operands[0].bytes};
    if (from == Memory::device && to == Memory::host) now_.to_host += Bytes{op.operands[0].bytes};
  }
  return {};
}

Result<void> Ledger::release(const plan::Op&, std::span<const BufferId> buffers) {
  for (BufferId id : buffers) add(id, false);
  now_.model_data_peak = std::max(now_.model_data_peak, now_.model_data[static_cast<std::size_t>(Memory::device)]);
  ++done_;
  note_marks();
  return {};
}

Result<void> Ledger::end_phase(const plan::PhaseOps&) {
  return {};
}

void Ledger::note_marks() {
  for (const Mark& mark : marks_) {
    if (mark.phase != phase_->phase || mark.ops != done_) continue;
    now_.name = mark.name;
    moments_.push_back(now_);
  }
}

std::vector<LedgerHolder> Ledger::holders_at_peak() const {
  std::vector<LedgerHolder> holders;
  for (std::size_t b = 0; b < live_at_peak_.size(); ++b) {
    const plan::Buffer& buffer = plan_.buffers[b];
    if (live_at_peak_[b] && buffer.memory == Memory::device)
      holders.push_back({std::string(buffer.name), buffer.category, buffer.bytes});
  }
  std::stable_sort(holders.begin(), holders.end(),
                   [](const LedgerHolder& a, const LedgerHolder& b) { return a.bytes > b.bytes; });
  return holders;
}

}  // namespace shard::like
