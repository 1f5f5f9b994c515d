// Pass place: optimizer steps, each where its state rests.
#include <algorithm>

#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/place.h"

namespace shard::plan {
namespace {

class Steps {
 public:
  Steps(Plan& plan, Mover& mover) : plan_(plan), mover_(mover) {}

  std::vector<Op> place(std::vector<Op> ops) {
    // Gradients are where pass place_gradients left them: equal on all ranks, so that one which lacks a step knows too.
    std::vector<Op> out;
    out.reserve(ops.size());
    for (Op& op : ops) {
      if (const auto* step = std::get_if<OptimizerStep>(&op.action)) {
        place_step(out, op, step->flat);
      } else if (const auto* zero = std::get_if<ZeroState>(&op.action);
                 zero != nullptr && zero->content == StateContent::step_counts) {
        zero_counts(out, op);
      } else if (const auto* absent = std::get_if<Absent>(&op.action)) {
        place_absent(out, *absent, op);
      } else if (stores(op)) {
        place_store(out, op);
      } else {
        if (std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& o) {
              return o.writes() && (o.buffer == plan_.scalars || o.buffer == plan_.control);
            }))
          scalars_are_new_ = false;
        out.push_back(op);
      }
    }
    return out;
  }

 private:
  [[nodiscard]] bool stores(const Op& op) const {
    return op.part == Part::optimizer && std::holds_alternative<Copy>(op.action) &&
           plan_.buffer(op.operands[0].buffer).category == Category::master_parameter;
  }

  /// Counts of parameters that are stepped on the host are there.
  void zero_counts(std::vector<Op>& out, Op op) {
    const BufferId device = op.operands[0].buffer;
    bool on_device = false;
    bool on_host = false;
    for (std::size_t f = 0; f < plan_.flats.size(); ++f) {
      if (plan_.flats[f].frozen) continue;
      const bool device_step = resting(plan_, static_cast<std::int32_t>(f)).optimizer == Memory::device;
      on_device = on_device || device_step;
      on_host = on_host || !device_step;
    }
    if (on_host) {
      Buffer counts = plan_.buffer(device);
      counts.name = plan_.text(counts.name, " on host");
      counts.memory = Memory::host;
      host_counts_ = plan_.add_buffer(counts);
    }
    Op host = op;
    if (on_device) out.push_back(op);
    if (!on_host) return;
    host.name = plan_.text(host.name, " on host");
    plan_.own_operands(host)[0].buffer = host_counts_;
    out.push_back(host);
  }

  /// What steps read of learning rate and the like, and of what was decided, once more in host memory.
  void mirror_scalars(std::vector<Op>& out) {
    if (scalars_are_new_) return;
    const auto mirror = [&](BufferId device, BufferId& host) {
      if (!device.valid()) return;
      if (!host.valid())
        host = mover_.beside(device, Memory::host, plan_.buffer(device).bytes.count(),
                             plan_.text(plan_.buffer(device).name, " on host"));
      mover_.move(out, reads(plan_, device), writes(plan_, host), "hand over", Part::optimizer);
    };
    mirror(plan_.scalars, host_scalars_);
    mirror(plan_.control, host_control_);
    scalars_are_new_ = true;
  }

  void place_step(std::vector<Op>& out, Op op, std::int32_t flat) {
    const Memory memory = stepped_in(resting(plan_, flat).optimizer);
    if (memory == Memory::host) {
      mirror_scalars(out);
      const std::span<Operand> operands = plan_.own_operands(op);
      operands[2].buffer = host_scalars_;
      operands[3].buffer = host_counts_;
      if (plan_.control.valid()) operands.back().buffer = host_control_;
    }
    mover_.run_in(out, op, memory);
  }

  /// The stored parameters of a step's masters: rounded where they are, moved after that.
  void place_store(std::vector<Op>& out, Op op) {
    const std::span<Operand> operands = plan_.own_operands(op);
    operands[0] = mover_.brought(operands[0]);
    const Memory from = plan_.buffer(op.operands[0].buffer).memory;
    const Operand stored = op.operands[1];
    if (plan_.buffer(stored.buffer).memory == from) {
      out.push_back(op);
      return;
    }
    const BufferId rounded = mover_.beside(stored.buffer, from, stored.bytes,
                                           plan_.text(plan_.buffer(op.operands[0].buffer).name, " rounded"));
    operands[1] = writes(plan_, rounded);
    out.push_back(op);
    mover_.move(out, reads(plan_, rounded), stored, "store", Part::optimizer);
  }

  /// As many absent ops as ranks have that do not lack it.
  void place_absent(std::vector<Op>& out, const Absent& lacking, const Op& op) {
    int extra = 0;
    if (lacking.flat >= 0) {
      const Resting& r = resting(plan_, lacking.flat);
      const Memory memory = stepped_in(r.optimizer);
      if (lacking.lacks == Absent::Lacks::step) {
        if (memory == Memory::host) mirror_scalars(out);
        const int states = plan_.strategy.optimizer == OptimizerKind::sgd ? 0 : 2;
        const int masters = plan_.strategy.has_masters() ? 1 : 0;
        extra = 2 * (states + masters) * hops(r.optimizer, memory) + hops(r.gradients, memory);
        if (masters == 0) extra += 2 * hops(r.parameters, memory);
      } else if (lacking.lacks == Absent::Lacks::store) {
        extra = hops(memory, r.parameters);
      }
    }
    for (; extra >= 0; --extra) out.push_back(op);
  }

  Plan& plan_;
  Mover& mover_;
  BufferId host_counts_{};
  BufferId host_scalars_{};
  BufferId host_control_{};
  bool scalars_are_new_ = false;
};

}  // namespace

std::vector<Op> place_steps(Plan& plan, Mover& mover, std::vector<Op> step) {
  return Steps(plan, mover).place(std::move(step));
}

}  // namespace shard::plan
