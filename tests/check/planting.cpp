// Changes of compiled plans, in every class and both forms of the step alike.
#include "tests/check/planting.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace shard::plan {

void PrintTo(const Planted& planted, std::ostream* out) {
  *out << planted.name;
}

std::size_t find_op(const PhaseOps& phase, std::string_view name, std::size_t nth) {
  for (std::size_t i = 0; i < phase.ops.size(); ++i)
    if (phase.ops[i].name.starts_with(name) && nth-- == 0) return i;
  ADD_FAILURE() << "no op " << name;
  return 0;
}

std::function<void(PlanSet&)> in_steps(std::function<void(Plan&, std::vector<Op>&)> change) {
  return [change](PlanSet& plans) {
    for (Plan& plan : plans.classes)
      for (PhaseOps& phase : plan.phases)
        if (phase.phase == Phase::first_step || phase.phase == Phase::steady_step) change(plan, phase.ops);
  };
}

std::function<void(PlanSet&)> release_at(std::string name) {
  return in_steps([name = std::move(name)](Plan& plan, std::vector<Op>& ops) {
    for (Op& op : ops)
      if (const auto it =
              std::ranges::find_if(op.release, [&](BufferId b) { return plan.buffer(b).name == "gathered block 0"; });
          it != op.release.end()) {
        const BufferId gathered = *it;
        edit(op.release).remove(gathered);
        edit(std::ranges::find(ops, std::string_view(name), &Op::name)->release).push_back(gathered);
        return;
      }
  });
}

std::function<void(PlanSet&)> at_op(std::string name, std::size_t nth, std::function<void(Plan&, Op&)> change) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes)
      for (PhaseOps& phase : plan.phases)
        if (phase.phase == Phase::first_step || phase.phase == Phase::steady_step)
          change(plan, phase.ops[find_op(phase, name, nth)]);
  };
}

std::function<void(PlanSet&)> drop(std::string name, std::size_t nth) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes)
      for (PhaseOps& phase : plan.phases) {
        if (phase.phase != Phase::first_step && phase.phase != Phase::steady_step) continue;
        std::vector<Op>& ops = phase.ops;
        const std::size_t i = find_op(phase, name, nth);
        for (BufferId b : ops[i].acquire) edit(ops[i + 1].acquire).push_back(b);
        for (BufferId b : ops[i].release) edit(ops[i - 1].release).push_back(b);
        for (Op& op : ops) edit(op.dependencies).remove(ops[i].id);
        // A buffer that only this op touched is gone with it.
        for (BufferId b : ops[i].acquire)
          if (std::ranges::count(ops[i].release, b) == 1) {
            edit(ops[i + 1].acquire).remove(b);
            edit(ops[i - 1].release).remove(b);
          }
        ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
      }
  };
}

std::function<void(PlanSet&)> drop_on_owner(std::string name, std::size_t nth) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes) {
      if (std::ranges::find(plan.find(Phase::steady_step)->ops, std::string_view(name), &Op::name) ==
          plan.find(Phase::steady_step)->ops.end())
        continue;
      PlanSet one;
      one.classes = {std::move(plan)};
      drop(name, nth)(one);
      plan = std::move(one.classes.front());
    }
  };
}

std::function<void(PlanSet&)> twice(std::string name, std::size_t nth) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes) {
      std::int32_t id = -1;
      for (PhaseOps& phase : plan.phases) {
        const bool step = phase.phase == Phase::first_step || phase.phase == Phase::steady_step;
        if (phase.phase == Phase::first_step) id = phase.ops[find_op(phase, name, nth)].id.value;
        if (id < 0) continue;
        for (Op& op : phase.ops) {
          if (op.id.value > id) ++op.id.value;
          for (OpId& d : edit(op.dependencies))
            if (d.value > id) ++d.value;
        }
        if (!step) continue;
        const std::size_t i = find_op(phase, name, nth);
        Op copy = phase.ops[i];
        ++copy.id.value;
        edit(copy.acquire).clear();
        edit(phase.ops[i].release).clear();
        phase.ops.insert(phase.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(copy));
      }
    }
  };
}

std::function<void(PlanSet&)> swap_with_next(std::string name, std::size_t nth) {
  return in_steps([=](Plan&, std::vector<Op>& ops) {
    const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
    const std::size_t i = find_op(view, name, nth);
    std::swap(ops[i], ops[i + 1]);
    std::swap(ops[i].id, ops[i + 1].id);
    // Lifetimes cover both.
    for (BufferId b : ops[i + 1].acquire) edit(ops[i].acquire).push_back(b);
    for (BufferId b : ops[i].release) edit(ops[i + 1].release).push_back(b);
    edit(ops[i + 1].acquire).clear();
    edit(ops[i].release).clear();
  });
}

std::function<void(PlanSet&)> cut_otherwise(std::string parameter, std::function<void(model::ParameterSplit&)> change) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes) {
      model::Model model = *plan.model;
      for (std::size_t p = 0; p < model.parameters.size(); ++p)
        if (model.parameters[p].name.ends_with(parameter)) change(model.split.parameters[p]);
      plan.model = std::make_shared<const model::Model>(std::move(model));
    }
  };
}

std::function<void(PlanSet&)> operator_otherwise(std::string name, std::function<void(model::Attributes&)> change) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes) {
      const auto graph = std::make_shared<model::Graph>(*plan.graph);
      for (model::Operator& op : graph->operators)
        if (op.name == name) change(op.attributes);
      for (PhaseOps& phase : plan.phases)
        for (Op& op : phase.ops)
          if (auto* compute = std::get_if<Compute>(&op.action))
            compute->attributes = &graph->operators[static_cast<std::size_t>(compute->source)].attributes;
      plan.graph = graph;
    }
  };
}

BufferId named(const Plan& plan, std::string_view name) {
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (plan.buffers[b].name == name) return BufferId{static_cast<std::int32_t>(b)};
  ADD_FAILURE() << "no buffer " << name;
  return BufferId{};
}

Communicate& call(Op& op) {
  return std::get<Communicate>(op.action);
}

Buffer& buffer_of(Plan& plan, Op& op, std::size_t operand) {
  return plan.buffer(op.operands[operand].buffer);
}

}  // namespace shard::plan
