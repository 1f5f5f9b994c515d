// Runs all phases of a plan on meanings, and says which action is about what.
#include "sim/check/meaning.h"

#include "sim/check/interpreter.h"

namespace shard::plan::verification {

Interpreter::Interpreter(const Plan& plan, std::int32_t rank, Faults& faults)
    : plan_(plan),
      at_(position(plan.topology, rank)),
      shards_(plan.strategy.shard_degree()),
      ranks_(plan.strategy.data_parallel()),
      faults_(faults),
      expected_(plan),
      nodes_(plan.strategy),
      contents_(plan.buffers.size()),
      place_(plan.model->parameters.size()) {
  for (std::size_t v = 0; v < plan.graph->values.size(); ++v) same_as_.push_back(static_cast<std::int32_t>(v));
  for (const model::Operator& op : plan.graph->operators)
    if (op.kind == model::OperatorKind::tensor_input || op.kind == model::OperatorKind::tensor_part)
      same_as_[static_cast<std::size_t>(op.outputs[0].value)] = same_as_[static_cast<std::size_t>(op.inputs[0].value)];
}

void Interpreter::check() {
  check_choices();
  if (!faults_.failed()) check_frozen();
  if (!faults_.failed()) check_masks();
  check_flats();
  for (const PhaseOps& phase : plan_.phases) {
    if (faults_.failed()) return;
    in_step_ = phase.phase == Phase::first_step || phase.phase == Phase::steady_step;
    const bool evaluates = phase.phase == Phase::evaluate;
    if (in_step_ || evaluates) check_dealing(phase);
    for (const Op& op : phase.ops) {
      faults_.at(phase_ = &phase, &op);
      for (BufferId id : op.acquire) of(id).clear();
      issue(op);
      if (faults_.failed()) return;
    }
    faults_.at(&phase, nullptr);
    if (phase.phase == Phase::creation) check_created();
    if (in_step_) end_step();
    if (evaluates && !loss_known_) faults_.fail("P37", "evaluation ends without the mean loss");
  }
}

void Interpreter::issue(const Op& op) {
  std::visit(
      on{[&](const Compute& c) { compute(op, c); }, [&](const LoadBatch&) { load_batch(op); },
         [&](const LoadScalars&) { load_scalars(op); }, [&](const Communicate& c) { communicate(op, c); },
         [&](const Accumulate&) { accumulate(op); }, [&](const Initialize& a) { initialize(op, a); },
         [&](const ZeroState& a) { zero(op, a); }, [&](const OptimizerStep& a) { step(op, a); },
         [&](const MeanLoss&) { mean_loss(op); }, [&](const Copy&) { copy(op); },
         [&](const Digest& a) { digest(op, a); }, [&](const BeginControl&) { begin_control(op); },
         [&](const InspectGradient& a) { a.of == InspectGradient::Of::local ? inspect_local(op, a) : inspect(op, a); },
         [&](const Decide& a) { decide(op, a); }, [&](const Absent&) {}, [&](const Save& a) { save(op, a); }},
      op.action);
}

void check_meaning(const Plan& plan, std::int32_t rank, Faults& faults) {
  Interpreter(plan, rank, faults).check();
}

}  // namespace shard::plan::verification
