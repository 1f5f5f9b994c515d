// Kinds of ops by what they do, and what of their operands counts.
#include "sim/ir/op_class.h"

#include <algorithm>
#include <array>

#include "sim/ir/effects.h"
#include "sim/strategy/topology.h"

namespace shard::plan {
namespace {

constexpr std::size_t kFirstAction = kOperatorClasses;
constexpr std::size_t kFirstOptimizer = kFirstAction + kActionClasses;
constexpr std::size_t kFirstCollective = kFirstOptimizer + kOptimizerClasses;
constexpr std::size_t kFirstFusion = kFirstCollective + static_cast<std::size_t>(kCollectiveCount);

/// In the order of Action; compute, collectives and optimizer steps are told by what they are more exactly.
constexpr std::array<std::string_view, kActionClasses> kActionNames{
    "compute",   "load_batch", "load_scalars", "communicate",   "accumulate", "initialize", "zero_state", "step",
    "mean_loss", "copy",       "digest",       "begin_control", "inspect",    "decide",     "absent",     "save"};

/// Bytes of one operand of a table that its tokens name.
double rows_of(const model::Attributes& a, std::int64_t bytes, Dtype dtype) {
  return static_cast<double>(std::min(bytes, a.rows * a.out_columns * bytes_per_element(dtype)));
}

OpWork compute_work(const Plan& plan, const Op& op, const Compute& c) {
  const model::Signature slots = signature(c);
  const bool table = c.kind == model::OperatorKind::embedding || c.kind == model::OperatorKind::embedding_part;
  OpWork work;
  for (std::size_t i = 0; i < op.operands.size() && i < slots.size(); ++i) {
    const Operand& o = op.operands[i];
    const model::Slot& slot = slots[i];
    if (slot.is(model::Role::workspace)) continue;
    const double once =
        table ? rows_of(*c.attributes, o.bytes, plan.buffer(o.buffer).dtype) : static_cast<double>(o.bytes);
    const double times = (o.reads() ? 1 : 0) + (o.writes() ? 1 : 0);
    const bool weight = slot.is(model::Role::p) || slot.is(model::Role::dp);
    (weight ? work.weight_bytes : work.bytes) += times * once;
  }
  return work;
}

double taken(const Communicate& call, double full, double members) {
  switch (call.kind) {
    case Collective::all_gather:
    case Collective::reduce_scatter: return (members - 1) / members * full;
    case Collective::all_reduce: return 2 * (members - 1) / members * full;
    case Collective::broadcast:
    case Collective::reduce: return full;
  }
  return full;
}

}  // namespace

OpClass class_of(const Op& op) {
  if (const auto* c = std::get_if<Compute>(&op.action)) {
    if (c->then.present())
      if (const auto fused = model::fusion(c->kind, c->direction, c->then.kind)) return {kFirstFusion + *fused};
    return {static_cast<std::size_t>(c->kind) * kDirections + static_cast<std::size_t>(c->direction)};
  }
  if (const auto* step = std::get_if<OptimizerStep>(&op.action))
    return {kFirstOptimizer + static_cast<std::size_t>(step->kind)};
  if (const auto* call = std::get_if<Communicate>(&op.action))
    return {kFirstCollective + static_cast<std::size_t>(call->kind)};
  return {kFirstAction + op.action.index()};
}

std::string to_string(OpClass which) {
  const std::size_t i = which.index;
  if (i < kFirstAction)
    return std::string(model::to_string(static_cast<model::OperatorKind>(i / kDirections))) + ' ' +
           model::to_string(static_cast<Direction>(i % kDirections));
  if (i < kFirstOptimizer) return std::string(kActionNames[i - kFirstAction]);
  if (i < kFirstCollective) return to_string(static_cast<OptimizerKind>(i - kFirstOptimizer));
  if (i < kFirstFusion) return to_string(static_cast<Collective>(i - kFirstCollective));
  const auto& [first, direction, then] = model::kFusions[i - kFirstFusion];
  return std::string(model::to_string(first)) + ' ' + model::to_string(direction) + " + " + model::to_string(then) +
         ' ' + model::to_string(model::direction_behind(direction));
}

std::optional<OpClass> op_class(std::string_view name) {
  for (OpClass each; each.index < kOpClasses; ++each.index)
    if (to_string(each) == name) return each;
  return std::nullopt;
}

OpWork work_of(const Plan& plan, const Op& op) {
  const Effects e = effects(plan, op);
  OpWork work;
  if (const auto* c = std::get_if<Compute>(&op.action)) {
    work = compute_work(plan, op, *c);
  } else if (const auto* call = std::get_if<Communicate>(&op.action)) {
    const RankGroup group = members(plan.topology, call->group, plan.rank);
    work.bytes = taken(*call, static_cast<double>(e.sends->bytes.count()), std::max(group.count, 1));
  } else {
    work.bytes = static_cast<double>((e.bytes_read + e.bytes_written).count());
  }
  work.flops = e.flops.count();
  return work;
}

}  // namespace shard::plan
