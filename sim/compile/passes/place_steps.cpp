// Pass place: optimizer steps, each where its state rests.
#include <algorithm>

#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/place.h"

namespace shard::plan {
namespace {

class Steps {
 public:
  Steps(Plan& plan, Mover& mover) : plan_(plan), mover_(mover) {
    for (std::size_t f = 0; f < plan_.flats.size(); ++f) {
      if (plan_.flats[f].frozen) continue;
      const bool on_host = stepped_in(resting(plan_, static_cast<std::int32_t>(f)).optimizer) == Memory::host;
      (on_host ? on_host_ : on_device_) = true;
    }
  }

  std::vector<Op> place(std::vector<Op> ops) {
    // Gradients are where pass place_gradients left them: equal on all ranks, so that one which lacks a step knows too.
    out_.reserve(ops.size());
    for (Op& op : ops) {
      if (const auto* step = std::get_if<OptimizerStep>(&op.action)) {
        place_step(op, step->flat);
      } else if (const auto* zero = std::get_if<ZeroState>(&op.action);
                 zero != nullptr && zero->content == StateContent::step_counts) {
        zero_counts(op);
      } else if (const auto* absent = std::get_if<Absent>(&op.action)) {
        place_absent(*absent, op);
      } else if (stores(op)) {
        place_store(op);
      } else if (op.first_step_only) {
        out_.push_back(op);  // nothing of the step in front of it is about what it makes
      } else {
        behind().push_back(op);
        hand_over(op);
      }
    }
    finish_step();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool stores(const Op& op) const {
    return op.part == Part::optimizer && std::holds_alternative<Copy>(op.action) &&
           plan_.buffer(op.operands[0].buffer).category == Category::master_parameter;
  }

  /// Counts of parameters that are stepped on the host are there.
  void zero_counts(Op op) {
    const BufferId device = op.operands[0].buffer;
    if (on_host_) {
      Buffer counts = plan_.buffer(device);
      counts.name = plan_.text(counts.name, " on host");
      counts.memory = Memory::host;
      host_counts_ = plan_.add_buffer(counts);
    }
    Op host = op;
    if (on_device_) out_.push_back(op);
    if (!on_host_) return;
    host.name = plan_.text(host.name, " on host");
    plan_.own_operands(host)[0].buffer = host_counts_;
    out_.push_back(host);
  }

  /// What steps read of learning rate and the like, and of what was decided, once more in host memory: as soon as it is
  /// made, so that no step waits for it behind other copies.
  void hand_over(const Op& made) {
    const auto mirror = [&](BufferId device, BufferId& host) {
      if (!device.valid() || std::ranges::none_of(made.operands, [&](const Operand& o) {
            return o.writes() && o.buffer == device;
          }))
        return;
      if (!host.valid())
        host = mover_.beside(device, Memory::host, plan_.buffer(device).bytes.count(),
                             plan_.text(plan_.buffer(device).name, " on host"));
      mover_.move(behind(), reads(plan_, device), writes(plan_, host), "hand over", Part::optimizer);
    };
    if (!on_host_) return;
    mirror(plan_.scalars, host_scalars_);
    mirror(plan_.control, host_control_);
  }

  /// A step on the host. On a GPU what the next one needs is brought while this one runs, so it waits for that.
  void place_step(Op op, std::int32_t flat) {
    const Memory memory = stepped_in(resting(plan_, flat).optimizer);
    if (memory != Memory::host) return mover_.run_in(behind(), op, memory);
    const std::span<Operand> operands = plan_.own_operands(op);
    operands[2].buffer = host_scalars_;
    operands[3].buffer = host_counts_;
    if (plan_.control.valid()) operands.back().buffer = host_control_;
    std::vector<Op> moves;
    mover_.run_in(moves, op, memory);
    const auto step = std::ranges::find_if(
        moves, [](const Op& o) { return std::holds_alternative<OptimizerStep>(o.action); });
    begin_step({moves.begin(), step}, {step, moves.end()});
  }
  
  void begin_step(const std::vector<Op>& brings, std::vector<Op> rest) {
    if (plan_.target.device == Device::cpu) finish_step();  // one thread would do both
    out_.insert(out_.end(), brings.begin(), brings.end());
    finish_step();
    waiting_ = std::move(rest);
  }
  void finish_step() {
    out_.insert(out_.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
  }
  /// Where an op goes that stands behind the last step.
  [[nodiscard]] std::vector<Op>& behind() { return waiting_.empty() ? out_ : waiting_; }

  /// The stored parameters of a step's masters: rounded where they are, moved after that.
  void place_store(Op op) {
    const std::span<Operand> operands = plan_.own_operands(op);
    operands[0] = mover_.brought(operands[0]);
    const Memory from = plan_.buffer(op.operands[0].buffer).memory;
    const Operand stored = op.operands[1];
    if (plan_.buffer(stored.buffer).memory == from) {
      behind().push_back(op);
      return;
    }
    const BufferId rounded = mover_.beside(stored.buffer, from, stored.bytes,
                                           plan_.text(plan_.buffer(op.operands[0].buffer).name, " rounded"));
    operands[1] = writes(plan_, rounded);
    behind().push_back(op);
    mover_.move(behind(), reads(plan_, rounded), stored, "store", Part::optimizer);
  }

  /// As many absent ops as ranks have that do not lack it, at the same places.
  void place_absent(const Absent& lacking, const Op& op) {
    if (op.first_step_only) return out_.push_back(op);
    if (lacking.flat < 0) return behind().push_back(op);
    const Resting& r = resting(plan_, lacking.flat);
    const Memory memory = stepped_in(r.optimizer);
    if (lacking.lacks == Absent::Lacks::step) {
      const int states = plan_.strategy.optimizer == OptimizerKind::sgd ? 0 : 2;
      const int masters = plan_.strategy.has_masters() ? 1 : 0;
      const int updated = (states + masters) * hops(r.optimizer, memory) + (masters == 0 ? hops(r.parameters, memory) : 0);
      const auto times = [&](int count) { return std::vector<Op>(static_cast<std::size_t>(count), op); };
      const std::vector<Op> brings = times(updated + hops(r.gradients, memory));
      const std::vector<Op> rest = times(1 + updated);
      if (memory == Memory::host) return begin_step(brings, rest);
      behind().insert(behind().end(), brings.begin(), brings.end());
      behind().insert(behind().end(), rest.begin(), rest.end());
      return;
    }
    behind().push_back(op);
    if (lacking.lacks == Absent::Lacks::store)
      for (int k = hops(memory, r.parameters); k > 0; --k) behind().push_back(op);
  }

  Plan& plan_;
  Mover& mover_;
  bool on_host_ = false;    ///< some step, of this rank or another, runs there
  bool on_device_ = false;  ///< the same
  BufferId host_counts_{};
  BufferId host_scalars_{};
  BufferId host_control_{};
  std::vector<Op> out_{};
  std::vector<Op> waiting_{};  ///< the last step on the host and what stands behind it, until the next one is brought
};

}  // namespace

std::vector<Op> place_steps(Plan& plan, Mover& mover, std::vector<Op> step) {
  return Steps(plan, mover).place(std::move(step));
}

}  // namespace shard::plan
