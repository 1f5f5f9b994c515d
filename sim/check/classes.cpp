// What the classes of a plan set must agree on, and who steps what.
#include "sim/check/classes.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sim/check/flat_of.h"

namespace shard::plan::verification {
namespace {

/// Only who owns something has these; all other ops are on every rank.
bool may_be_missing(const Plan& plan, const Op& op) {
  if (plan.strategy.has_owners()) {
    // Only a unit's owner has more of it than what is gathered and a micro-step's gradient.
    if (std::holds_alternative<Initialize>(op.action)) return true;
    if (std::holds_alternative<Accumulate>(op.action)) return true;
    if (const auto* call = std::get_if<Communicate>(&op.action); call != nullptr && call->group == Group::replica)
      return true;
  }
  if (std::holds_alternative<Initialize>(op.action) && !op.operands.empty())
    return plan.buffer(op.operands.front().buffer).category == Category::master_parameter;
  return std::holds_alternative<OptimizerStep>(op.action) || std::holds_alternative<ZeroState>(op.action) ||
         std::holds_alternative<Copy>(op.action) || std::holds_alternative<InspectGradient>(op.action) ||
         std::holds_alternative<Save>(op.action);
}

std::string difference(const Plan& p, const Op& a, const Plan& q, const Op& b) {
  if (a.id != b.id) return "it has id " + std::to_string(b.id.value) + " there";
  if (a.name != b.name || a.action.index() != b.action.index()) return "it is \"" + std::string(b.name) + "\" there";
  if (a.stream != b.stream || a.micro_step != b.micro_step) return "it runs elsewhere there";
  if (a.operands.size() != b.operands.size()) return "it has other operands there";
  const auto* x = std::get_if<Communicate>(&a.action);
  // An owner only reads what it sends.
  const bool sent = x != nullptr && x->kind == Collective::broadcast && p.strategy.has_owners();
  for (std::size_t i = 0; i < a.operands.size(); ++i) {
    if (a.operands[i].bytes != b.operands[i].bytes || (!sent && a.operands[i].access != b.operands[i].access))
      return "operand " + std::to_string(i) + " differs";
    if (sent && flat_in(p, a.operands[i].buffer) != flat_in(q, b.operands[i].buffer))
      return "operand " + std::to_string(i) + " is of another flat";
  }
  if (x == nullptr) return {};
  const auto& y = std::get<Communicate>(b.action);
  if (x->kind != y.kind || x->root != y.root || x->group != y.group || x->segments.size() != y.segments.size())
    return "another collective is called there";
  for (std::size_t i = 0; i < x->segments.size(); ++i)
    if (x->segments[i].elems != y.segments[i].elems) return "segment " + std::to_string(i) + " differs";
  return {};
}

/// P19
void agree(const Plan& a, const Plan& b, Faults& faults) {
  faults.at(nullptr, nullptr);
  if (a.phases.size() != b.phases.size()) return faults.fail("P19", "classes have different phases");
  for (std::size_t p = 0; p < a.phases.size() && !faults.failed(); ++p) {
    const PhaseOps& x = a.phases[p];
    const PhaseOps& y = b.phases[p];
    if (x.phase != y.phase) return faults.fail("P19", "classes have different phases");
    std::size_t i = 0;
    std::size_t j = 0;
    const std::string other = "rank " + std::to_string(b.rank);
    while (!faults.failed() && (i < x.ops.size() || j < y.ops.size())) {
      if (i < x.ops.size() && may_be_missing(a, x.ops[i])) {
        ++i;
      } else if (j < y.ops.size() && may_be_missing(b, y.ops[j])) {
        ++j;
      } else if (i == x.ops.size() || j == y.ops.size()) {
        faults.at(&x, i < x.ops.size() ? &x.ops[i] : &y.ops[j]);
        faults.fail("P19", (i < x.ops.size() ? other : "this rank") + " lacks this op");
      } else {
        faults.at(&x, &x.ops[i]);
        if (const std::string d = difference(a, x.ops[i++], b, y.ops[j++]); !d.empty())
          faults.fail("P19", other + " disagrees on this op: " + d);
      }
    }
  }
}

/// Elements of a flat.
using Interval = std::pair<std::int64_t, std::int64_t>;

/// Where they do not lie one behind the other from the first element on, in words; else empty, and `end` is their end.
std::string gap_or_overlap(std::vector<Interval>& intervals, std::size_t flat, const char* done, std::int64_t& end) {
  std::sort(intervals.begin(), intervals.end());
  end = 0;
  for (const auto& [first, last] : intervals) {
    if (first != end)
      return "elements from " + std::to_string(std::min(first, end)) + " of flat " + std::to_string(flat) + " are " +
             done + (first > end ? " by no rank" : " twice");
    end = last;
  }
  return {};
}

std::string none_from(std::int64_t end, std::size_t flat, const char* done) {
  return "elements from " + std::to_string(end) + " of flat " + std::to_string(flat) + " are " + done + " by no rank";
}

/// P16: every element of every flat is stepped by all ranks (stage 0) or by exactly one.
void check_steps(const PlanSet& plans, Faults& faults) {
  const Plan& any = plans.classes.front();
  const Strategy& s = any.strategy;
  std::vector<std::vector<Interval>> stepped(any.flats.size());
  // One shard group of the first tensor rank: stage 0 has one class, and the others are alike (P19).
  const std::int32_t ranks = s.effective_stage() == 0 ? 1 : s.shard_degree();
  for (std::int32_t r = 0; r < ranks; ++r)
    for (const Op& op : plans.of_rank(r * s.tensor_parallel).find(Phase::steady_step)->ops)
      if (const auto* a = std::get_if<OptimizerStep>(&op.action)) {
        const std::int64_t first = a->first_elem.count() + r * a->rank_stride_elems.count();
        stepped[static_cast<std::size_t>(a->flat)].emplace_back(first, first + a->elems.count());
      }
  faults.at(nullptr, nullptr);
  for (std::size_t f = 0; f < stepped.size(); ++f) {
    std::int64_t end = 0;
    if (const std::string wrong = gap_or_overlap(stepped[f], f, "stepped", end); !wrong.empty())
      return faults.fail("P16", wrong);
    if (any.flats[f].frozen) {
      if (end > 0)
        return faults.fail("P30", "flat " + std::to_string(f) + " is stepped, and its parameters are frozen");
      continue;
    }
    if (end != any.flats[f].used.count()) return faults.fail("P16", none_from(end, f, "stepped"));
  }
}

/// What the rank hands out, of elements that others may have too.
Interval handed_out(const Save& a, const Topology& topology, std::int32_t rank) {
  const Position at = position(topology, rank);
  const std::int64_t holders = a.held == Save::Held::by_data_ranks ? topology.data_parallel()
                               : a.held == Save::Held::by_replicas ? topology.replicas()
                                                                   : 1;
  const std::int64_t own = a.held == Save::Held::by_data_ranks ? at.data
                           : a.held == Save::Held::by_replicas ? at.replica
                                                               : 0;
  const std::int64_t first = a.first_elem.count() + at.shard * a.rank_stride_elems.count();
  const std::int64_t all = a.elems.count();
  return {first + all * own / holders, first + all * (own + 1) / holders};
}

/// P36: over the ranks of a part of the model every element of every parameter, and of every moment where there is a
/// step, is handed out once.
void check_saves(const PlanSet& plans, Faults& faults) {
  const Plan& any = plans.classes.front();
  const Strategy& s = any.strategy;
  struct Saved {
    const char* what;
    bool of_steps;
    std::vector<std::vector<Interval>> by_flat;
  };
  const std::vector<std::vector<Interval>> none(any.flats.size());
  std::array saved{Saved{"saved", false, none}, Saved{"saved as first moments", true, none},
                   Saved{"saved as second moments", true, none}};
  for (std::int32_t r = 0; r < s.data_parallel(); ++r) {
    const std::int32_t rank = r * s.tensor_parallel;
    const PhaseOps* const phase = plans.of_rank(rank).find(Phase::save);
    if (phase == nullptr) return;  // P21
    for (const Op& op : phase->ops) {
      const auto* a = std::get_if<Save>(&op.action);
      if (a == nullptr || a->flat < 0 || a->content == StateContent::step_counts ||
          a->content == StateContent::loss_scaler)
        continue;
      const std::size_t which = a->content == StateContent::first_moment    ? 1
                                : a->content == StateContent::second_moment ? 2
                                                                            : 0;
      if (const Interval own = handed_out(*a, s.topology(), rank); own.first < own.second)
        saved[which].by_flat[static_cast<std::size_t>(a->flat)].push_back(own);
    }
  }
  faults.at(nullptr, nullptr);
  for (Saved& each : saved)
    for (std::size_t f = 0; f < each.by_flat.size(); ++f) {
      std::int64_t end = 0;
      if (const std::string wrong = gap_or_overlap(each.by_flat[f], f, each.what, end); !wrong.empty())
        return faults.fail("P36", wrong);
      const bool has_none = each.of_steps && (any.flats[f].frozen || s.optimizer == OptimizerKind::sgd);
      if (end != (has_none ? 0 : any.flats[f].used.count())) return faults.fail("P36", none_from(end, f, each.what));
    }
}

/// Broadcasts and reductions have a root.
void check_roots(const PlanSet& plans, Faults& faults) {
  const Strategy& s = plans.classes.front().strategy;
  for (const Plan& plan : plans.classes)
    for (const PhaseOps& phase : plan.phases)
      for (const Op& op : phase.ops)
        if (const auto* call = std::get_if<Communicate>(&op.action);
            call != nullptr && (call->kind == Collective::broadcast || call->kind == Collective::reduce) &&
            (call->root < 0 || call->root >= size_of(s.topology(), call->group))) {
          faults.at(&phase, &op);
          faults.fail("P18", "there is no rank " + std::to_string(call->root));
        }
}

}  // namespace

void check_classes(const PlanSet& plans, Faults& faults) {
  const auto known = static_cast<std::int32_t>(plans.classes.size());
  if (plans.classes.empty() ||
      plans.class_of_rank.size() != static_cast<std::size_t>(plans.classes.front().strategy.world_size) ||
      std::any_of(plans.class_of_rank.begin(), plans.class_of_rank.end(),
                  [&](std::int32_t c) { return c < 0 || c >= known; }))
    return faults.fail("P19", "not every rank has a class");
  for (std::size_t c = 1; c < plans.classes.size() && !faults.failed(); ++c)
    agree(plans.classes.front(), plans.classes[c], faults);
  check_roots(plans, faults);
  check_steps(plans, faults);
  if (!faults.failed()) check_saves(plans, faults);
}

}  // namespace shard::plan::verification
