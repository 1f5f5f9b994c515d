// The CPU interpreter of a plan.
#include "executor/cpu/backend.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "executor/cpu/kernels/elementwise.h"
#include "executor/cpu/kernels/init.h"
#include "sim/ir/effects.h"
#include "sim/target/comm_workspace.h"

namespace shard::cpu {
namespace {

using plan::on;
using plan::Op;
using plan::Operand;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The first values of n elements of a parameter from number `first` on.
void initialize_range(ThreadPool& pool, const model::Initialization& how, const RandomKey& key, std::int64_t first,
                      std::int64_t n, float* out) {
  using Kind = model::Initialization::Kind;
  switch (how.kind) {
    case Kind::zeros: fill(pool, n, 0.0F, out); break;
    case Kind::ones: fill(pool, n, 1.0F, out); break;
    case Kind::normal: random_normal(pool, key, first, n, how.scale, out); break;
    case Kind::uniform: random_uniform(pool, key, first, n, how.scale, out); break;
  }
}

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
                 ThreadPool& pool, const BackendOptions& options)
    : plan_(plan),
      position_(plan::position(plan.topology, communicator.rank().value)),
      communicator_(communicator),
      memories_(memories),
      data_(data),
      pool_(pool),
      options_(options) {
  assert(static_cast<std::int64_t>(memories.device().size()) >= plan.arena_bytes[0].count());
}

std::byte* Backend::at(const Operand& operand) const {
  const plan::Buffer& buffer = plan_.buffer(operand.buffer);
  return memories_.at(buffer.memory, buffer.offset + operand.offset_on(position_.shard));
}

Result<void> Backend::begin_phase(const plan::PhaseOps&) {
  for (ArenaLedger& ledger : ledgers_) ledger.reset_peaks();
  communication_time_ = {};
  return {};
}

Result<void> Backend::acquire(const Op& op, std::span<const BufferId> buffers) {
  // Bytes that a collective still uses are given to the next owner only once it has landed.
  for (OpId dependency : op.dependencies)
    if (Result<void> r = wait_for(dependency); !r) return r;
  for (BufferId id : buffers) {
    const plan::Buffer& buffer = plan_.buffer(id);
    if (Result<void> r =
            ledger_of(buffer).acquire(id, Bytes{buffer.offset}, plan::arena_bytes(buffer), buffer.category);
        !r)
      return r;
    if constexpr (kHasGuards)
      if (Result<void> r = set_guard(buffer); !r) return r;
    if (options_.observer != nullptr)
      options_.observer->memory({.op = &op, .buffer = id, .acquire = true, .time_ns = now_ns()});
  }
  for (std::size_t m = 0; m < ledgers_.size(); ++m) {
    peaks_[m] = std::max(peaks_[m], ledgers_[m].extent());
    live_peaks_[m] = std::max(live_peaks_[m], ledgers_[m].live_peak());
  }
  return {};
}

Result<void> Backend::release(const Op& op, std::span<const BufferId> buffers) {
  for (BufferId id : buffers) {
    const plan::Buffer& buffer = plan_.buffer(id);
    if (Result<void> r = ledger_of(buffer).release(id); !r) return r;
    if constexpr (kHasGuards)
      if (Result<void> r = check_guard(op, buffer); !r) return r;
    if (options_.observer != nullptr)
      options_.observer->memory({.op = &op, .buffer = id, .acquire = false, .time_ns = now_ns()});
  }
  live_after_[static_cast<std::size_t>(op.part)] = phase_ledger(Memory::device).live_by_category();
  return {};
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

Result<void> Backend::check_operands(const Op& op) const {
  for (const Operand& o : op.operands) {
    const plan::Buffer& buffer = plan_.buffer(o.buffer);
    const std::int64_t begin = o.offset_on(position_.shard);
    const bool live = phase_ledger(buffer.memory).is_live(o.buffer);
    if (live && begin >= 0 && begin + o.bytes <= buffer.bytes.count()) continue;
    return Error{.code = Errc::internal,
                 .what = "op '" + std::string(op.name) + "' touches bytes [" + std::to_string(begin) + ", " +
                         std::to_string(begin + o.bytes) + ") of buffer '" + std::string(buffer.name) + "', which " +
                         (live ? "has " + std::to_string(buffer.bytes.count()) : "is not live"),
                 .where = "rank " + std::to_string(communicator_.rank().value) + " op " + std::to_string(op.id.value),
                 .help = {}};
  }
  return {};
}

Result<void> Backend::load_batch(const Op& op, const plan::LoadBatch& batch) {
  const std::int64_t number = step_ * plan_.micro_batches + batch.micro_batch(position_.shard, position_.replica);
  const auto bytes = [&](std::size_t i) {
    return std::span(at(op.operands[i]), static_cast<std::size_t>(op.operands[i].bytes));
  };
  return data_.fill(pool_, number, bytes(0), bytes(1));
}

Result<void> Backend::issue(const Op& op) {
  if (Result<void> r = check_operands(op); !r) return r;
  if (const auto* call = std::get_if<plan::Communicate>(&op.action)) return start(op, *call);
  const std::int64_t begin = now_ns();
  if (touches_disk(op)) {
    if (Result<void> r = use_disk(op); !r) return r;
    if (options_.observer != nullptr) options_.observer->finished({.op = &op, .begin_ns = begin, .end_ns = now_ns()});
    return {};
  }
  if (const auto* batch = std::get_if<plan::LoadBatch>(&op.action))
    if (Result<void> r = load_batch(op, *batch); !r) return r;
  std::visit(
      on{[&](const plan::Compute& c) { compute(op, c); }, [&](const plan::LoadBatch&) {},  // above
         [&](const plan::LoadScalars&) { load_scalars(op); }, [&](const plan::Communicate&) {},
         [&](const plan::Accumulate&) {
           add_into(pool_, count(op.operands[0]), elements(op.operands[1]), elements(op.operands[0]));
         },
         [&](const plan::Initialize& a) { initialize(op, a); },
         [&](const plan::ZeroState&) {
           for (const Operand& o : op.operands) zero(pool_, count(o), elements(o));
         },
         [&](const plan::OptimizerStep& a) { optimizer_step(op, a); }, [&](const plan::MeanLoss&) { mean_loss(op); },
         [&](const plan::Copy&) {
           convert_copy(pool_, count(op.operands[0]), elements(op.operands[0]), elements(op.operands[1]));
         },
         [&](const plan::Digest& a) { digest_flat(op, a); }, [&](const plan::BeginControl&) { begin_control(op); },
         [&](const plan::InspectGradient& a) { inspect(op, a); }, [&](const plan::Decide& a) { decide(op, a); },
         [&](const plan::Absent&) {}},
      op.action);
  if (options_.observer != nullptr) options_.observer->finished({.op = &op, .begin_ns = begin, .end_ns = now_ns()});
  return {};
}

bool Backend::touches_disk(const Op& op) const {
  return std::ranges::any_of(op.operands, [&](const Operand& o) { return memory_of(o) == Memory::disk; });
}

Result<void> Backend::use_disk(const Op& op) {
  const auto offset = [&](const Operand& o) { return plan_.buffer(o.buffer).offset + o.offset_on(position_.shard); };
  if (std::holds_alternative<plan::ZeroState>(op.action)) {
    for (const Operand& o : op.operands)
      if (Result<void> r = memories_.zero_disk(offset(o), o.bytes); !r) return r;
    return {};
  }
  assert(std::holds_alternative<plan::Copy>(op.action) && "nothing else touches the disk (P24)");
  const Operand& from = op.operands[0];
  const Operand& to = op.operands[1];
  const auto bytes = static_cast<std::size_t>(from.bytes);
  if (memory_of(from) == Memory::disk) return memories_.read_disk(offset(from), {at(to), bytes});
  return memories_.write_disk(offset(to), {at(from), bytes});
}

Result<void> Backend::start(const Op& op, const plan::Communicate& call) {
  static_assert(plan::kCollectivesAtOnce <= static_cast<std::size_t>(CommLimits{}.in_flight));
  if (Result<void> r = wait_for(call.behind); !r) return r;
  const auto offset = [&](std::int32_t operand) {
    return at(op.operands[static_cast<std::size_t>(operand)]) - memories_.device().data();
  };
  segments_.clear();
  static_assert(kCallSegments <= static_cast<std::size_t>(CommLimits{}.segments));
  const bool sharded = call.kind == Collective::all_gather || call.kind == Collective::reduce_scatter;
  for (const plan::Segment& s : call.segments)
    segments_.push_back({.shard_offset = sharded ? offset(s.shard_operand) : 0,
                         .full_offset = offset(s.full_operand),
                         .elems = s.elems});
  const RankGroup group = plan::members(plan_.topology, call.group, communicator_.rank().value);
  const Dtype dtype =
      plan_.buffer(op.operands[static_cast<std::size_t>(call.segments.front().full_operand)].buffer).dtype;
  CollectiveRequest request{.op = op.id,
                            .kind = call.kind,
                            .segments = segments_,
                            .dtype = dtype,
                            .group = group,
                            .root = Rank{group.rank_of(call.root)},
                            .workspace_offset = 0,
                            .workspace = Bytes{0}};
  if (call.workspace_operand >= 0) {
    request.workspace_offset = offset(call.workspace_operand);
    request.workspace = Bytes{op.operands[static_cast<std::size_t>(call.workspace_operand)].bytes};
  }
  const Result<Ticket> ticket = communicator_.start(request);
  if (!ticket) return ticket.error();
  flights_.push_back({.op = &op, .ticket = *ticket, .begin_ns = now_ns()});
  return {};
}

void Backend::land() {
  const Flight& flight = flights_.front();
  const std::int64_t end = now_ns();
  const std::int64_t transfer =
      std::min<std::int64_t>(communicator_.moving_time(flight.ticket).count(), end - flight.begin_ns);
  const std::int64_t waiting = end - flight.begin_ns - transfer;
  communication_time_.transfer_ns += transfer;
  communication_time_.waiting_ns += waiting;
  if (options_.observer != nullptr)
    options_.observer->finished({.op = flight.op, .begin_ns = flight.begin_ns, .end_ns = end, .waiting_ns = waiting});
  flights_.pop_front();
}

Result<void> Backend::wait_for(OpId op) {
  const auto last = std::ranges::find(flights_, op, [](const Flight& f) { return f.op->id; });
  // Edges count on stream order: that an op has finished says that all before it on its stream have.
  for (auto left = last == flights_.end() ? 0 : last - flights_.begin() + 1; left > 0; --left) {
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
  return {};
}

template <class Run>
void Backend::for_each_run(const plan::ParamRange& range, const Run& run) const {
  const model::TensorSplit& split = plan_.model->split;
  if (split.degree == 1) return run(range.first.count(), range.first.count(), range.elems.count());
  model::for_each_run(split.parameters[static_cast<std::size_t>(range.param.value)], split.degree, position_.tensor,
                      range.first.count(), range.elems.count(), run);
}

void Backend::initialize(const Op& op, const plan::Initialize& a) {
  const plan::Flat& flat = plan_.flats[static_cast<std::size_t>(a.flat)];
  const Elems begin = a.first_elem + position_.shard * a.rank_stride_elems;
  const ElemRange range{begin, begin + a.elems};
  const Elements out = elements(op.operands[0]);
  zero(pool_, count(op.operands[0]), out);  // padding
  for (const plan::ParamRange& p : plan::param_ranges(flat, range.begin, range.end)) {
    const model::Initialization& how = plan_.model->initialization[static_cast<std::size_t>(p.param.value)];
    const RandomKey key{options_.seed, RandomStream::parameter, static_cast<std::uint64_t>(p.param.value)};
    const Elements first = out.from((p.offset - range.begin).count());
    // Ranks that share a model have the elements that one rank alone would have there.
    for_each_run(p, [&](std::int64_t local, std::int64_t whole, std::int64_t n) {
      const Elements at_run = first.from(local - p.first.count());
      if (first.dtype() == Dtype::f32) {
        initialize_range(pool_, how, key, whole, n, at_run.as<float>());
        return;
      }
      // What masters hold, rounded: made in fp32, a tile at a time.
      std::array<float, 4096> tile;
      const auto size = static_cast<std::int64_t>(tile.size());
      for (std::int64_t done = 0; done < n; done += size) {
        const std::int64_t part = std::min(size, n - done);
        initialize_range(pool_, how, key, whole + done, part, tile.data());
        convert_copy(pool_, part, tile.data(), at_run.from(done));
      }
    });
  }
}

void Backend::optimizer_step(const Op& op, const plan::OptimizerStep& a) {
  const plan::Flat& flat = plan_.flats[static_cast<std::size_t>(a.flat)];
  const Elems begin{a.first_elem.count() + position_.shard * a.rank_stride_elems.count()};
  float* parameters = floats(op.operands[0]);
  const ConstElements gradients = elements(op.operands[1]);
  const auto* scalars = reinterpret_cast<const OptimizerScalars*>(at(op.operands[2]));
  auto* counts = reinterpret_cast<std::int32_t*>(at(op.operands[3]));
  float multiplier = a.factor;
  if (plan_.control.valid()) {
    const plan::ControlBlock& control = as<plan::ControlBlock>(op.operands.back()).front();
    if (control.skip != 0) return;
    multiplier *= control.multiplier;
  }
  for (const plan::ParamRange& p : plan::param_ranges(flat, begin, begin + a.elems)) {
    std::int32_t& count = counts[p.param.value];
    ++count;
    const std::int64_t at_elem = (p.offset - begin).count();
    const std::int64_t n = p.elems.count();
    OptimizerScalars own = *scalars;
    // Norm weights and biases are not decayed: they have one dimension.
    if (plan_.model->parameters[static_cast<std::size_t>(p.param.value)].shape.size() < 2) own.weight_decay = 0;
    switch (a.kind) {
      case plan::OptimizerKind::sgd:
        sgd(pool_, own, n, gradients.from(at_elem), parameters + at_elem, nullptr, multiplier);
        break;
      case plan::OptimizerKind::adam:
        adam(pool_, own, &count, n, gradients.from(at_elem), parameters + at_elem, floats(op.operands[4]) + at_elem,
             floats(op.operands[5]) + at_elem, multiplier);
        break;
      case plan::OptimizerKind::adamw:
        adamw(pool_, own, &count, n, gradients.from(at_elem), parameters + at_elem, floats(op.operands[4]) + at_elem,
              floats(op.operands[5]) + at_elem, multiplier);
        break;
    }
  }
}

void Backend::load_scalars(const Op& op) {
  as<OptimizerScalars>(op.operands[0]).front() = options_.scalars;
  if (op.operands.size() < 2) return;
  plan::ControlKnobs knobs = options_.knobs;
  const InjectedOverflow here{.rank = communicator_.rank().value, .step = step_};
  knobs.inject_overflow = std::ranges::find(options_.inject, here) != options_.inject.end() ? 1 : 0;
  as<plan::ControlKnobs>(op.operands[1]).front() = knobs;
}

void Backend::begin_control(const Op& op) {
  const bool scaler = op.operands.size() > 2;
  cpu::begin_control(as<plan::ControlKnobs>(op.operands[0]).front(), as<GradientFacts>(op.operands[1]),
                     scaler ? &as<plan::ScalerState>(op.operands[2]).front() : nullptr,
                     scaler ? floats(op.operands[3]) : nullptr);
}

void Backend::inspect(const Op& op, const plan::InspectGradient& a) {
  const ConstElements gradient = elements(op.operands[0]);
  GradientFacts& facts = as<GradientFacts>(op.operands[1]).front();
  if (a.of == plan::InspectGradient::Of::local)
    inspect_local(pool_, plan_, a.flat, op.id, gradient, facts);
  else
    inspect_stepped(pool_, plan_, position_.tensor, a.flat, a.first_elem + position_.shard * a.rank_stride_elems,
                    a.elems, gradient, facts);
}

void Backend::decide(const Op& op, const plan::Decide& a) {
  plan::ScalerState* state = op.operands.size() > 3 ? &as<plan::ScalerState>(op.operands[3]).front() : nullptr;
  as<plan::ControlBlock>(op.operands[2]).front() =
      cpu::decide(plan_, a, as<GradientFacts>(op.operands[0]), as<plan::ControlKnobs>(op.operands[1]).front(), state);
}

void Backend::mean_loss(const Op& op) {
  const float* losses = floats(op.operands[0]);
  const std::int64_t shards = plan_.topology.shard_degree;
  const std::int64_t micro_steps = plan_.micro_batches / plan_.topology.data_parallel();
  double sum = 0;
  for (std::int64_t m = 0; m < plan_.micro_batches; ++m)
    sum += static_cast<double>(losses[plan_.dealing.place(m, micro_steps, shards)]);
  *floats(op.operands[1]) = static_cast<float>(sum / static_cast<double>(plan_.micro_batches));
}

void Backend::digest_flat(const Op& op, const plan::Digest& a) {
  if (position_.data != 0) return;
  const std::byte* content = at(op.operands[0]);
  const plan::Flat& flat = plan_.flats[static_cast<std::size_t>(a.flat)];
  const std::int64_t size = bytes_per_element(plan_.buffer(op.operands[0].buffer).dtype);
  for (const plan::Flat::Item& item : flat.items) {
    if (a.param.valid() && item.param != a.param) continue;
    const std::int64_t offset = a.param.valid() ? 0 : item.offset.count() * size;
    digest_.add(item.param.value, static_cast<int>(a.content),
                {content + offset, static_cast<std::size_t>(item.elems.count() * size)});
  }
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

Bytes Backend::optimizer_state_bytes() const {
  Bytes total{0};
  const plan::PhaseOps* step = plan_.find(Phase::steady_step);
  for (const Op& op : step->ops) {
    const auto* a = std::get_if<plan::OptimizerStep>(&op.action);
    if (a == nullptr || op.operands.size() <= 4) continue;
    for (std::size_t i = 4; i < op.operands.size(); ++i)
      if (op.operands[i].writes()) total += Bytes{op.operands[i].bytes};
    const plan::Flat& flat = plan_.flats[static_cast<std::size_t>(a->flat)];
    const Elems begin{a->first_elem.count() + position_.shard * a->rank_stride_elems.count()};
    total += Bytes{4 * static_cast<std::int64_t>(plan::param_ranges(flat, begin, begin + a->elems).size())};
  }
  return total;
}

}  // namespace shard::cpu
