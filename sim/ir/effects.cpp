// What an op takes, gives back, sends and costs.
#include "sim/ir/effects.h"

#include "sim/model/flops.h"

namespace shard::plan {
namespace {

[[nodiscard]] Bytes full_bytes(const Op& op, const Communicate& call) {
  Bytes total{0};
  for (const Segment& s : call.segments) total += Bytes{op.operands[static_cast<std::size_t>(s.full_operand)].bytes};
  return total;
}

[[nodiscard]] Flops own_flops(const Plan& plan, const Compute& c) {
  const model::Operator& source = plan.graph->operators[static_cast<std::size_t>(c.source)];
  model::OperatorFlops flops = model::operator_flops(*plan.graph, source);
  if (c.attributes->freezes(0)) flops.backward_parameters = {};
  // A linear operator's bias alone: sums over its rows.
  if (c.attributes->freezes(0) && c.attributes->has_bias && !c.attributes->freezes(1))
    flops.backward_parameters = Flops{static_cast<double>(c.attributes->rows * c.attributes->out_columns)};
  if (!c.input_gradient) flops.backward_inputs = {};
  switch (c.direction) {
    case Direction::forward: return flops.forward;
    case Direction::backward_input: return flops.backward_inputs;
    case Direction::backward_weight: return flops.backward_parameters;
    case Direction::backward: return flops.backward_inputs + flops.backward_parameters;
  }
  return flops.forward;
}

[[nodiscard]] Flops flops_of(const Plan& plan, const Compute& c) {
  if (!c.then.present()) return own_flops(plan, c);
  return own_flops(plan, c) + own_flops(plan, {.kind = c.then.kind,
                                               .direction = model::direction_behind(c.direction),
                                               .source = c.then.source,
                                               .attributes = c.then.attributes,
                                               .input_gradient = true});
}

/// Multiply-adds and the like per element: Adam's two moments, their corrections, root, division, decay.
[[nodiscard]] double optimizer_flops_per_element(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd: return 2;
    case OptimizerKind::adam: return 14;
    case OptimizerKind::adamw: return 14;
  }
  return 0;
}

}  // namespace

Effects effects(const Plan& plan, const Op& op) {
  Effects e{
      .acquire = op.acquire, .release = op.release, .sends = {}, .flops = {}, .bytes_read = {}, .bytes_written = {}};
  for (const Operand& o : op.operands) {
    if (o.reads()) e.bytes_read += Bytes{o.bytes};
    if (o.writes()) e.bytes_written += Bytes{o.bytes};
  }
  const auto nothing = [](const auto&) {};
  std::visit(on{[&](const Compute& c) { e.flops = flops_of(plan, c); },
                [&](const Communicate& c) { e.sends = Sends{.kind = c.kind, .bytes = full_bytes(op, c)}; },
                [&](const Accumulate&) { e.flops = Flops{static_cast<double>(op.operands[0].bytes) / 4}; },
                [&](const OptimizerStep& s) {
                  e.flops = Flops{static_cast<double>(s.elems.count()) * optimizer_flops_per_element(s.kind)};
                },
                [&](const LoadBatch& a) { nothing(a); }, [&](const LoadScalars& a) { nothing(a); },
                [&](const Initialize& a) { nothing(a); }, [&](const ZeroState& a) { nothing(a); },
                [&](const MeanLoss& a) { nothing(a); }, [&](const Copy& a) { nothing(a); },
                [&](const Digest& a) { nothing(a); }, [&](const BeginControl& a) { nothing(a); },
                [&](const InspectGradient& a) { e.flops = Flops{2 * static_cast<double>(a.elems.count())}; },
                [&](const Decide& a) { nothing(a); }, [&](const Absent& a) { nothing(a); },
                [&](const Save& a) { nothing(a); }},
             op.action);
  return e;
}

}  // namespace shard::plan
