// What ops do to host memory.
#include "executor/cpu/host_ops.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "executor/cpu/control.h"
#include "executor/cpu/kernels/elementwise.h"
#include "executor/cpu/kernels/finite.h"
#include "executor/cpu/kernels/init.h"
#include "executor/cpu/kernels/optimizer.h"
#include "executor/cpu/whole_runs.h"
#include "executor/numeric/finite.h"

namespace shard::cpu {
namespace {

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

}  // namespace

HostOps::HostOps(const plan::Plan& plan, Rank rank, DataSource& data, ThreadPool& pool,
                 const executor::BackendOptions& options)
    : plan_(plan),
      position_(plan::position(plan.topology, rank.value)),
      rank_(rank),
      data_(data),
      pool_(pool),
      options_(options),
      state_(plan, position_, options_) {}

template <class Run>
void HostOps::in_pieces(std::int64_t n, const Run& run) const {
  constexpr std::int64_t kPiece = std::int64_t{1} << 24;
  for (std::int64_t begin = 0; begin < n; begin += kPiece) {
    run(begin, std::min(kPiece, n - begin));
    moved();
  }
}

Result<void> HostOps::run(const plan::Op& op, std::span<std::byte* const> at) {
  const On on{op, at};
  if (const auto* batch = std::get_if<plan::LoadBatch>(&op.action)) return load_batch(on, *batch);
  if (const auto* first = std::get_if<plan::Initialize>(&op.action)) return initialize(on, *first);
  if (const auto* birth = std::get_if<plan::ZeroState>(&op.action)) return born(on, *birth);
  const auto elsewhere = [] { assert(false && "computation and collectives are the backend's own"); };
  std::visit(plan::on{[&](const plan::Compute&) { elsewhere(); }, [&](const plan::Communicate&) { elsewhere(); },
                      [&](const plan::LoadBatch&) {}, [&](const plan::Initialize&) {},  // above
                      [&](const plan::LoadScalars&) { load_scalars(on); },
                      [&](const plan::Accumulate&) {
                        in_pieces(count(on, 0), [&](std::int64_t begin, std::int64_t n) {
                          add_into(pool_, n, elements(on, 1).from(begin), elements(on, 0).from(begin));
                        });
                      },
                      [&](const plan::ZeroState&) {}, [&](const plan::OptimizerStep& a) { optimizer_step(on, a); },
                      [&](const plan::MeanLoss&) { mean_loss(on); },
                      [&](const plan::Copy&) {
                        in_pieces(count(on, 0), [&](std::int64_t begin, std::int64_t n) {
                          convert_copy(pool_, n, elements(on, 0).from(begin), elements(on, 1).from(begin));
                        });
                      },
                      [&](const plan::Digest& a) { digest_flat(on, a); },
                      [&](const plan::BeginControl&) { begin_control(on); },
                      [&](const plan::InspectGradient& a) { inspect(on, a); },
                      [&](const plan::Decide& a) { decide(on, a); }, [&](const plan::Absent&) {},
                      [&](const plan::Save& a) {
                        in_pieces(op.operands[0].bytes, [&](std::int64_t begin, std::int64_t n) {
                          state_.save(a, dtype(on, 0), begin, bytes_of(on, 0, begin, n));
                        });
                      }},
             op.action);
  return {};
}

void HostOps::zero_all(const On& on, std::size_t i) const {
  in_pieces(count(on, i), [&](std::int64_t begin, std::int64_t n) { zero(pool_, n, elements(on, i).from(begin)); });
}

Result<void> HostOps::load_batch(const On& on, const plan::LoadBatch& batch) {
  const std::int64_t number = step_ * plan_.micro_batches + batch.micro_batch(position_.shard, position_.replica);
  const auto bytes = [&](std::size_t i) {
    return std::span(on.at[i], static_cast<std::size_t>(on.op.operands[i].bytes));
  };
  return data_.fill(pool_, number, bytes(0), bytes(1));
}

Result<void> HostOps::first_values(model::ParamId param, std::int64_t first, std::int64_t n, float* out) {
  if (options_.first_values) {
    moved();
    return options_.first_values(param, first, {out, static_cast<std::size_t>(n)});
  }
  const RandomKey key{options_.seed, RandomStream::parameter, static_cast<std::uint64_t>(param.value)};
  in_pieces(n, [&](std::int64_t begin, std::int64_t part) {
    initialize_range(pool_, plan_.model->initialization[static_cast<std::size_t>(param.value)], key, first + begin,
                     part, out + begin);
  });
  return {};
}

Result<void> HostOps::initialize(const On& on, const plan::Initialize& a) {
  const plan::Flat& flat = plan_.flats[static_cast<std::size_t>(a.flat)];
  const Elems begin = a.first_elem + position_.shard * a.rank_stride_elems;
  const ElemRange range{begin, begin + a.elems};
  const Elements out = elements(on, 0);
  Result<void> done;
  zero_all(on, 0);  // padding
  for (const plan::ParamRange& p : plan::param_ranges(flat, range.begin, range.end)) {
    const Elements first = out.from((p.offset - range.begin).count());
    for_each_whole_run(plan_, position_, p, [&](std::int64_t local, std::int64_t whole, std::int64_t n) {
      const Elements at_run = first.from(local - p.first.count());
      if (first.dtype() == Dtype::f32) {
        if (done) done = first_values(p.param, whole, n, at_run.as<float>());
        return;
      }
      // What masters hold, rounded: made in fp32, a tile at a time.
      std::array<float, 4096> tile;
      const auto size = static_cast<std::int64_t>(tile.size());
      for (std::int64_t made = 0; done && made < n; made += size) {
        const std::int64_t part = std::min(size, n - made);
        done = first_values(p.param, whole + made, part, tile.data());
        if (done) convert_copy(pool_, part, tile.data(), at_run.from(made));
      }
    });
  }
  return done;
}

Result<void> HostOps::born(const On& on, const plan::ZeroState& a) {
  for (std::size_t i = 0; i < on.op.operands.size(); ++i) {
    if (!state_.goes_on()) {
      zero_all(on, i);
      continue;
    }
    Result<void> read;
    in_pieces(on.op.operands[i].bytes, [&](std::int64_t begin, std::int64_t n) {
      if (read) read = state_.born(a, i, begin, bytes_of(on, i, begin, n));
    });
    if (!read) return read;
  }
  return {};
}

void HostOps::optimizer_step(const On& on, const plan::OptimizerStep& a) {
  const plan::Flat& flat = plan_.flats[static_cast<std::size_t>(a.flat)];
  const Elems begin{a.first_elem.count() + position_.shard * a.rank_stride_elems.count()};
  float* parameters = floats(on, 0);
  const ConstElements gradients = elements(on, 1);
  const auto* scalars = reinterpret_cast<const OptimizerScalars*>(on.at[2]);
  auto* counts = reinterpret_cast<std::int32_t*>(on.at[3]);
  float multiplier = a.factor;
  if (plan_.control.valid()) {
    const plan::ControlBlock& control = as<plan::ControlBlock>(on, on.op.operands.size() - 1).front();
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
    bool finite = true;
    switch (a.kind) {
      case plan::OptimizerKind::sgd:
        finite = sgd(pool_, own, n, gradients.from(at_elem), parameters + at_elem, nullptr, multiplier);
        break;
      case plan::OptimizerKind::adam:
        finite = adam(pool_, own, &count, n, gradients.from(at_elem), parameters + at_elem, floats(on, 4) + at_elem,
                      floats(on, 5) + at_elem, multiplier);
        break;
      case plan::OptimizerKind::adamw:
        finite = adamw(pool_, own, &count, n, gradients.from(at_elem), parameters + at_elem, floats(on, 4) + at_elem,
                       floats(on, 5) + at_elem, multiplier);
        break;
    }
    if (!finite) note_not_finite(step_, p.param);
    moved();
  }
}

void HostOps::note_not_finite(std::int64_t step, model::ParamId param) {
  if (!health_.state) health_.state = {.step = step, .param = param};
}

void HostOps::load_scalars(const On& on) {
  as<OptimizerScalars>(on, 0).front() = options_.scalars;
  if (on.op.operands.size() < 2) return;
  plan::ControlKnobs knobs = options_.knobs;
  const executor::InjectedOverflow here{.rank = rank_.value, .step = step_};
  knobs.inject_overflow = std::ranges::find(options_.inject, here) != options_.inject.end() ? 1 : 0;
  as<plan::ControlKnobs>(on, 1).front() = knobs;
}

void HostOps::begin_control(const On& on) {
  const bool scaler = on.op.operands.size() > 2;
  cpu::begin_control(as<plan::ControlKnobs>(on, 0).front(), as<GradientFacts>(on, 1),
                     scaler ? &as<plan::ScalerState>(on, 2).front() : nullptr, scaler ? floats(on, 3) : nullptr);
}

void HostOps::inspect(const On& on, const plan::InspectGradient& a) {
  const ConstElements gradient = elements(on, 0);
  GradientFacts& facts = as<GradientFacts>(on, 1).front();
  if (a.of == plan::InspectGradient::Of::local)
    inspect_local(pool_, plan_, a.flat, on.op.id, gradient, facts);
  else
    inspect_stepped(pool_, plan_, position_.tensor, a.flat, a.first_elem + position_.shard * a.rank_stride_elems,
                    a.elems, gradient, facts);
}

void HostOps::decide(const On& on, const plan::Decide& a) {
  plan::ScalerState* state = on.op.operands.size() > 3 ? &as<plan::ScalerState>(on, 3).front() : nullptr;
  as<plan::ControlBlock>(on, 2).front() =
      cpu::decide(plan_, a, as<GradientFacts>(on, 0), as<plan::ControlKnobs>(on, 1).front(), state);
}

void HostOps::mean_loss(const On& on) {
  const float* losses = floats(on, 0);
  const std::int64_t shards = plan_.topology.shard_degree;
  const std::int64_t micro_steps = plan_.micro_batches / plan_.topology.data_parallel();
  double sum = 0;
  health_.lost_micro_batch = -1;
  for (std::int64_t m = 0; m < plan_.micro_batches; ++m) {
    const float loss = losses[plan_.dealing.place(m, micro_steps, shards)];
    if (!is_finite(loss) && health_.lost_micro_batch < 0) health_.lost_micro_batch = m;
    sum += static_cast<double>(loss);
  }
  *floats(on, 1) = static_cast<float>(sum / static_cast<double>(plan_.micro_batches));
}

void HostOps::note_shown(model::ParamId param, plan::Digest::Content content, Dtype dtype,
                         std::span<const std::byte> elements) {
  if (content != plan::Digest::Content::parameter && content != plan::Digest::Content::master) return;
  const ConstElements shown(elements.data(), dtype);
  with_type(dtype, [&]<class T>(T) {
    if (!finite_range(static_cast<std::int64_t>(elements.size() / sizeof(T)), shown.as<T>()))
      note_not_finite(step_ - 1, param);
  });
}

void HostOps::digest_flat(const On& on, const plan::Digest& a) {
  // Ranks that work on other data have the same: one of them hashes it.
  const bool hashes = position_.data == 0;
  if (!hashes && !options_.read_on_every_rank) return;
  const std::byte* content = on.at[0];
  const plan::Flat& flat = plan_.flats[static_cast<std::size_t>(a.flat)];
  const std::int64_t size = bytes_per_element(plan_.buffer(on.op.operands[0].buffer).dtype);
  for (const plan::Flat::Item& item : flat.items) {
    if (a.param.valid() && item.param != a.param) continue;
    const std::int64_t offset = a.param.valid() ? 0 : item.offset.count() * size;
    const std::span<const std::byte> elements(content + offset, static_cast<std::size_t>(item.elems.count() * size));
    note_shown(item.param, a.content, dtype(on, 0), elements);
    if (hashes) digest_.add(item.param.value, static_cast<int>(a.content), elements);
    moved();
    if (options_.read_state) options_.read_state(item.param, a.content, elements);
    moved();
  }
}

}  // namespace shard::cpu
