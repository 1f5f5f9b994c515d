// Pass place: parameters that rest on the host, and what creation and digest do with all that does not rest on the
// device.
#include <algorithm>
#include <map>

#include "sim/compile/parameter_units.h"
#include "sim/compile/passes/collectives.h"
#include "sim/compile/passes/fetches.h"
#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/place.h"

namespace shard::plan {
namespace {

class Parameters {
 public:
  Parameters(Plan& plan, Mover& mover) : plan_(plan), mover_(mover), sharded_(plan.strategy.effective_stage() == 3) {
    for (std::size_t f = 0; f < plan.flats.size(); ++f) {
      const auto flat = static_cast<std::int32_t>(f);
      if (resting(plan, flat).parameters != Memory::host) continue;
      if (const BufferId home = plan.flat_parameters[f]; home.valid())
        flat_of_[home.value] = flat;
      else
        foreign_[plan.flat_gathered[f].value] = flat;
    }
    if (!sharded_ && !flat_of_.empty() && plan.flat_gathered.empty()) make_fetched();
    if (sharded_ && plan.strategy.has_owners()) make_sent();
  }

  std::vector<Op> place(std::vector<Op> ops) {
    if (!sharded_) ops = with_fetches(std::move(ops));
    std::vector<Op> out;
    out.reserve(ops.size());
    std::vector<std::size_t> fetched(plan_.units.size(), 0);
    for (Op& op : ops) {
      if (sharded_ && plan_.strategy.has_owners()) use_sent(op);
      if (const auto* call = std::get_if<Communicate>(&op.action)) {
        const bool gathers = call->kind == Collective::all_gather || call->kind == Collective::broadcast;
        if (sharded_ && gathers && op.part == Part::gather &&
            is_held(call->unit, fetched[static_cast<std::size_t>(call->unit.value)]++))
          continue;
        place_call(out, op);
      } else {
        out.push_back(op);
      }
    }
    return out;
  }

  /// A collective over parameters: the device has a place for all of the flat.
  void place_call(std::vector<Op>& out, Op op) {
    const auto& call = std::get<Communicate>(op.action);
    const Collective kind = call.kind;
    if (kind == Collective::broadcast && plan_.strategy.has_owners()) return place_sending(out, op);
    std::vector<Segment> segments;
    for (const Segment& s : call.segments)
      if (is_resting(
              op.operands[static_cast<std::size_t>(kind == Collective::all_gather ? s.shard_operand : s.full_operand)]))
        segments.push_back(s);
    if (segments.empty()) {
      out.push_back(op);
      return;
    }
    const Part part = sharded_ ? op.part : Part::optimizer;
    const std::span<Operand> operands = plan_.own_operands(op);
    std::vector<std::pair<Operand, Operand>> back;
    for (const Segment& s : segments) {
      Operand& full = operands[static_cast<std::size_t>(s.full_operand)];
      if (kind == Collective::all_gather) {
        Operand& shard = operands[static_cast<std::size_t>(s.shard_operand)];
        const BufferId home = shard.buffer;
        const std::int32_t f = flat_of_.at(home.value);
        const BufferId whole = plan_.flat_gathered[static_cast<std::size_t>(f)];
        Operand place = own_part(plan_, f, whole, Access::write);
        place.fresh = true;
        mover_.move(out, shard, place, "bring", part, op.micro_step);
        shard = own_part(plan_, f, whole, Access::read);
        full = updates(plan_, whole);
        if (!sharded_) back.emplace_back(reads(plan_, whole), writes(plan_, home));
      } else {
        const Operand home = full;
        const BufferId staged = mover_.beside(home.buffer, Memory::device, home.bytes,
                                              plan_.text(plan_.buffer(home.buffer).name, " refreshed"));
        Operand from = home;
        from.access = Access::read;
        mover_.move(out, from, writes(plan_, staged), "bring", part, op.micro_step);
        full = updates(plan_, staged);
        back.emplace_back(reads(plan_, staged), home);
      }
    }
    const std::int32_t micro_step = op.micro_step;
    out.push_back(op);
    for (const auto& [from, to] : back) mover_.move(out, from, to, "take back", part, micro_step);
  }

  /// Where a flat's owner computes with it, in place of where it rests.
  void use_sent(Op& op) const {
    if (!std::holds_alternative<Compute>(op.action) && !std::holds_alternative<Digest>(op.action)) return;
    for (Operand& o : plan_.own_operands(op))
      if (is_resting(o)) o.buffer = plan_.flat_gathered[static_cast<std::size_t>(flat_of_.at(o.buffer.value))];
  }

