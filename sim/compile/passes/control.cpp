// Loss scale, norm of the gradient, overflow.
#include "sim/compile/passes/control.h"

#include <map>

#include "sim/compile/parameter_units.h"
#include "sim/compile/passes/collectives.h"
#include "sim/compile/passes/operands.h"
#include "sim/ir/control_block.h"

namespace shard::plan {
namespace {

/// A sum of whole local gradients over ranks, the first that a gradient goes through.
[[nodiscard]] bool reduces_local_gradients(const Op& op) {
  const auto* call = std::get_if<Communicate>(&op.action);
  return call != nullptr && op.part == Part::reduce && call->group != Group::replica &&
         (call->kind == Collective::reduce_scatter || call->kind == Collective::all_reduce ||
          call->kind == Collective::reduce);
}

}  // namespace

Operand Control::facts_of(bool local) const {
  Operand o = updates(plan_, facts_);
  o.bytes = kGradientFactsBytes.count();
  if (local) o.offset = kGradientFactsBytes.count();
  return o;
}

void Control::begin(std::vector<Op>& ops) {
  const bool scaler = plan_.strategy.has_scaler();
  knobs_ = plan_.add_buffer(
      {.name = "control knobs", .category = Category::input, .bytes = kControlKnobsBytes, .persistent = true});
  facts_ = plan_.add_buffer({.name = "gradient facts",
                             .category = Category::workspace,
                             .dtype = Dtype::i64,
                             .bytes = (scaler ? 2 : 1) * kGradientFactsBytes});
  Op begin{.name = "begin control",
           .part = Part::data,
           .action = BeginControl{},
           .operands = plan_.list({reads(plan_, knobs_), writes(plan_, facts_)})};
  if (scaler) {
    scaler_ = plan_.add_buffer(
        {.name = "loss scaler", .category = Category::optimizer_state, .bytes = kScalerStateBytes, .persistent = true});
    plan_.loss_scaler = scaler_;
    loss_scale_ = plan_.add_buffer({.name = "loss scale", .category = Category::input, .bytes = Bytes{kScalarBytes}});
    plan_.add_operand(begin, updates(plan_, scaler_));
    plan_.add_operand(begin, writes(plan_, loss_scale_));
    scale_losses(ops);
    ops = with_local_inspections(std::move(ops));
  }
  std::vector<Op> head;
  if (scaler)
    head.push_back({.name = "zero loss scaler",
                    .part = Part::optimizer,
                    .first_step_only = true,
                    .action = ZeroState{.content = StateContent::loss_scaler},
                    .operands = plan_.list({writes(plan_, scaler_)})});
  head.push_back(begin);
  plan_.add_operand(ops.front(), writes(plan_, knobs_));
  ops.insert(ops.begin() + 1, head.begin(), head.end());
}

void Control::scale_losses(std::vector<Op>& ops) const {
  for (Op& op : ops)
    if (auto* c = std::get_if<Compute>(&op.action);
        c != nullptr && c->direction == Direction::backward && model::row(c->kind).loss) {
      c->scaled = true;
      insert_operand(plan_, op, *c, model::Role::loss_scale, reads(plan_, loss_scale_));
    }
}

Op Control::inspect_local(std::int32_t f, const Operand& gradient, std::int32_t micro_step) const {
  const Flat& flat = plan_.flats[static_cast<std::size_t>(f)];
  Operand real = gradient;
  real.bytes = flat.used.count() * element_bytes(plan_, gradient.buffer);
  real.access = Access::read;
  real.fresh = false;
  return {.name = plan_.text("inspect own ", plan_.units[static_cast<std::size_t>(flat.unit.value)].name),
          .part = Part::reduce,
          .micro_step = micro_step,
          .action = InspectGradient{.of = InspectGradient::Of::local, .flat = f, .elems = flat.used},
          .operands = plan_.list({real, facts_of(true)})};
}

std::vector<Op> Control::with_local_inspections(std::vector<Op> ops) const {
  // One rank reduces nothing: each gradient is inspected behind what completes it.
  std::map<std::size_t, std::vector<std::int32_t>> complete;  // op index -> flats
  if (plan_.strategy.data_parallel() == 1) {
    std::vector<std::size_t> last(plan_.buffers.size(), 0);  // by buffer: the last op that writes it
    for (std::size_t i = 0; i < ops.size(); ++i)
      for (const Operand& o : ops[i].operands)
        if (o.writes()) last[static_cast<std::size_t>(o.buffer.value)] = i;
    for (std::size_t f = 0; f < plan_.flats.size(); ++f)
      if (!plan_.flats[f].frozen)
        complete[last[static_cast<std::size_t>(plan_.flat_gradients[f].value)]].push_back(static_cast<std::int32_t>(f));
  }
  std::vector<Op> result;
  result.reserve(ops.size() + plan_.flats.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (reduces_local_gradients(ops[i])) {
      const auto& call = std::get<Communicate>(ops[i].action);
      std::map<std::int32_t, std::size_t> seen;  // by unit, of which a call may reduce several: its flats so far
      for (const Segment& segment : call.segments) {
        const Operand& full = ops[i].operands[static_cast<std::size_t>(segment.full_operand)];
        const std::int32_t unit = plan_.buffer(full.buffer).unit.value;
        const std::int32_t f = trained_part(plan_, plan_.units[static_cast<std::size_t>(unit)]).flats[seen[unit]++];
        result.push_back(inspect_local(f, full, ops[i].micro_step));
      }
    }
    const std::int32_t micro_step = ops[i].micro_step;
    result.push_back(ops[i]);
    if (const auto it = complete.find(i); it != complete.end())
      for (std::int32_t f : it->second)
        result.push_back(inspect_local(f, reads(plan_, plan_.flat_gradients[static_cast<std::size_t>(f)]), micro_step));
  }
  return result;
}

void Control::decide(std::vector<Op>& ops, const std::vector<SteppedGradient>& stepped) {
  for (const SteppedGradient& s : stepped) {
    Op op{.name = plan_.text("inspect ", s.name),
          .part = Part::optimizer,
          .action = Absent{.lacks = Absent::Lacks::inspect, .flat = s.flat},
          .operands = {}};
    if (s.elems > 0) {
      op.action = InspectGradient{.of = InspectGradient::Of::stepped,
                                  .flat = s.flat,
                                  .first_elem = Elems{s.first},
                                  .rank_stride_elems = Elems{s.rank_stride},
                                  .elems = Elems{s.elems}};
      op.operands = plan_.list({s.gradient, facts_of(false)});
    }
    ops.push_back(op);
  }
  const Strategy& strategy = plan_.strategy;
  const bool scaler = strategy.has_scaler();
  // Stage 0 steps everything on every rank; shards are stepped once in a shard group; each by all that share a model.
  const std::int32_t parts = strategy.tensor_parallel;
  const std::int32_t counted = (strategy.effective_stage() == 0 ? 1 : strategy.shard_degree()) * parts;
  const Group group = parts > 1 ? Group::world : scaler ? Group::data : Group::shard;
  const std::int32_t members = scaler || counted > 1 ? size_of(plan_.topology, group) : 1;
  BufferId all = facts_;
  if (members > 1) {
    all = plan_.add_buffer({.name = "gradient facts of all ranks",
                            .category = Category::workspace,
                            .dtype = Dtype::i64,
                            .bytes = members * plan_.buffer(facts_).bytes});
    ops.push_back(make_collective(plan_, Collective::all_gather, group, "gather gradient facts", Part::optimizer,
                                  UnitId{}, {{.flat = -1, .full = writes(plan_, all), .shard = reads(plan_, facts_)}}));
  }
  plan_.control = plan_.add_buffer(
      {.name = "control", .category = Category::input, .bytes = kControlBlockBytes, .persistent = true});
  Op decide{.name = "decide",
            .part = Part::optimizer,
            .action = Decide{.members = members,
                             .counted = counted,
                             .factor = strategy.gradient_factor(),
                             .clips = strategy.clip_norm},
            .operands = plan_.list({reads(plan_, all), reads(plan_, knobs_), writes(plan_, plan_.control)})};
  if (scaler) plan_.add_operand(decide, updates(plan_, scaler_));
  ops.push_back(decide);
}

}  // namespace shard::plan
