// Pass place: gradients. Every slot of the gradient tree is where the next op that touches it wants it.
#include <algorithm>
#include <map>
#include <set>

#include "sim/compile/parameter_units.h"
#include "sim/compile/passes/collectives.h"
#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/place.h"

namespace shard::plan {
namespace {

/// Looks at gradients where they are.
[[nodiscard]] const InspectGradient* inspection(const Op& op) {
  return std::get_if<InspectGradient>(&op.action);
}

[[nodiscard]] bool needs_device(const Op& op) {
  return std::holds_alternative<Compute>(op.action) || std::holds_alternative<Communicate>(op.action);
}

class Gradients {
 public:
  Gradients(Draft& plan, Mover& mover) : plan_(plan), mover_(mover) {
    for (std::size_t f = 0; f < plan.flats.size(); ++f) {
      const auto flat = static_cast<std::int32_t>(f);
      if (resting(plan, flat).gradients != Memory::host) continue;
      for (BufferId slot : plan.flat_gradient_slots[f]) {
        if (!slot.valid()) continue;  // it is another rank's
        if (plan.strategy.reuses_shards())
          make_apart(flat);
        else
          slots_[slot.value] = Slot{.flat = flat, .touched_by = {}};
      }
    }
  }

  std::vector<Op> place(std::vector<Op> ops) {
    for (Op& op : ops) set_apart(op);
    for (std::size_t i = 0; i < ops.size(); ++i)
      for (const Operand& o : ops[i].operands)
        if (const auto it = slots_.find(o.buffer.value);
            it != slots_.end() && !touched(it->second, i) && inspection(ops[i]) == nullptr)
          it->second.touched_by.push_back(i);
    ops_ = &ops;
    std::vector<Op> out;
    out.reserve(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) place(out, i);
    return out;
  }

 private:
  struct Slot {
    std::int32_t flat = -1;
    std::vector<std::size_t> touched_by;  ///< ops but inspections, ascending
    bool on_host = false;                 ///< where its content is now
    bool shard_only = false;              ///< on the host: only what this rank steps
    BufferId host{};                      ///< all of the slot
    BufferId host_shard{};                ///< this rank's shard of it
  };
  [[nodiscard]] static bool touched(const Slot& slot, std::size_t i) {
    return !slot.touched_by.empty() && slot.touched_by.back() == i;
  }
  /// Does the op after `i` that touches the slot need it on the device? Nobody after: a rank that lacks the step.
  [[nodiscard]] bool stays(const Slot& slot, std::size_t i) const {
    const auto next = std::upper_bound(slot.touched_by.begin(), slot.touched_by.end(), i);
    return next != slot.touched_by.end() && needs_device((*ops_)[*next]);
  }
  [[nodiscard]] BufferId host_of(BufferId device, Slot& slot) {
    if (!slot.host.valid())
      slot.host = mover_.beside(device, Memory::host, plan_.buffer(device).bytes.count(),
                                plan_.text(plan_.buffer(device).name, " on host"));
    return slot.host;
  }

  /// A gradient that takes its parameters' place is summed on the device, then moved to where they rest.
  void make_apart(std::int32_t f) {
    const BufferId home = plan_.flat_parameters[static_cast<std::size_t>(f)];
    const Buffer& resting = plan_.buffer(home);
    const Buffer sum{
        .name = plan_.text("reduced gradients ", flat_name(plan_, plan_.flats[static_cast<std::size_t>(f)])),
        .category = Category::gradient,
        .dtype = resting.dtype,
        .bytes = resting.bytes,
        .unit = resting.unit};
    const BufferId device = plan_.add_buffer(sum);
    slots_[device.value] = Slot{.flat = f, .touched_by = {}, .host = home};
    apart_[home.value] = device;
  }
  /// Of what touches the resting buffer, all that is about the gradient.
  void set_apart(Op& op) const {
    for (std::size_t k = 0; k < op.operands.size(); ++k) {
      const bool stepped = k == 1 && std::holds_alternative<OptimizerStep>(op.action);
      if (!stepped && op.part != Part::reduce && inspection(op) == nullptr) continue;
      if (const auto it = apart_.find(op.operands[k].buffer.value); it != apart_.end())
        plan_.own_operands(op)[k].buffer = it->second;
    }
  }