 private:
  /// A broadcast by the flats' owner, who brings them for it; a refresh is taken back by the others.
  void place_sending(std::vector<Op>& out, Op op) {
    const Part part = sharded_ ? op.part : Part::optimizer;
    const std::int32_t micro_step = op.micro_step;
    const List<Segment> segments = std::get<Communicate>(op.action).segments;
    const std::span<Operand> operands = plan_.own_operands(op);
    std::vector<std::pair<std::int32_t, BufferId>> back;
    for (const Segment& s : segments) {
      Operand& full = operands[static_cast<std::size_t>(s.full_operand)];
      if (const auto it = foreign_.find(full.buffer.value); it != foreign_.end()) {
        Mover::lack(out, it->second, Stream::copy_in, part, micro_step);
        continue;
      }
      if (!is_resting(full)) continue;
      const BufferId home = full.buffer;
      const std::int32_t f = flat_of_.at(home.value);
      full.buffer = plan_.flat_gathered[static_cast<std::size_t>(f)];
      if (is_foreign(plan_, f))
        Mover::lack(out, f, Stream::copy_in, part, micro_step);
      else
        mover_.move(out, reads(plan_, home), writes(plan_, full.buffer), "bring", part, micro_step);
      if (!sharded_) back.emplace_back(f, home);
    }
    out.push_back(op);
    for (const auto& [f, home] : back)
      if (is_foreign(plan_, f))
        mover_.move(out, reads(plan_, plan_.flat_gathered[static_cast<std::size_t>(f)]), writes(plan_, home),
                    "take back", part, micro_step);
      else
        Mover::lack(out, f, Stream::copy_out, part, micro_step);
  }

  [[nodiscard]] bool is_resting(const Operand& o) const { return flat_of_.contains(o.buffer.value); }
  /// Is the unit's k-th fetch of the step left out, because it is still there?
  [[nodiscard]] bool is_held(UnitId unit, std::size_t k) const {
    const auto& held = plan_.placed.held;
    const auto u = static_cast<std::size_t>(unit.value);
    return u < held.size() && k < held[u].size() && held[u][k];
  }

  /// Stages 0 to 2: where the flats that rest on the host are while they are used.
  void make_fetched() {
    plan_.flat_gathered.resize(plan_.flats.size());
    for (const auto& [buffer, f] : flat_of_) {
      const Buffer& home = plan_.buffer(BufferId{buffer});
      const Buffer fetched{.name = plan_.text("fetched ", home.name),
                           .category = Category::gathered,
                           .dtype = home.dtype,
                           .bytes = home.bytes,
                           .unit = home.unit};
      plan_.flat_gathered[static_cast<std::size_t>(f)] = plan_.add_buffer(fetched);
    }
  }

  /// Stage 3: where an owner's flats that rest on the host are while they are sent and used.
  void make_sent() {
    for (const auto& [buffer, f] : flat_of_) {
      BufferId& gathered = plan_.flat_gathered[static_cast<std::size_t>(f)];
      if (gathered != BufferId{buffer}) continue;
      const Buffer home = plan_.buffer(gathered);
      gathered =
          plan_.add_buffer({.name = plan_.text("gathered ", flat_name(plan_, plan_.flats[static_cast<std::size_t>(f)])),
                            .category = Category::gathered,
                            .dtype = home.dtype,
                            .bytes = home.bytes,
                            .unit = home.unit});
    }
  }

  std::vector<Op> with_fetches(std::vector<Op> ops) {
    if (flat_of_.empty()) return ops;
    std::vector<UnitId> unit_of(plan_.buffers.size());
    for (const auto& [home, f] : flat_of_) {
      const auto flat = static_cast<std::size_t>(f);
      unit_of[static_cast<std::size_t>(plan_.flat_gathered[flat].value)] = plan_.flats[flat].unit;
    }
    for (Op& op : ops) {
      if (!std::holds_alternative<Compute>(op.action)) continue;
      for (Operand& o : plan_.own_operands(op))
        if (is_resting(o)) o.buffer = plan_.flat_gathered[static_cast<std::size_t>(flat_of_.at(o.buffer.value))];
    }
    const auto points = fetch_points(plan_, ops, unit_of);
    std::vector<std::size_t> fetched(plan_.units.size(), 0);
    std::vector<Op> out;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (const auto it = points.find(i); it != points.end())
        for (UnitId unit : it->second) {
          if (is_held(unit, fetched[static_cast<std::size_t>(unit.value)]++)) continue;
          for (std::int32_t f : plan_.units[static_cast<std::size_t>(unit.value)].flats) {
            const auto flat = static_cast<std::size_t>(f);
            mover_.move(out, reads(plan_, plan_.flat_parameters[flat]), writes(plan_, plan_.flat_gathered[flat]),
                        "bring", Part::gather, ops[i].micro_step);
          }
        }
      out.push_back(ops[i]);
    }
    return out;
  }

