// Staged and unstaged host calls.
#include "executor/cuda/backend/host_calls.h"

#include <algorithm>

#include "executor/cpu/disk_ops.h"
#include "executor/rank/observer.h"

namespace shard::cuda {
namespace {

using plan::Operand;

Bytes staged_size(const Operand& operand) {
  return round_up(Bytes{operand.bytes}, plan::kAlignment);
}

bool in(const plan::Plan& plan, const Operand& operand, Memory memory) {
  return plan.buffer(operand.buffer).memory == memory;
}

}  // namespace

Bytes staging_bytes(const plan::Plan& plan, const plan::Op& op) {
  Bytes total{0};
  for (const Operand& o : op.operands)
    if (in(plan, o, Memory::device)) total += staged_size(o);
  return total;
}

bool runs_on_host(const plan::Plan& plan, const plan::Op& op, Births births) {
  const bool on_device =
      std::ranges::all_of(op.operands, [&](const Operand& o) { return in(plan, o, Memory::device); });
  const auto copies = [&] {  // between memories as they are
    return !on_device && plan.buffer(op.operands[0].buffer).dtype == plan.buffer(op.operands[1].buffer).dtype &&
           std::ranges::none_of(op.operands, [&](const Operand& o) { return in(plan, o, Memory::disk); });
  };
  return std::visit(
      plan::on{[](const plan::Compute&) { return false; }, [](const plan::Communicate&) { return false; },
               [](const plan::LoadBatch&) { return true; }, [](const plan::LoadScalars&) { return true; },
               [&](const plan::Accumulate&) { return !on_device; }, [](const plan::Initialize&) { return true; },
               [&](const plan::ZeroState&) { return !on_device || births == Births::read; },
               [&](const plan::OptimizerStep&) { return !on_device; }, [](const plan::MeanLoss&) { return true; },
               [&](const plan::Copy&) { return !on_device && !copies(); }, [](const plan::Digest&) { return true; },
               [](const plan::BeginControl&) { return true; }, [&](const plan::InspectGradient&) { return !on_device; },
               [](const plan::Decide&) { return true; }, [](const plan::Absent&) { return true; },
               [](const plan::Save&) { return true; }},
      op.action);
}

std::array<Bytes, kStreamCount> staging_by_stream(const plan::Plan& plan, Births births) {
  std::array<Bytes, kStreamCount> largest{};
  for (const plan::PhaseOps& phase : plan.phases)
    for (const plan::Op& op : phase.ops) {
      Bytes& bytes = largest[static_cast<std::size_t>(op.stream)];
      if (runs_on_host(plan, op, births)) bytes = std::max(bytes, staging_bytes(plan, op));
    }
  return largest;
}

Result<void> HostCalls::enqueue(Stream stream, const plan::Op& op, std::byte* staging) {
  Call& call = calls_[&op];  // the same in every step
  call = {.self = this, .op = &op, .at = {}};
  std::vector<std::byte*> there;
  for (const Operand& o : op.operands) {
    const plan::Buffer& buffer = plan_.buffer(o.buffer);
    const std::int64_t offset = buffer.offset + o.offset_on(position_.shard);
    there.push_back(buffer.memory == Memory::disk ? nullptr : memories_.at(buffer.memory, offset));
    call.at.push_back(there.back());
    if (buffer.memory != Memory::device) continue;
    call.at.back() = staging;
    staging += staged_size(o).count();
    if (o.reads())
      if (Result<void> r = api_.copy(stream, call.at.back(), there.back(), o.bytes); !r) return r;
  }
  if (Result<void> r = api_.call_host(stream, &HostCalls::run, &call); !r) return r;
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    if (in(plan_, op.operands[i], Memory::device) && op.operands[i].writes())
      if (Result<void> r = api_.copy(stream, there[i], call.at[i], op.operands[i].bytes); !r) return r;
  return {};
}

void HostCalls::run(void* call) {
  const Call& c = *static_cast<const Call*>(call);
  HostCalls& self = *c.self;
  const std::int64_t begin = self.witness_ == nullptr ? 0 : executor::now_ns();
  {
    const std::lock_guard lock(self.mutex_);
    if (!self.error_)
      if (Result<void> r = self.run(c); !r) self.error_ = r.error();
    if (self.error_) self.clear(c);
  }
  if (self.witness_ != nullptr) self.witness_->host_worked(self.rank_, c.op->id, begin, executor::now_ns());
}

void HostCalls::clear(const Call& call) const {
  for (std::size_t i = 0; i < call.at.size(); ++i) {
    const Operand& o = call.op->operands[i];
    if (o.writes() && in(plan_, o, Memory::device)) std::fill_n(call.at[i], o.bytes, std::byte{});
  }
}

Result<void> HostCalls::run(const Call& call) {
  if (cpu::touches_disk(plan_, *call.op))
    return cpu::run_on_disk(plan_, position_, memories_, *call.op, call.at, ops_.state(), &progress_);
  return ops_.run(*call.op, call.at);
}

Result<void> HostCalls::take_error() {
  const std::lock_guard lock(mutex_);
  if (!error_) return {};
  const Error error = *error_;
  error_.reset();
  return error;
}

}  // namespace shard::cuda