  void place(std::vector<Op>& out, std::size_t i) {
    Op op = (*ops_)[i];
    place_facts(out, op);
    if (const auto* absent = std::get_if<Absent>(&op.action)) {
      const Absent lacking = *absent;
      place_absent(out, op, lacking);
      return;
    }
    std::set<std::int32_t> touches;
    for (const Operand& o : op.operands)
      if (slots_.contains(o.buffer.value)) touches.insert(o.buffer.value);
    if (touches.empty()) {
      out.push_back(op);
      lack_sums(out);
      return;
    }
    if (!needs_device(op)) {
      on_host(op, i);
      out.push_back(op);
      return;
    }
    const std::int32_t micro_step = op.micro_step;
    const bool communicates = std::holds_alternative<Communicate>(op.action);
    for (std::int32_t b : touches) {
      Slot& slot = slots_.at(b);
      const bool needed = std::any_of(op.operands.begin(), op.operands.end(),
                                      [&](const Operand& o) { return o.buffer.value == b && o.reads() && !o.fresh; });
      if (slot.on_host && needed)
        mover_.move(out, reads(plan_, slot.host), writes(plan_, BufferId{b}), "bring", Part::reduce, micro_step);
      slot.on_host = false;
    }
    out.push_back(op);
    for (std::int32_t b : touches)
      if (Slot& slot = slots_.at(b); !stays(slot, i)) take_out(out, BufferId{b}, slot, communicates, micro_step);
  }

  /// A gradient reduced in place leaves only the shard that this rank steps.
  void take_out(std::vector<Op>& out, BufferId device, Slot& slot, bool reduced, std::int32_t micro_step) {
    const Strategy& s = plan_.strategy;
    slot.on_host = true;
    // The sum is with its owner: nothing is left here.
    if (is_foreign(plan_, slot.flat) && reduced) {
      Mover::lack(out, slot.flat, Stream::copy_out, Part::reduce, micro_step);
      return;
    }
    slot.shard_only = reduced && s.effective_stage() == 1 && s.partition == Partition::flat;
    if (!slot.shard_only) {
      mover_.move(out, reads(plan_, device), writes(plan_, host_of(device, slot)), "offload", Part::reduce, micro_step);
      return;
    }
    const Operand shard = own_part(plan_, slot.flat, device, Access::read);
    if (!slot.host_shard.valid())
      slot.host_shard =
          mover_.beside(device, Memory::host, shard.bytes, plan_.text(plan_.buffer(device).name, " shard on host"));
    mover_.move(out, shard, writes(plan_, slot.host_shard), "offload", Part::reduce, micro_step);
  }

  /// Where gradients leave the rank after every micro-step, others than the owner have no slot.
  [[nodiscard]] std::vector<std::int32_t> foreign(UnitId unit) const {
    std::vector<std::int32_t> flats;
    if (plan_.strategy.has_owners() && plan_.strategy.reduces_every_micro_step() && unit.valid())
      for (std::int32_t f : trained_part(plan_, plan_.units[static_cast<std::size_t>(unit.value)]).flats)
        if (is_foreign(plan_, f) && resting(plan_, f).gradients == Memory::host) flats.push_back(f);
    return flats;
  }
  /// A unit's sum was sent to its owner, who takes it out unless it is summed over replicas next.
  void lack_sums(std::vector<Op>& out) const {
    const auto* call = std::get_if<Communicate>(&out.back().action);
    if (call == nullptr || call->kind != Collective::reduce) return;
    const Strategy& s = plan_.strategy;
    if (s.reuses_shards() || (s.replicas() > 1 && s.accumulation() == 1)) return;
    const std::int32_t micro_step = out.back().micro_step;
    for (std::int32_t f : foreign(call->unit)) Mover::lack(out, f, Stream::copy_out, Part::reduce, micro_step);
  }
  void place_absent(std::vector<Op>& out, Op op, const Absent& lacking) const {
    const Strategy& s = plan_.strategy;
    std::vector<std::int32_t> flats;
    if (op.part == Part::reduce && lacking.flat >= 0)
      flats = foreign(plan_.flats[static_cast<std::size_t>(lacking.flat)].unit);
    const std::int32_t micro_step = op.micro_step;
    if (lacking.lacks != Absent::Lacks::all_reduce) {
      // An owner's sum, copied to its parameters' place.
      if (lacking.lacks == Absent::Lacks::other && !flats.empty() && s.replicas() == 1) op.stream = Stream::copy_out;
      out.push_back(op);
      return;
    }
    if (s.accumulation() > 1)
      for (std::int32_t f : flats) Mover::lack(out, f, Stream::copy_in, Part::reduce, micro_step);
    out.push_back(op);
    for (std::int32_t f : flats) Mover::lack(out, f, Stream::copy_out, Part::reduce, micro_step);
  }

