// The ops that steer a step.
#include "executor/cpu/control.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>

#include "executor/cpu/kernels/finite.h"
#include "executor/cpu/kernels/ranges.h"
#include "executor/numeric/finite.h"

namespace shard::cpu {
namespace {

// Keys of non-finite elements, the smallest of which is "the first": what was looked at, then the place in the flat.
constexpr int kPlaceBits = 40;
constexpr std::int64_t kPlaces = std::int64_t{1} << kPlaceBits;

/// Where a parameter's elements lie in keys of local gradients: the last parameter of the flat first.
std::int64_t local_place(const plan::Flat& flat, const plan::Flat::Item& item) {
  return (flat.used - item.offset - item.elems).count();
}

struct Found {
  std::int32_t tensor = -1;
  std::int64_t element = -1;
};

Found find_stepped(const plan::Plan& plan, std::int64_t key) {
  const plan::Flat& flat = plan.flats[static_cast<std::size_t>(key >> kPlaceBits)];
  const Elems place{key % kPlaces};
  for (const plan::ParamRange& p : plan::param_ranges(flat, place, place + Elems{1}))
    return {p.param.value, p.first.count()};
  return {};
}

Found find_local(const plan::Plan& plan, std::int64_t key) {
  const OpId id{static_cast<std::int32_t>(key >> kPlaceBits)};
  const std::vector<plan::Op>& ops = plan.find(Phase::steady_step)->ops;
  const auto op = std::ranges::lower_bound(ops, id, {}, &plan::Op::id);
  assert(op != ops.end() && op->id == id);
  const plan::Flat& flat = plan.flats[static_cast<std::size_t>(std::get<plan::InspectGradient>(op->action).flat)];
  for (const plan::Flat::Item& item : flat.items)
    if (const std::int64_t at = key % kPlaces - local_place(flat, item); at >= 0 && at < item.elems.count())
      return {item.param.value, at};
  return {};
}

/// The element of the whole parameter that a member's element is.
std::int64_t whole_element(const plan::Plan& plan, std::int32_t member, const Found& found) {
  const model::TensorSplit& split = plan.model->split;
  if (split.degree == 1 || found.tensor < 0) return found.element;
  std::int64_t element = found.element;
  model::for_each_run(split.parameters[static_cast<std::size_t>(found.tensor)], split.degree, member % split.degree,
                      found.element, 1, [&](std::int64_t, std::int64_t whole, std::int64_t) { element = whole; });
  return element;
}

template <class T>
bool all_finite(ThreadPool& pool, std::int64_t n, const T* x) {
  std::atomic<bool> finite{true};
  run_ranges(pool, n, [&](std::int64_t begin, std::int64_t count) {
    if (!finite_range(count, x + begin)) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load();
}

}  // namespace

void begin_control(const plan::ControlKnobs& knobs, std::span<GradientFacts> facts, plan::ScalerState* state,
                   float* loss_scale) {
  std::ranges::fill(facts, GradientFacts{});
  if (state == nullptr) return;
  if (state->scale == 0.0F) state->scale = knobs.scaler.initial_scale;
  *loss_scale = knobs.inject_overflow != 0 ? std::numeric_limits<float>::infinity() : state->scale;
}

std::vector<InspectedPiece> stepped_pieces(const plan::Plan& plan, std::int32_t tensor_rank, std::int32_t flat,
                                           Elems begin, Elems elems) {
  if (tensor_rank == 0) return {{.first = 0, .elems = elems.count(), .first_key = flat * kPlaces + begin.count()}};
  std::vector<InspectedPiece> pieces;
  for (const plan::ParamRange& p :
       plan::param_ranges(plan.flats[static_cast<std::size_t>(flat)], begin, begin + elems)) {
    if (!plan.model->split.parameters[static_cast<std::size_t>(p.param.value)].cut()) continue;
    pieces.push_back({.first = (p.offset - begin).count(),
                      .elems = p.elems.count(),
                      .first_key = flat * kPlaces + p.offset.count()});
  }
  return pieces;
}

std::vector<InspectedPiece> local_pieces(const plan::Plan& plan, std::int32_t f, OpId op) {
  const plan::Flat& flat = plan.flats[static_cast<std::size_t>(f)];
  std::vector<InspectedPiece> pieces;
  for (const plan::Flat::Item& item : flat.items)
    pieces.push_back({.first = item.offset.count(),
                      .elems = item.elems.count(),
                      .first_key = op.value * kPlaces + local_place(flat, item)});
  return pieces;
}

void inspect_stepped(ThreadPool& pool, const plan::Plan& plan, std::int32_t tensor_rank, std::int32_t flat, Elems begin,
                     Elems elems, ConstElements gradient, GradientFacts& facts) {
  for (const InspectedPiece& piece : stepped_pieces(plan, tensor_rank, flat, begin, elems))
    square_sum_add(pool, gradient.from(piece.first), piece.elems, piece.first_key, facts);
}

void inspect_local(ThreadPool& pool, const plan::Plan& plan, std::int32_t flat, OpId op, ConstElements gradient,
                   GradientFacts& facts) {
  with_type(gradient.dtype(), [&]<class T>(T) {
    const T* x = gradient.as<T>();
    if (all_finite(pool, plan.flats[static_cast<std::size_t>(flat)].used.count(), x)) return;
    for (const InspectedPiece& piece : local_pieces(plan, flat, op))
      for (std::int64_t i = 0; i < piece.elems; ++i) {
        if (is_finite(x[piece.first + i])) continue;
        ++facts.nonfinite;
        facts.first_nonfinite = std::min(facts.first_nonfinite, piece.first_key + i);
      }
  });
}

plan::ControlBlock decide(const plan::Plan& plan, const plan::Decide& a, std::span<const GradientFacts> facts,
                          const plan::ControlKnobs& knobs, plan::ScalerState* state) {
  const std::size_t slots = state != nullptr ? 2 : 1;
  assert(facts.size() == static_cast<std::size_t>(a.members) * slots);
  GradientFacts whole;
  for (std::int32_t m = 0; m < a.counted; ++m) combine(facts[static_cast<std::size_t>(m) * slots], whole);
  const bool overflow = whole.nonfinite > 0;
  plan::ControlBlock block;
  const auto note = [&](const Found& found, std::int32_t member) {
    block.tensor = found.tensor;
    block.element = whole_element(plan, member, found);
  };
  if (overflow) {
    std::int32_t member = 0;
    while (facts[static_cast<std::size_t>(member) * slots].first_nonfinite != whole.first_nonfinite) ++member;
    note(find_stepped(plan, whole.first_nonfinite), member);
  }
  for (std::int32_t m = 0; state != nullptr && m < a.members; ++m) {
    const GradientFacts& local = facts[static_cast<std::size_t>(m) * slots + 1];
    const auto first_of = [&](std::int32_t member) {
      return facts[static_cast<std::size_t>(member) * slots + 1].first_nonfinite;
    };
    if (local.nonfinite == 0 || (block.rank >= 0 && first_of(block.rank) <= local.first_nonfinite)) continue;
    block.rank = m;
    note(find_local(plan, local.first_nonfinite), m);
  }
  const double scale = state != nullptr ? static_cast<double>(state->scale) : 1.0;
  block.norm = overflow ? std::numeric_limits<double>::quiet_NaN()
                        : std::sqrt(square_sum(whole)) * static_cast<double>(a.factor) / scale;
  const double clipped = static_cast<double>(knobs.max_norm) / (block.norm + 1e-6);
  // Comparisons with what is not a number are false, and keep it.
  const double coefficient = a.clips && !(clipped >= 1.0) ? clipped : 1.0;
  block.multiplier = static_cast<float>(coefficient / scale);
  if (state != nullptr) {
    block.skip = overflow ? 1 : 0;
    block.scale_before = state->scale;
    *state = plan::after_step(*state, knobs.scaler, overflow);
    block.scale_after = state->scale;
  }
  return block;
}

}  // namespace shard::cpu
