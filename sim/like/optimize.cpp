// Pass optimize: torch.optim's step, and what ZeroRedundancyOptimizer changes about it.
#include <algorithm>
#include <numeric>

#include "sim/compile/passes/operands.h"
#include "sim/like/passes.h"
#include "sim/like/zero_owners.h"

namespace shard::like {
namespace {

using plan::Operand;

class Stepper {
 public:
  Stepper(plan::Draft plan, const Rules& rules) : plan_(std::move(plan)), rules_(rules) {
    const plan::Strategy& s = plan_.strategy;
    owners_ = s.stage == 1 ? zero_owners(plan_.model->parameters, s.world_size, rules_.owner_order)
                           : std::vector<std::int32_t>(plan_.model->parameters.size(), plan_.rank);
  }

  plan::Draft run(std::vector<Mark>& marks) {
    std::vector<plan::Op>& ops = plan_.find(Phase::first_step)->ops;
    plan::Op end = std::move(ops.back());
    ops.pop_back();
    std::vector<std::size_t> mine;
    for (std::size_t p = 0; p < owners_.size(); ++p)
      if (owners_[p] == plan_.rank) mine.push_back(p);
    states_.resize(owners_.size());
    if (has_state())
      for (std::size_t p : mine) ops.push_back(state(p));
    for (std::size_t p : mine) ops.push_back(step(p));
    if (plan_.strategy.stage == 1) broadcast(ops);
    marks.push_back({"after step", Phase::first_step, ops.size()});
    ops.push_back(std::move(end));
    return std::move(plan_);
  }

 private:
  [[nodiscard]] bool has_state() const { return plan_.strategy.optimizer != plan::OptimizerKind::sgd; }
  [[nodiscard]] const Parameter& parameter(std::size_t p) const { return plan_.model->parameters[p]; }
  static BufferId buffer(std::size_t p) { return BufferId{static_cast<std::int32_t>(p)}; }

  BufferId add(std::string name, Category category, std::size_t p, bool persistent) {
    return plan_.add_buffer(
        {.name = plan_.text(name), .category = category, .bytes = plan_.buffers[p].bytes, .persistent = persistent});
  }

  plan::Op state(std::size_t p) {
    plan::Op op{.name = plan_.text("state of ", parameter(p).name),
                .part = plan::Part::optimizer,
                .first_step_only = true,
                .action = plan::ZeroState{}};
    for (const char* name : {".exp_avg", ".exp_avg_sq"}) {
      states_[p].push_back(add(parameter(p).name + name, Category::optimizer_state, p, true));
      plan_.add_operand(op, plan::writes(plan_, states_[p].back()));
    }
    return op;
  }

  plan::Op step(std::size_t p) {
    plan::Op op{.name = plan_.text("step ", parameter(p).name),
                .part = plan::Part::optimizer,
                .action = plan::OptimizerStep{.param = {static_cast<std::int32_t>(p)}, .elems = parameter(p).elems},
                .operands = plan_.list({plan::updates(plan_, buffer(p)), plan::reads(plan_, plan_.gradients[p])})};
    for (BufferId id : states_[p]) plan_.add_operand(op, plan::updates(plan_, id));
    for (std::int32_t i = 0; has_state() && i < rules_.adam_temporaries; ++i) {
      const char* name = i == 0 ? "root of " : "denominator of ";
      plan_.add_operand(op, plan::writes(plan_, add(name + parameter(p).name, Category::workspace, p, false)));
    }
    return op;
  }

  /// Rank by rank, the smallest first, each parameter where it lies.
  void broadcast(std::vector<plan::Op>& ops) {
    std::vector<std::size_t> order(owners_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return owners_[a] != owners_[b] ? owners_[a] < owners_[b] : parameter(a).elems < parameter(b).elems;
    });
    for (std::size_t p : order)
      ops.push_back({.name = plan_.text("broadcast ", parameter(p).name),
                     .part = plan::Part::gather,
                     .action = plan::Communicate{.kind = Collective::broadcast,
                                                 .segments = plan_.list<plan::Segment>({{.elems = parameter(p).elems}}),
                                                 .root = owners_[p]},
                     .operands = plan_.list({plan::updates(plan_, buffer(p))})});
  }

  plan::Draft plan_;
  const Rules& rules_;
  std::vector<std::int32_t> owners_;
  std::vector<std::vector<BufferId>> states_;
};

}  // namespace

plan::Draft optimize(plan::Draft plan, const Rules& rules, std::vector<Mark>& marks) {
  return Stepper(std::move(plan), rules).run(marks);
}

}  // namespace shard::like