  /// Facts about gradients follow the inspections, to the host and back.
  void place_facts(std::vector<Op>& out, Op& op) {
    if (std::holds_alternative<BeginControl>(op.action)) facts_ = op.operands[1].buffer;
    const auto* absent = std::get_if<Absent>(&op.action);
    const bool lacks = absent != nullptr && absent->lacks == Absent::Lacks::inspect;
    const auto facts = std::ranges::find(op.operands, facts_, &Operand::buffer);
    if (!lacks && (facts == op.operands.end() || !facts_.valid())) return;
    const bool on_host = lacks ? resting(plan_, absent->flat).gradients == Memory::host
                               : inspection(op) != nullptr && is_on_host(op.operands[0].buffer);
    if (on_host && !facts_on_host_) {
      host_facts_ = mover_.beside(facts_, Memory::host, plan_.buffer(facts_).bytes.count(),
                                  plan_.text(plan_.buffer(facts_).name, " on host"));
      mover_.move(out, reads(plan_, facts_), writes(plan_, host_facts_), "bring", op.part, op.micro_step);
    } else if (!on_host && facts_on_host_) {
      mover_.move(out, reads(plan_, host_facts_), writes(plan_, facts_), "take back", op.part, op.micro_step);
    }
    facts_on_host_ = on_host;
    if (!on_host || lacks) return;
    const auto index = static_cast<std::size_t>(facts - op.operands.begin());
    plan_.own_operands(op)[index].buffer = host_facts_;
  }
  [[nodiscard]] bool is_on_host(BufferId gradient) const {
    const auto it = slots_.find(gradient.value);
    return it != slots_.end() && it->second.on_host;
  }

  /// An op that runs where the gradients are.
  void on_host(Op& op, std::size_t i) {
    const std::span<Operand> operands = plan_.own_operands(op);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      Operand& o = operands[k];
      const auto it = slots_.find(o.buffer.value);
      if (it == slots_.end()) continue;
      Slot& slot = it->second;
      if (std::holds_alternative<Copy>(op.action) && k == 1) {
        // A micro-step's gradient widened into its slot: at once where it waits.
        if (stays(slot, i)) {
          slot.on_host = false;
          continue;
        }
        slot.on_host = true;
        slot.shard_only = false;
        op.stream = Stream::copy_out;
        o.buffer = host_of(o.buffer, slot);
      } else if (slot.on_host && slot.shard_only) {
        o.buffer = slot.host_shard;
        o.rank_stride = 0;
      } else if (slot.on_host) {
        o.buffer = slot.host;
      }
    }
  }

  Draft& plan_;
  Mover& mover_;
  std::map<std::int32_t, Slot> slots_;      // by buffer
  std::map<std::int32_t, BufferId> apart_;  // by buffer of parameters whose gradient takes their place: on the device
  std::vector<Op>* ops_ = nullptr;
  BufferId facts_{};
  BufferId host_facts_{};
  bool facts_on_host_ = false;
};

}  // namespace

std::vector<Op> place_gradients(Draft& plan, Mover& mover, std::vector<Op> step) {
  return Gradients(plan, mover).place(std::move(step));
}

}  // namespace shard::plan
