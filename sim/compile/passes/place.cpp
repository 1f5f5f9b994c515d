// Pass place: when model data moves that rests where it is decided.
#include "sim/compile/passes/place.h"

#include <algorithm>

#include "sim/compile/passes/passes.h"

namespace shard::plan {
namespace {

/// The resting buffers into the memory decided for them.
void settle(Plan& plan) {
  for (std::size_t f = 0; f < plan.flats.size(); ++f)
    if (plan.flat_parameters[f].valid())
      plan.buffer(plan.flat_parameters[f]).memory = resting(plan, static_cast<std::int32_t>(f)).parameters;
  for (const PhaseOps& phase : plan.phases)
    for (const Op& op : phase.ops) {
      const auto* step = std::get_if<OptimizerStep>(&op.action);
      if (step == nullptr) continue;
      const Memory memory = resting(plan, step->flat).optimizer;
      for (const Operand& o : op.operands) {
        Buffer& buffer = plan.buffer(o.buffer);
        const bool state = buffer.category == Category::optimizer_state && &o != &op.operands[3];
        if (state || buffer.category == Category::master_parameter) buffer.memory = memory;
      }
    }
}

/// Counts are saved from where a flat's steps count.
void place_save(Plan& plan) {
  std::vector<BufferId> counts(plan.flats.size());
  for (const Op& op : plan.find(Phase::steady_step)->ops)
    if (const auto* step = std::get_if<OptimizerStep>(&op.action))
      counts[static_cast<std::size_t>(step->flat)] = op.operands[3].buffer;
  for (Op& op : plan.find(Phase::save)->ops)
    if (const auto* save = std::get_if<Save>(&op.action); save != nullptr && save->content == StateContent::step_counts)
      plan.own_operands(op)[0].buffer = counts[static_cast<std::size_t>(save->flat)];
}

/// Computation and communication happen in device memory; any other op where all its operands are.
std::vector<Op> legal(Plan& plan, Mover& mover, std::vector<Op> ops) {
  std::vector<Op> out;
  out.reserve(ops.size());
  for (const Op& op : ops) {
    const auto in = [&](Memory memory) {
      return std::all_of(op.operands.begin(), op.operands.end(),
                         [&](const Operand& o) { return plan.buffer(o.buffer).memory == memory; });
    };
    const bool copies = std::holds_alternative<Copy>(op.action) || std::holds_alternative<ZeroState>(op.action) ||
                        std::holds_alternative<Save>(op.action);
    const bool device_only =
        std::holds_alternative<Compute>(op.action) || std::holds_alternative<Communicate>(op.action);
    if (copies || in(Memory::device) || (!device_only && in(Memory::host)))
      out.push_back(op);
    else
      mover.run_in(out, op, Memory::device);
  }
  return out;
}

/// Ops that touch nothing on the device do not stand in its way.
void choose_streams(const Plan& plan, std::vector<Op>& ops) {
  for (Op& op : ops)
    if (op.stream == Stream::compute && !op.operands.empty() &&
        std::none_of(op.operands.begin(), op.operands.end(),
                     [&](const Operand& o) { return plan.buffer(o.buffer).memory == Memory::device; }))
      op.stream = op.part == Part::optimizer ? Stream::optimizer : Stream::host;
}

/// All rests on the device, and no fetch is left out.
[[nodiscard]] bool nothing_moves(const Plan& plan) {
  const auto holds = [](const std::vector<bool>& held) { return std::ranges::find(held, true) != held.end(); };
  return std::ranges::all_of(plan.placed.resting, [](const Resting& r) { return r == Resting{}; }) &&
         std::ranges::none_of(plan.placed.held, holds) &&
         std::ranges::all_of(plan.buffers, [](const Buffer& b) { return b.memory == Memory::device; });
}

}  // namespace

Draft place(Draft plan) {
  settle(plan);
  if (nothing_moves(plan)) return plan;
  Mover mover(plan);
  std::vector<Op>& step = plan.find(Phase::steady_step)->ops;
  step = place_gradients(plan, mover, std::move(step));
  step = place_steps(plan, mover, std::move(step));
  step = place_parameters(plan, mover, std::move(step));
  place_creation(plan, mover);
  place_digest(plan, mover);
  place_save(plan);
  for (PhaseOps& phase : plan.phases) {
    phase.ops = legal(plan, mover, std::move(phase.ops));
    choose_streams(plan, phase.ops);
  }
  return plan;
}

}  // namespace shard::plan
