// The CPU interpreter of a plan.
#include "executor/cpu/backend.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "executor/cpu/disk_ops.h"
#include "executor/rank/request_of.h"
#include "sim/ir/effects.h"

namespace shard::cpu {
namespace {

using executor::now_ns;
using plan::Op;
using plan::Operand;

#ifdef SHARDSCOPE_GUARDS
constexpr bool kHasGuards = true;
#else
constexpr bool kHasGuards = false;
#endif

/// Fills the alignment gap behind a buffer; a kernel that writes past its end is found at release.
constexpr std::byte kGuard{0xA5};

std::span<std::byte> gap(const Memories& memories, const plan::Buffer& buffer) {
  const auto size = static_cast<std::size_t>(plan::arena_bytes(buffer).count() - buffer.bytes.count());
  return {memories.at(buffer.memory, buffer.offset + buffer.bytes.count()), size};
}

[[nodiscard]] bool overlap(const std::byte* a, std::int64_t a_bytes, const std::byte* b, std::int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

Backend::Backend(const plan::Plan& plan, Communicator& communicator, const Memories& memories, DataSource& data,
                 ThreadPool& pool, const executor::BackendOptions& options)
    : plan_(plan),
      position_(plan::position(plan.topology, communicator.rank().value)),
      communicator_(communicator),
      memories_(memories),
      pool_(pool),
      observer_(options.observer),
      recorder_(options.recorder),
      seed_(options.seed),
      books_(plan, options.observer),
      host_ops_(plan, communicator.rank(), data, pool, options) {
  assert(static_cast<std::int64_t>(memories.device().size()) >= plan.arena_bytes[0].count());
}

std::byte* Backend::at(const Operand& operand) const {
  const plan::Buffer& buffer = plan_.buffer(operand.buffer);
  return memories_.at(buffer.memory, buffer.offset + operand.offset_on(position_.shard));
}

Result<void> Backend::begin_phase(const plan::PhaseOps&) {
  books_.begin_phase();
  communication_time_ = {};
  if (observer_ != nullptr) between_since_ns_ = now_ns();
  return {};
}

void Backend::tell_between(std::int64_t now) {
  if (observer_ != nullptr) observer_->host(executor::HostWork::between, between_since_ns_, now);
}

Result<void> Backend::acquire(const Op& op, std::span<const BufferId> buffers) {
  // Bytes that a collective still uses are given to the next owner only once it has landed.
  for (OpId dependency : op.dependencies)
    if (Result<void> r = wait_for(dependency); !r) return r;
  if (Result<void> r = books_.acquire(op, buffers); !r) return r;
  if constexpr (kHasGuards)
    for (BufferId id : buffers)
      if (Result<void> r = set_guard(plan_.buffer(id)); !r) return r;
  return {};
}

Result<void> Backend::release(const Op& op, std::span<const BufferId> buffers) {
  if constexpr (kHasGuards)
    for (BufferId id : buffers)
      if (Result<void> r = check_guard(op, plan_.buffer(id)); !r) return r;
  return books_.release(op, buffers);
}

Result<void> Backend::set_guard(const plan::Buffer& buffer) {
  if (buffer.memory == Memory::disk) return {};
  const std::span<std::byte> guard = gap(memories_, buffer);
  // What stream order alone gives on, from one collective to the next, may still be read by peers.
  const auto uses_guard = [&](const Flight& flight) {
    return std::ranges::any_of(flight.op->operands, [&](const Operand& o) {
      return overlap(at(o), o.bytes, guard.data(), std::ssize(guard));
    });
  };
  while (std::ranges::any_of(flights_, uses_guard))
    if (Result<void> r = wait_for(flights_.front().op->id); !r) return r;
  std::ranges::fill(guard, kGuard);
  return {};
}

Result<void> Backend::check_guard(const Op& op, const plan::Buffer& buffer) const {
  if (buffer.memory == Memory::disk) return {};
  if (std::ranges::all_of(gap(memories_, buffer), [](std::byte b) { return b == kGuard; })) return {};
  return Error{.code = Errc::internal,
               .what = "something wrote past the end of buffer '" + std::string(buffer.name) + "'",
               .where = "rank " + std::to_string(communicator_.rank().value) + " op " + std::to_string(op.id.value),
               .help = {}};
}

Result<void> Backend::issue(const Op& op) {
  if (Result<void> r = books_.check_operands(op, position_.shard, communicator_.rank()); !r) return r;
  if (const auto* call = std::get_if<plan::Communicate>(&op.action)) return start(op, *call);
  const std::int64_t begin = now_ns();
  tell_between(begin);
  if (recorder_ != nullptr) recorder_->begun(op, begin);
  if (const auto* c = std::get_if<plan::Compute>(&op.action)) {
    compute(op, *c);
  } else {
    operands_.clear();
    const bool disk = touches_disk(plan_, op);
    for (const Operand& o : op.operands) operands_.push_back(memory_of(o) == Memory::disk ? nullptr : at(o));
    if (Result<void> r = disk ? run_on_disk(plan_, position_, memories_, op, operands_, host_ops_.state())
                              : host_ops_.run(op, operands_);
        !r)
      return r;
  }
  if (observer_ == nullptr && recorder_ == nullptr) return {};
  between_since_ns_ = now_ns();
  if (recorder_ != nullptr) recorder_->ended(op, between_since_ns_);
  if (observer_ != nullptr) observer_->finished({.op = &op, .begin_ns = begin, .end_ns = between_since_ns_});
  return {};
}

Result<void> Backend::start(const Op& op, const plan::Communicate& call) {
  static_assert(plan::kCollectivesAtOnce <= static_cast<std::size_t>(CommLimits{}.in_flight));
  if (Result<void> r = wait_for(call.behind); !r) return r;
  const executor::HostStretch stretch(observer_, executor::HostWork::start);
  const auto offset = [&](std::int32_t operand) {
    return at(op.operands[static_cast<std::size_t>(operand)]) - memories_.device().data();
  };
  const Result<Ticket> ticket =
      communicator_.start(executor::request_of(plan_, op, call, communicator_.rank(), segments_, offset));
  if (!ticket) return ticket.error();
  flights_.push_back({.op = &op, .ticket = *ticket, .begin_ns = now_ns()});
  if (recorder_ != nullptr)
    recorder_->started(op, call, executor::full_bytes(plan_, op, call), flights_.back().begin_ns);
  return {};
}

void Backend::land() {
  const Flight& flight = flights_.front();
  const std::int64_t end = now_ns();
  if (recorder_ != nullptr) recorder_->landed(*flight.op, std::get<plan::Communicate>(flight.op->action), end);
  const std::int64_t transfer =
      std::min<std::int64_t>(communicator_.moving_time(flight.ticket).count(), end - flight.begin_ns);
  const std::int64_t waiting = end - flight.begin_ns - transfer;
  communication_time_.transfer_ns += transfer;
  communication_time_.waiting_ns += waiting;
  if (observer_ != nullptr)
    observer_->finished({.op = flight.op, .begin_ns = flight.begin_ns, .end_ns = end, .waiting_ns = waiting});
  flights_.pop_front();
}

Result<void> Backend::wait_for(OpId op) {
  const auto last = std::ranges::find(flights_, op, [](const Flight& f) { return f.op->id; });
  // Edges count on stream order: that an op has finished says that all before it on its stream have.
  if (last == flights_.end()) return {};
  const executor::HostStretch stretch(observer_, executor::HostWork::wait);
  for (auto left = last - flights_.begin() + 1; left > 0; --left) {
    if (const Op& oldest = *flights_.front().op; recorder_ != nullptr)
      recorder_->waiting(oldest, std::get<plan::Communicate>(oldest.action), now_ns());
    if (Result<void> r = communicator_.wait(flights_.front().ticket); !r) return r;
    land();
  }
  return {};
}

Result<void> Backend::poll() {
  while (!flights_.empty()) {
    const Result<bool> done = communicator_.poll(flights_.front().ticket);
    if (!done) return done.error();
    if (!*done) return {};
    land();
  }
  return {};
}

Result<void> Backend::end_phase(const plan::PhaseOps&) {
  while (!flights_.empty())
    if (Result<void> r = wait_for(flights_.front().op->id); !r) return r;
  if (observer_ != nullptr) tell_between(now_ns());
  return {};
}

float Backend::loss() const {
  float value = 0;
  std::memcpy(&value, memories_.at(Memory::device, plan_.buffer(plan_.loss).offset), sizeof value);
  return value;
}

std::optional<plan::ControlBlock> Backend::control() const {
  if (!plan_.control.valid()) return std::nullopt;
  plan::ControlBlock block;
  std::memcpy(&block, memories_.at(Memory::device, plan_.buffer(plan_.control).offset), sizeof block);
  return block;
}

}  // namespace shard::cpu