  Plan& plan_;
  Mover& mover_;
  bool sharded_;
  std::map<std::int32_t, std::int32_t> flat_of_;  // by buffer: the flat whose parameters rest in it on the host
  std::map<std::int32_t, std::int32_t> foreign_;  // by buffer gathered into: the flat that rests on another's host
};

}  // namespace

std::vector<Op> place_parameters(Plan& plan, Mover& mover, std::vector<Op> step) {
  return Parameters(plan, mover).place(std::move(step));
}

void place_creation(Plan& plan, Mover& mover) {
  std::vector<Op>& ops = plan.find(Phase::creation)->ops;
  std::vector<Op> out;
  for (Op& op : ops) {
    const auto* absent = std::get_if<Absent>(&op.action);
    if (absent != nullptr && absent->flat >= 0 && resting(plan, absent->flat).optimizer == Memory::disk)
      out.push_back(op);
    // Nothing is computed on disk.
    if (!op.operands.empty() && plan.buffer(op.operands[0].buffer).memory == Memory::disk)
      mover.run_in(out, op, Memory::host);
    else
      out.push_back(op);
  }
  ops = std::move(out);
}

namespace {

[[nodiscard]] bool digests_state(const Op& op) {
  const auto* digest = std::get_if<Digest>(&op.action);
  return digest != nullptr && digest->content != Digest::Content::parameter;
}

/// State that its owner sends to the digest from the device; returns where it then is, in place of its home.
std::pair<BufferId, BufferId> place_owned_state(Plan& plan, Mover& mover, std::vector<Op>& out, Op op) {
  const auto& call = std::get<Communicate>(op.action);
  Operand& full = plan.own_operands(op)[static_cast<std::size_t>(call.segments.front().full_operand)];
  const std::int32_t f = plan.units[static_cast<std::size_t>(call.unit.value)].flats.front();
  const BufferId home = full.buffer;
  const int moves = hops(resting(plan, f).optimizer, Memory::device);
  if (moves > 0 && full.reads()) {
    full.buffer = mover.beside(home, Memory::device, full.bytes, plan.text(plan.buffer(home).name, " staged"));
    plan.buffer(full.buffer).category = Category::communication;
    mover.move(out, reads(plan, home), writes(plan, full.buffer), "stage", Part::digest);
  } else {
    for (int i = 0; i < moves; ++i) Mover::lack(out, f, Stream::copy_in, Part::digest);
  }
  const BufferId staged = full.buffer;
  out.push_back(op);
  return {home, staged};
}

}  // namespace

void place_digest(Plan& plan, Mover& mover) {
  std::vector<Op>& ops = plan.find(Phase::digest)->ops;
  Parameters parameters(plan, mover);
  std::vector<Op> out;
  std::pair<BufferId, BufferId> staged;  // of owned state: home, on the device
  const bool owners = plan.strategy.has_owners();
  for (Op& op : ops) {
    const auto memory = [&](std::size_t i) { return plan.buffer(op.operands[i].buffer).memory; };
    if (owners && digests_state(op) && op.operands[0].buffer == staged.first)
      plan.own_operands(op)[0].buffer = staged.second;
    else if (owners && plan.strategy.effective_stage() == 3)
      parameters.use_sent(op);
    const auto* call = std::get_if<Communicate>(&op.action);
    // What is sent is digested next.
    if (owners && call != nullptr && digests_state(*(&op + 1))) {
      staged = place_owned_state(plan, mover, out, op);
    } else if (std::holds_alternative<Communicate>(op.action)) {
      parameters.place_call(out, op);
    } else if (std::holds_alternative<Digest>(op.action) && memory(0) == Memory::disk) {
      mover.run_in(out, op, Memory::host);
    } else if (std::holds_alternative<Copy>(op.action) && memory(0) != Memory::device) {
      std::vector<Op> moves;
      mover.move(moves, op.operands[0], op.operands[1], "stage", Part::digest);
      out.insert(out.end(), moves.begin(), moves.end());
    } else {
      if (const auto* absent = std::get_if<Absent>(&op.action);
          absent != nullptr && absent->flat >= 0 && resting(plan, absent->flat).optimizer == Memory::disk)
        out.push_back(op);
      out.push_back(op);
    }
  }
  ops = std::move(out);
}

}  // namespace shard::plan
