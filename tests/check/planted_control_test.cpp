// Does the verifier find bugs of norms, overflow and loss scaling?
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/check/planted_strategies.h"
#include "tests/check/planting.h"

namespace shard::plan {
namespace {

/// The facts of all ranks are taken from this rank alone.
void decide_alone(Plan& plan, std::vector<Op>& ops) {
  const BufferId facts = named(plan, "gradient facts");
  for (Op& op : ops) {
    edit(op.release).remove(facts);
    if (op.name != "decide") continue;
    edit(op.operands)[0] = {.buffer = facts, .bytes = plan.buffer(facts).bytes.count()};
    edit(op.release).push_back(facts);
    std::get<Decide>(op.action) = {.members = 1, .counted = 1};
  }
}
const Planted kOfControl[] = {
    {"FactsNotReset", "P8", clipped(2), drop("begin control")},
    {"OneTensorNotInspected", "P26", clipped(2), drop("inspect block 0")},
    {"InspectedTwice", "P26", clipped(1), twice("inspect block 0")},
    {"InspectedBeforeItIsReduced", "P15", clipped(0), in_steps([](Plan&, std::vector<Op>& ops) {
       const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
       const std::size_t reduction = find_op(view, "reduce transformer.wte");
       const std::size_t inspection = find_op(view, "inspect transformer.wte");
       std::swap(ops[reduction].operands, ops[inspection].operands);
       std::swap(ops[reduction].action, ops[inspection].action);
       std::swap(ops[reduction].name, ops[inspection].name);
     })},
    {"FactsSentTooEarly", "P26", clipped(2), in_steps([](Plan&, std::vector<Op>& ops) {
       const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
       const std::size_t gather = find_op(view, "gather gradient facts");
       std::swap(ops[gather - 1], ops[gather]);
       std::swap(ops[gather - 1].id, ops[gather].id);
       std::swap(ops[gather - 1].release, ops[gather].release);
       for (Op& op : ops) edit(op.dependencies).remove(ops[gather].id);
       edit(ops[gather - 1].dependencies).clear();
     })},
    {"ClippedByOwnNorm", "P26", clipped(2), in_steps(decide_alone)},
    {"OverflowOfOneRankAlone", "P26", scaled(1), in_steps(decide_alone)},
    {"SteppedBeforeTheDecision", "P8", clipped_sgd(), swap_with_next("decide")},
    {"LossNotScaled", "P9", scaled(2),
     at_op("loss backward", 0, [](Plan&, Op& op) { std::get<Compute>(op.action).scaled = false; })},
    {"LossScaledByThatOfTheNextStep", "P10", scaled(2),
     at_op("loss backward", 0, [](Plan& p, Op& op) { edit(op.operands).back().buffer = named(p, "loss scaler"); })},
    {"ScalerNotUpdated", "P26", scaled(0),
     at_op("decide", 0, [](Plan&, Op& op) { edit(op.operands)[3].access = Access::read; })},
    {"LocalOverflowNotLookedFor", "P26", scaled(2), drop("inspect own block 1", 1)},
    {"LocalOverflowNotLookedForAlone", "P26", scaled(0, 1), drop("inspect own block 1")},
    {"PredivideForgotten", "P26", clipped(0),
     at_op("step block 0", 0, [](Plan&, Op& op) { std::get<OptimizerStep>(op.action).factor = 0.5f; })},
};

INSTANTIATE_TEST_SUITE_P(Control, PlantedBugs, testing::ValuesIn(kOfControl), name_of);

}  // namespace
}  // namespace shard::plan
