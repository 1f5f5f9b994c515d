// The loop's side of the GPU interpreter: phases, order, waiting.
#include "executor/cuda/backend/backend.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <new>
#include <utility>

#include "executor/comm/validate.h"
#include "executor/cuda/api/events.h"
#include "executor/cuda/backend/card_check.h"
#include "sim/target/alignment.h"
#include "traces/base/deadline.h"

namespace shard::cuda {

using plan::Op;
using plan::Operand;

namespace {

/// Those that the rank calls with, each once.
std::vector<RankGroup> groups_of(const plan::Plan& plan, Rank rank) {
  std::vector<RankGroup> groups;
  for (const plan::PhaseOps& phase : plan.phases)
    for (const Op& op : phase.ops) {
      const auto* const call = std::get_if<plan::Communicate>(&op.action);
      if (call == nullptr) continue;
      const RankGroup group = plan::members(plan.topology, call->group, rank.value);
      if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
    }
  return groups;
}

}  // namespace

Backend::Backend(DeviceRoom& room, const plan::Plan& plan, DeviceCommunicator& communicator,
                 const executor::BackendOptions& options)
    : room_(room),
      plan_(plan),
      product_alignment_(plan::product_alignment(plan.model->parameters, plan.target.storage)),
      communicator_(communicator),
      position_(plan::position(plan.topology, communicator.rank().value)),
      observer_(options.observer),
      times_ops_(options.observer != nullptr && options.observer->times_device_ops()),
      seed_(options.seed),
      births_(options.first_state ? Births::read : Births::zero),
      books_(plan, options.observer),
      flight_log_(plan, options.recorder) {
  const auto seat = static_cast<std::size_t>(communicator.seat());
  room.stuck.resize(std::max(room.stuck.size(), seat + 1));
  room.stuck[seat] = [this] { return stuck(); };
}

Backend::~Backend() {
  room_.stuck[static_cast<std::size_t>(communicator_.seat())] = nullptr;
  for (const Lane& lane : lanes_.all())
    if (lane.progress != nullptr) room_.api.free_pinned(reinterpret_cast<std::byte*>(lane.progress));
  if (!pinned_arena_.empty()) room_.api.free_pinned(pinned_arena_.data());
  if (step_word_ != nullptr) room_.api.free(reinterpret_cast<std::byte*>(step_word_));
  if (shown_ != nullptr) room_.api.free_pinned(reinterpret_cast<std::byte*>(shown_));
}

Result<std::unique_ptr<Backend>> Backend::make(DeviceRoom& room, const plan::Plan& plan,
                                               DeviceCommunicator& communicator, DataSource& data,
                                               cpu::ThreadPool& pool, const executor::BackendOptions& options,
                                               const std::string& disk_path) {
  std::unique_ptr<Backend> backend(new Backend(room, plan, communicator, options));
  if (Result<void> r = backend->prepare(data, pool, options, disk_path); !r) {
    backend->give_up(r.error());
    return r.error();
  }
  return backend;
}

void Backend::give_up(const Error& error) {
  if (error.code == Errc::retryable) room_.api.abandon();  // a deadline passed, here or elsewhere
  communicator_.give_up();
}

Result<void> Backend::prepare(DataSource& data, cpu::ThreadPool& pool, const executor::BackendOptions& options,
                              const std::string& disk_path) {
  Api& api = room_.api;
  const Witnessed witnessed(room_.witness, communicator_.rank(), OpId{});
  if (Result<void> r = check_card(plan_, communicator_.rank(), api.facts()); !r) return r;
  Result<Lanes> lanes = Lanes::make(api, plan_, communicator_.rank(), staging_by_stream(plan_, births_));
  if (!lanes) return lanes.error();
  lanes_ = std::move(*lanes);
  communicator_.use(lanes_[shard::Stream::communication].stream);
  communicator_.will_call(groups_of(plan_, communicator_.rank()));
  const auto bytes = [&](Memory m) { return plan_.arena_bytes[static_cast<std::size_t>(m)]; };
  const Result<std::span<std::byte>> device = communicator_.make_arena(bytes(Memory::device));
  if (!device) return device.error();
  if (const Bytes locked = bytes(Memory::pinned); locked.count() > 0) {
    const Result<std::byte*> pinned = api.allocate_pinned(locked);
    if (!pinned) return pinned.error();
    pinned_arena_ = {*pinned, static_cast<std::size_t>(locked.count())};
  }
  Result<cpu::Memories> memories = cpu::Memories::make(plan_, *device, disk_path, pinned_arena_);
  if (!memories) return memories.error();
  memories_ = std::move(*memories);
  const Result<std::byte*> word = api.allocate(Bytes{sizeof(std::int64_t)});
  if (!word) return word.error();
  step_word_ = reinterpret_cast<std::int64_t*>(*word);
  const Result<std::byte*> shown = api.allocate_pinned(Bytes{sizeof(Shown)});
  if (!shown) return shown.error();
  shown_ = new (*shown) Shown();
  host_ops_ = std::make_unique<cpu::HostOps>(plan_, communicator_.rank(), data, pool, options);
  host_ops_->note_in(room_.turns.progress());
  host_calls_ = std::make_unique<HostCalls>(room_, plan_, communicator_.rank(), memories_, *host_ops_);
  return prepare_events();
}

Result<void> Backend::prepare_events() {
  if (Result<void> r = make_events(room_.api, {&begin_}); !r) return r;
  for (const plan::PhaseOps& phase : plan_.phases)
    for (const Op& op : phase.ops)
      for (const OpId id : op.dependencies) {
        const auto [event, added] = event_of_.try_emplace(id.value, nullptr);
        if (!added) continue;
        if (Result<void> r = make_events(room_.api, {&event->second}); !r) return r;
      }
  return {};
}

std::byte* Backend::at(const Operand& operand) const {
  const plan::Buffer& buffer = plan_.buffer(operand.buffer);
  return memories_.at(buffer.memory, buffer.offset + operand.offset_on(position_.shard));
}

void Backend::set_step(std::int64_t step) {
  shown_->step = step;
  host_ops_->set_step(step);
}

std::optional<plan::ControlBlock> Backend::control() const {
  if (!plan_.control.valid()) return std::nullopt;
  return shown_->control;
}

Result<void> Backend::run(const plan::PhaseOps& phase) {
  phase_ = &phase;
  flight_log_.begin(phase);
  // Times of ops are those of events on streams, which a graph has none of.
  if (room_.graph == nullptr || times_ops_ || phase.phase != Phase::steady_step) return plan::run(phase, *this);
  if (room_.graph->is_captured()) return replay(phase);
  capturing_ = true;
  Result<void> captured = capture(phase);
  capturing_ = false;
  if (!captured) return captured;
  return launch(phase);
}

Result<void> Backend::capture(const plan::PhaseOps& phase) {
  const executor::HostStretch stretch(observer_, executor::HostWork::capture);
  const int seat = communicator_.seat();
  const Stream first = lanes_[shard::Stream::compute].stream;
  if (Result<void> r = room_.graph->begin(seat, first); !r) return r;
  const CollectiveTotals before = communicator_.totals();
  if (Result<void> r = plan::run(phase, *this); !r) return r;
  captured_calls_ = communicator_.totals() - before;
  return room_.graph->end(seat, first);
}

Result<void> Backend::replay(const plan::PhaseOps& phase) {
  start_phase();
  if (Result<void> r = keep_books(phase); !r) return r;
  return launch(phase);
}

Result<void> Backend::keep_books(const plan::PhaseOps& phase) {
  const executor::HostStretch stretch(observer_, executor::HostWork::books);
  communicator_.launched_again(captured_calls_);
  for (const Op& op : phase.ops) {
    if (Result<void> r = books_.acquire(op, op.acquire); !r) return r;
    if (Result<void> r = books_.release(op, op.release); !r) return r;
  }
  return {};
}

Result<void> Backend::launch(const plan::PhaseOps& phase) {
  {
    const executor::HostStretch stretch(observer_, executor::HostWork::launch);
    if (Result<void> r = room_.graph->launch(communicator_.seat()); !r) return r;
  }
  if (Result<void> r = wait_for_end(phase); !r) return r;
  return host_calls_->take_error();
}

void Backend::start_phase() {
  books_.begin_phase();
  place_ = 0;
  for (const Lane& lane : lanes_.all())
    if (lane.progress != nullptr) *lane.progress = -1;
  ended_ = 0;
  begin_ns_ = executor::now_ns();
}

Result<void> Backend::begin_phase(const plan::PhaseOps& phase) {
  start_phase();
  enqueued_since_ns_ = begin_ns_;
  // What a phase begins and ends with belongs to its first and to its last op.
  const Witnessed witnessed(phase.ops.empty() ? nullptr : room_.witness, communicator_.rank(),
                            phase.ops.empty() ? OpId{} : phase.ops.front().id);
  const Stream first = lanes_[shard::Stream::compute].stream;
  if (Result<void> r = room_.api.copy(first, step_word_, &shown_->step, sizeof(std::int64_t)); !r) return r;
  if (Result<void> r = room_.api.record(begin_, first); !r) return r;
  for (const Lane& lane : lanes_.all())
    if (lane.stream != nullptr && lane.stream != first)
      if (Result<void> r = room_.api.wait(lane.stream, begin_); !r) return r;
  return {};
}

Result<void> Backend::acquire(const Op& op, std::span<const BufferId> buffers) {
  return books_.acquire(op, buffers);
}

Result<void> Backend::release(const Op& op, std::span<const BufferId> buffers) {
  return books_.release(op, buffers);
}

Result<void> Backend::wait_for_dependencies(const Op& op, Stream stream) {
  for (const OpId id : op.dependencies)
    if (Result<void> r = room_.api.wait(stream, event_of_.at(id.value)); !r) return r;
  return {};
}

Result<void> Backend::issue(const Op& op) {
  const Witnessed witnessed(room_.witness, communicator_.rank(), op.id);
  if (Result<void> r = books_.check_operands(op, position_.shard, communicator_.rank()); !r) return r;
  const Lane& lane = lanes_[op.stream];
  if (Result<void> r = wait_for_dependencies(op, lane.stream); !r) return r;
  if (times_ops_) {
    timed_.push_back({.op = &op, .begin = nullptr, .end = nullptr});
    for (Event Timed::*event : {&Timed::begin, &Timed::end}) {
      if (spare_events_.empty()) {
        if (Result<void> r = make_events(room_.api, {&(timed_.back().*event)}); !r) return r;
        continue;
      }
      timed_.back().*event = spare_events_.back();
      spare_events_.pop_back();
    }
    if (Result<void> r = room_.api.record(timed_.back().begin, lane.stream); !r) return r;
  }
  const std::size_t timed = timed_.size();
  if (Result<void> r = enqueue(op, lane); !r) return r;
  if (times_ops_)
    if (Result<void> r = room_.api.record(timed_[timed - 1].end, lane.stream); !r) return r;
  if (const auto event = event_of_.find(op.id.value); event != event_of_.end())
    if (Result<void> r = room_.api.record(event->second, lane.stream); !r) return r;
  return mark(op, lane, place_++);
}

Result<void> Backend::mark(const Op& op, const Lane& lane, std::int32_t place) {
  const Range word{.begin = reinterpret_cast<const std::byte*>(lane.progress),
                   .bytes = sizeof(std::int32_t),
                   .access = model::Access::write};
  const OpNote note{.rank = communicator_.rank(), .op = op.id, .name = op.name, .ranges = {&word, 1}};
  if (Result<void> r = room_.api.begin_op(lane.stream, note); !r) return r;
  room_.kernels.mark(lane.stream, lane.progress, place);
  return room_.api.end_op(lane.stream);
}

Result<void> Backend::join_lanes(const plan::PhaseOps& phase) {
  const Witnessed witnessed(phase.ops.empty() ? nullptr : room_.witness, communicator_.rank(),
                            phase.ops.empty() ? OpId{} : phase.ops.back().id);
  const Stream first = lanes_[shard::Stream::compute].stream;
  for (const Lane& lane : lanes_.all()) {
    if (lane.stream == nullptr || lane.stream == first) continue;
    if (Result<void> r = room_.api.record(lane.end, lane.stream); !r) return r;
    if (Result<void> r = room_.api.wait(first, lane.end); !r) return r;
  }
  const auto show = [&](BufferId buffer, void* to, std::int64_t bytes) -> Result<void> {
    return room_.api.copy(first, to, memories_.at(Memory::device, plan_.buffer(buffer).offset), bytes);
  };
  if (books_.phase_ledger(Memory::device).is_live(plan_.loss))
    if (Result<void> r = show(plan_.loss, &shown_->loss, sizeof(float)); !r) return r;
  if (plan_.control.valid() && books_.phase_ledger(Memory::device).is_live(plan_.control))
    if (Result<void> r = show(plan_.control, &shown_->control, sizeof(plan::ControlBlock)); !r) return r;
  return room_.api.record(lanes_[shard::Stream::compute].end, first);
}

Result<void> Backend::end_phase(const plan::PhaseOps& phase) {
  if (Result<void> r = join_lanes(phase); !r) return r;
  if (capturing_) return {};
  if (observer_ != nullptr) observer_->host(executor::HostWork::enqueue, enqueued_since_ns_, executor::now_ns());
  if (Result<void> r = wait_for_end(phase); !r) return r;
  if (Result<void> r = host_calls_->take_error(); !r) return r;
  return report_times();
}

Result<void> Backend::wait_for_end(const plan::PhaseOps& phase) {
  const executor::HostStretch stretch(observer_, executor::HostWork::wait);
  IdleTime idle(room_.turns.progress());
  flight_log_.look(lanes_);
  const bool of_graph = room_.graph != nullptr && room_.graph->is_captured() && phase.phase == Phase::steady_step;
  while (true) {
    const Result<bool> done = of_graph ? room_.graph->is_done() : room_.api.is_done(lanes_[shard::Stream::compute].end);
    if (!done) return done.error();
    if (*done) return flight_log_.look(lanes_), Result<void>();
    note_progress();
    if (const auto waited = idle.lasted(); waited > room_.turns.deadline()) {
      const std::optional<Stuck> own = stuck();
      const bool for_others = own && own->collective;
      if (!for_others || waited > room_.turns.deadline() + communicator_.patience()) return hang(phase);
    }
    if (Result<void> r = communicator_.while_waiting(); !r) return with_place(r.error());
  }
}

void Backend::note_progress() {
  std::int64_t ended = 0;
  for (const Lane& lane : lanes_.all())
    if (lane.progress != nullptr) ended += *lane.progress + 1;  // grows with each word
  if (std::exchange(ended_, ended) == ended) return;
  room_.turns.progress().note();
  flight_log_.look(lanes_);
}

std::optional<Stuck> Backend::stuck() const {
  if (phase_ == nullptr) return std::nullopt;
  std::unordered_map<std::int32_t, std::size_t> place_of;
  const auto ended = [&](std::size_t place) {
    return *lanes_[phase_->ops[place].stream].progress >= static_cast<std::int32_t>(place);
  };
  std::array<bool, kStreamCount> waits{};  // streams with an op that has not ended
  for (std::size_t place = 0; place < phase_->ops.size(); ++place) {
    const Op& op = phase_->ops[place];
    place_of[op.id.value] = place;
    if (ended(place)) continue;
    bool& behind_another = waits[static_cast<std::size_t>(op.stream)];
    const bool ready =
        !behind_another && std::ranges::all_of(op.dependencies, [&](OpId id) { return ended(place_of.at(id.value)); });
    behind_another = true;
    if (!ready) continue;
    Stuck found{.rank = communicator_.rank(), .op = op.id, .what = {}, .collective = false};
    found.what = "op " + std::to_string(op.id.value) + " '" + std::string(op.name) + "'";
    if (const auto* call = std::get_if<plan::Communicate>(&op.action)) {
      found.collective = true;
      if (call->unit.valid()) found.what += " of " + plan_.units[static_cast<std::size_t>(call->unit.value)].name;
    }
    return found;
  }
  return std::nullopt;
}

Error Backend::with_place(Error error) const {
  const std::optional<Stuck> own = stuck();
  if (own && error.where == rank_name(own->rank)) error.where += " " + own->what;
  return error;
}

Error Backend::hang(const plan::PhaseOps& phase) const {
  // A collective may wait for a rank that hangs; what hangs is elsewhere then.
  std::optional<Stuck> first = stuck();
  for (const auto& of_rank : room_.stuck) {
    if (first && !first->collective) break;
    if (!of_rank) continue;
    if (std::optional<Stuck> other = of_rank(); other && (!first || !other->collective)) first = std::move(other);
  }
  const Rank rank = first ? first->rank : communicator_.rank();
  return {.code = Errc::retryable,
          .what = "the device did not finish a " + std::string(to_string(phase.phase)) + ": nothing moved for " +
                  in_seconds(room_.turns.deadline()) + (first ? ", and " + first->what + " has not ended" : ""),
          .where = rank_name(rank) + (first ? " op " + std::to_string(first->op.value) : ""),
          .help = "a larger --timeout helps if the device is only slow"};
}

Result<void> Backend::report_times() {
  const executor::HostStretch stretch(times_ops_ ? observer_ : nullptr, executor::HostWork::read_times);
  for (const Timed& timed : timed_) {
    const Result<double> begin = room_.api.seconds_between(begin_, timed.begin);
    if (!begin) return begin.error();
    const Result<double> end = room_.api.seconds_between(begin_, timed.end);
    if (!end) return end.error();
    const auto since = [&](double seconds) { return begin_ns_ + static_cast<std::int64_t>(seconds * 1e9); };
    observer_->finished({.op = timed.op, .begin_ns = since(*begin), .end_ns = since(*end)});
    spare_events_.push_back(timed.begin);
    spare_events_.push_back(timed.end);
  }
  timed_.clear();
  return {};
}

}  // namespace shard::cuda
