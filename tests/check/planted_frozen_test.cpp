// Does the verifier find bugs of frozen parameters, and of operands that an op does not say it has?
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/check/planted_strategies.h"
#include "tests/check/planting.h"

namespace shard::plan {
namespace {

std::int32_t first_frozen(const Plan& plan) {
  const auto at = std::ranges::find(plan.flats, true, &Flat::frozen);
  return static_cast<std::int32_t>(at - plan.flats.begin());
}
const Planted kFrozen[] = {
    {"StepsWhatIsFrozen", "P30", freezing(0, {"transformer.h.1.*"}),
     [](PlanSet& plans) {
       twice("step block 0")(plans);
       at_op("step block 0", 1,
             [](Plan& p, Op& op) { std::get<OptimizerStep>(op.action).flat = first_frozen(p); })(plans);
     }},
    {"MastersOfWhatIsFrozen", "P30", freezing(0, {"transformer.h.1.*"}, Precision::bf16),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) {
         PhaseOps& creation = *p.find(Phase::creation);
         std::get<Initialize>(creation.ops[find_op(creation, "initialize masters block 0")].action).flat =
             first_frozen(p);
       }
     }},
    {"RefreshesWhatIsFrozen", "P30", freezing(1, {"transformer.h.1.*"}),
     at_op("refresh block 0", 0,
           [](Plan& p, Op& op) {
             for (Operand& o : edit(op.operands))
               o.buffer = p.flat_parameters[static_cast<std::size_t>(first_frozen(p))];
           })},
    {"AParameterOfThePatternIsTrained", "P30", freezing(2, {"transformer.h.1.*"}),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) {
         auto model = std::make_shared<model::Model>(*p.model);
         model->frozen.clear();
         p.model = model;
       }
     }},
    {"FrozenAndTrainedShareAFlat", "P30", freezing(2, {"*.bias"}),
     [](PlanSet& plans) {
       // A norm's weight and bias are equally large.
       for (Plan& p : plans.classes) {
         const auto f = static_cast<std::size_t>(first_frozen(p));
         std::swap(p.flats[f].items[0].param, p.flats[f - 1].items[0].param);
       }
     }},
    {"GradientOfWhatNothingTrainedIsUnder", "P30", freezing(0, {"transformer.w*", "transformer.h.0.*"}),
     at_op("transformer.h.1.ln_1 backward", 0,
           [](Plan&, Op& op) {
             Operand dx = op.operands[4];
             dx.access = Access::write;
             auto operands = edit(op.operands);
             operands.insert(operands.begin() + 5, dx);
             std::get<Compute>(op.action).input_gradient = true;
           })},
    {"GradientThatTheOpDoesNotSayItHas", "P9", zero(3),
     at_op("transformer.h.1.ln_1 backward", 0,
           [](Plan&, Op& op) { std::get<Compute>(op.action).input_gradient = false; })},
    {"GradientOfTheInputLeftOut", "P12", zero(3),
     at_op("transformer.h.1.ln_1 backward", 0,
           [](Plan&, Op& op) {
             auto& c = std::get<Compute>(op.action);
             const auto dx = static_cast<std::ptrdiff_t>(signature(c).position(model::Role::dx));
             auto operands = edit(op.operands);
             operands.erase(operands.begin() + dx);
             c.input_gradient = false;
           })},
    {"GradientInPlaceThatSaysItIsApart", "P9", zero(3),
     at_op("transformer.h.0.mlp.act backward", 0,
           [](Plan&, Op& op) { std::get<Compute>(op.action).in_place = false; })},
    {"WorkspaceThatTheOpDoesNotSayItHas", "P9", zero(3),
     at_op("transformer.h.1.attn backward", 0, [](Plan&, Op& op) { std::get<Compute>(op.action).workspace = false; })},
    {"WorkspaceLeftOut", "P9", zero(3),
     at_op("transformer.h.1.attn backward", 0,
           [](Plan&, Op& op) {
             edit(op.operands).pop_back();
             std::get<Compute>(op.action).workspace = false;
           })},
    {"BiasOfAFrozenProductForgotten", "P8", freezing(2, {"*c_attn.weight"}),
     drop("transformer.h.1.attn.c_attn backward_weight")},
    {"InputOfAFrozenProductForgotten", "P8", freezing(2, {"*c_attn.*"}),
     drop("transformer.h.1.attn.c_attn backward_input")},
};

INSTANTIATE_TEST_SUITE_P(Frozen, PlantedBugs, testing::ValuesIn(kFrozen), name_of);

}  // namespace
}  // namespace shard::plan
