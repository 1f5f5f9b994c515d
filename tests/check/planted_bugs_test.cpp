// Does the verifier find each of these bugs, planted into plans that are right, and name the rule that forbids it?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/check/verify.h"
#include "tests/check/planted_strategies.h"
#include "tests/check/planting.h"

namespace shard::plan {

using testing::EndsWith;

TEST_P(PlantedBugs, IsFoundByItsRule) {
  const Planted& bug = GetParam();
  PlanSet plans = compiled(bug.model(), bug.strategy);
  ASSERT_TRUE(verify(plans)) << to_string(verify(plans).error());
  bug.plant(plans);
  const Result<void> found = verify(plans);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::internal);
  EXPECT_THAT(found.error().what, EndsWith("(" + std::string(bug.rule) + ")")) << to_string(found.error());
}

namespace {

Strategy evaluated(Strategy s) {
  s.evaluates = true;
  return s;
}

Strategy in_bf16(Strategy s) {
  s.precision = Precision::bf16;
  return s;
}

/// Those of the steps themselves.
const Planted kPlanted[] = {
    {"IdsOutOfOrder", "P1", zero(3), at_op("transformer.wpe", 0, [](Plan&, Op& op) { op.id.value += 5; })},
    {"AbsentOpLeftBehind", "P1", zero(3), at_op("mean loss", 0, [](Plan&, Op& op) { op.action = Absent{}; })},
    {"BufferShrunk", "P2", zero(3),
     at_op("transformer.h.0.mlp.c_fc", 0, [](Plan& p, Op& op) { buffer_of(p, op, 3).bytes = Bytes{64}; })},
    {"RankStrideTooFar", "P2", zero(1), at_op("step", 0, [](Plan&, Op& op) { edit(op.operands)[0].rank_stride *= 64; })},
    {"EdgeToALaterOp", "P3", zero(3),
     at_op("transformer.wpe", 0, [](Plan&, Op& op) { edit(op.dependencies).push_back(OpId{op.id.value + 1}); })},
    {"EdgeWithinAStream", "P3", zero(3),
     at_op("transformer.h.0.mlp.act", 0, [](Plan&, Op& op) { edit(op.dependencies).push_back(OpId{op.id.value - 1}); })},
    {"ReleasedEarly", "P4", zero(3), release_at("transformer.h.0.ln_1")},
    {"NeverReleased", "P4", zero(3), in_steps([](Plan&, std::vector<Op>& ops) {
       for (auto it = ops.rbegin(); it != ops.rend(); ++it)
         if (!it->release.empty()) return edit(it->release).pop_back();
     })},
    {"TakenTwice", "P4", zero(3), in_steps([](Plan&, std::vector<Op>& ops) {
       for (std::size_t i = 0; i < ops.size(); ++i)
         if (!ops[i].acquire.empty() && ops[i].release.empty() && i > 3)
           return edit(ops[i + 1].acquire).push_back(ops[i].acquire.back());
     })},
    {"OffsetShifted", "P5", zero(3),
     at_op("transformer.h.0.mlp.c_fc", 0, [](Plan& p, Op& op) { buffer_of(p, op, 0).offset = buffer_of(p, op, 3).offset; })},
    {"OffsetNotAligned", "P5", zero(2), at_op("load scalars", 0, [](Plan& p, Op& op) { ++buffer_of(p, op, 0).offset; })},
    {"ArenaTooSmall", "P6", zero(3),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.arena_bytes[0] -= Bytes{64};
     }},
    {"EdgesOfAReaderDropped", "P7", zero(3),
     at_op("transformer.wte", 0, [](Plan&, Op& op) { edit(op.dependencies).clear(); })},
    {"EdgesOfAReductionDropped", "P7", zero(2), at_op("reduce", 1, [](Plan&, Op& op) { edit(op.dependencies).clear(); })},
    {"EdgesOfAGatherIntoReusedBytesDropped", "P7", zero(3), in_steps([](Plan&, std::vector<Op>& ops) {
       for (auto it = ops.rbegin(); it != ops.rend(); ++it)
         if (it->name.starts_with("gather block") && !it->dependencies.empty()) return edit(it->dependencies).clear();
     })},
    {"GatherDropped", "P8", zero(3), drop("gather block 1")},
    {"BatchNotLoaded", "P20", zero(3), drop("load batch", 1)},
    {"ReductionDropped", "P8", zero(2), drop("reduce block 0")},
    {"NewbornStateNotZeroed", "P8", zero(2),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) {
         std::vector<Op>& ops = p.find(Phase::first_step)->ops;
         const std::size_t i = find_op(*p.find(Phase::first_step), "zero state");
         for (BufferId b : ops[i].acquire) edit(ops[i + 1].acquire).push_back(b);
         ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
       }
     }},
    {"WrongScale", "P9", zero(3),
     at_op("loss backward", 0, [](Plan&, Op& op) { std::get<Compute>(op.action).scale = 0.5f; })},
    {"WrongAccumulateFlag", "P9", zero(3),
     at_op("transformer.wte backward", 0, [](Plan&, Op& op) { std::get<Compute>(op.action).accumulate_weight = false; })},
    {"OperandMissing", "P9", zero(3),
     at_op("transformer.h.1.attn backward", 0, [](Plan&, Op& op) { auto operands = edit(op.operands); operands.erase(operands.begin()); })},
    {"OperandsSwapped", "P10", zero(3),
     at_op("transformer.h.1.ln_1 backward", 0,
           [](Plan&, Op& op) { auto operands = edit(op.operands); std::swap(operands[2].buffer, operands[3].buffer); })},
    {"NeighboursSwapped", "P8", zero(3), swap_with_next("transformer.h.0.ln_2")},
    {"RecomputationSkipsAnOp", "P8", recomputed(), drop("transformer.h.0.mlp.act again")},
    {"StaleValue", "P10", zero(3),
     at_op("transformer.h.1.ln_1", 0,
           [](Plan& p, Op& op) {
             for (std::size_t b = 0; b < p.buffers.size(); ++b)
               if (p.buffers[b].name == "transformer.h.0.attn.residual")
                 edit(op.operands)[0].buffer = BufferId{static_cast<std::int32_t>(b)};
           })},
    {"ParameterOffsetShifted", "P11", zero(3),
     at_op("transformer.h.0.attn.c_attn", 0, [](Plan&, Op& op) { edit(op.operands)[1].offset += 4; })},
    {"NeighbouringParameterRead", "P11", zero(0),
     at_op("transformer.h.0.ln_1", 0, [](Plan&, Op& op) { auto operands = edit(op.operands); std::swap(operands[1].offset, operands[2].offset); })},
    {"ResidualGradientOverwritten", "P9", zero(3),
     at_op("transformer.h.1.ln_2 backward", 0, [](Plan&, Op& op) { edit(op.operands)[5].access = Access::write; })},
    {"ResidualGradientStartedAgain", "P12", zero(3),
     at_op("transformer.h.1.ln_2 backward", 0,
           [](Plan&, Op& op) {
             edit(op.operands)[5].access = Access::write;
             std::get<Compute>(op.action).accumulate_input = false;
           })},
    {"BackwardSkipped", "P12", zero(3), drop("transformer.h.1.ln_2 backward")},
    {"TiedGradientOverwritten", "P13", zero(0),
     at_op("transformer.wte backward", 0,
           [](Plan&, Op& op) {
             edit(op.operands)[2].access = Access::write;
             std::get<Compute>(op.action).accumulate_weight = false;
           })},
    {"TiedGradientReducedTooEarly", "P13", zero(3, 2, 1), drop("transformer.wte backward")},
    {"AccumulateDropped", "P14", zero(2), drop("add gradient block 0")},
    {"AccumulateTwice", "P14", zero(2), twice("add gradient block 0")},
    {"LocalAccumulateDropped", "P14", zero(0, 1, 4), drop("add gradient", 3)},
    {"SumInOrderOfArrival", "P14", in_order_of_arrival(),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.strategy.reproducible = true;
     }},
    {"MicroBatchesDealtOtherwise", "P14", zero(3, 2, 4),
     in_steps([](Plan&, std::vector<Op>& ops) {
       std::vector<LoadBatch*> loads;
       for (Op& op : ops)
         if (auto* load = std::get_if<LoadBatch>(&op.action)) loads.push_back(load);
       std::swap(loads[1]->first, loads[2]->first);
     })},
    {"NotReduced", "P15", zero(1), drop("reduce block 0")},
    {"ReducedTwice", "P15", zero(0), twice("reduce block 0")},
    {"NodeBeforeItsReduction", "P4", zero(2, 2, 2),
     in_steps([](Plan&, std::vector<Op>& ops) {
       const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
       const std::size_t node = find_op(view, "add gradient block 1");
       std::size_t reduction = node;
       while (ops[reduction].name != "reduce block 1") --reduction;
       std::swap(ops[node].operands, ops[reduction].operands);
       std::swap(ops[node].action, ops[reduction].action);
       std::swap(ops[node].name, ops[reduction].name);
     })},
    {"SteppedTwice", "P16", zero(0), twice("step block 0")},
    {"StepOfOtherElements", "P16", zero(2),
     at_op("step block 0", 0, [](Plan&, Op& op) { std::get<OptimizerStep>(op.action).first_elem += Elems{1}; })},
    {"StepWithALeaf", "P16", zero(2, 2, 1),
     at_op("step block 0", 0,
           [](Plan& p, Op& op) {
             const std::vector<Op>& ops = p.find(Phase::steady_step)->ops;
             const auto other = std::ranges::find_if(ops, [](const Op& o) { return o.name == "step block 1"; });
             edit(op.operands)[1].buffer = other->operands[1].buffer;
           })},
    {"StepDroppedOnOneRank", "P16", zero(2),
     [](PlanSet& plans) {
       Plan& p = plans.classes.front();
       for (Phase phase : {Phase::first_step, Phase::steady_step})
         std::erase_if(p.find(phase)->ops, [](const Op& op) { return op.name == "step block 0"; });
     }},
    {"RefreshDropped", "P17", zero(2), drop("refresh block 1")},
    {"BroadcastFromAnother", "P17", by_parameter(),
     at_op("refresh transformer.wte", 0, [](Plan&, Op& op) { call(op).root = 1 - call(op).root; })},
    {"StagingTooSmall", "P18", by_messages(2),
     at_op("reduce block 0", 0, [](Plan&, Op& op) { edit(op.operands).back().bytes /= 2; })},
    {"SegmentOfAnotherSize", "P18", zero(2), at_op("reduce", 0, [](Plan&, Op& op) { edit(call(op).segments)[0].elems += Elems{2}; })},
    {"ShardOfAnotherRank", "P18", zero(1), at_op("refresh", 0, [](Plan&, Op& op) { edit(op.operands)[0].offset += 8; })},
    {"ClassesCallOtherSizes", "P19", by_parameter(),
     [](PlanSet& plans) {
       for (PhaseOps& phase : plans.classes.back().phases)
         if (phase.phase == Phase::steady_step) edit(call(phase.ops[find_op(phase, "reduce")]).segments)[0].elems += Elems{2};
     }},
    {"ClassLacksACollective", "P19", by_parameter(),
     [](PlanSet& plans) {
       std::vector<Op>& ops = plans.classes.back().find(Phase::steady_step)->ops;
       ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(
                                   find_op(*plans.classes.back().find(Phase::steady_step), "refresh")));
     }},
    {"MicroBatchLoadedTwice", "P20", zero(3),
     at_op("load batch", 1, [](Plan&, Op& op) { std::get<LoadBatch>(op.action).first = 0; })},
    {"LossesTakenForOthers", "P20", zero(3),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.dealing = {.micro_stride = 1, .shard_stride = 4, .replica_stride = 16};
     }},
    {"CollectiveThatWaitsForNone", "P33", zero(3), in_steps([](Plan&, std::vector<Op>& ops) {
       for (auto it = ops.rbegin(); it != ops.rend(); ++it)
         if (auto* call = std::get_if<Communicate>(&it->action); call != nullptr && call->behind.valid()) {
           call->behind = OpId{};
           return;
         }
     })},
    {"CollectiveBehindAComputation", "P33", zero(3), in_steps([](Plan&, std::vector<Op>& ops) {
       for (std::size_t i = ops.size(); i-- > 1;)
         if (auto* call = std::get_if<Communicate>(&ops[i].action);
             call != nullptr && call->behind.valid() && std::holds_alternative<Compute>(ops[i - 1].action)) {
           call->behind = ops[i - 1].id;
           return;
         }
     })},
    {"WeightThatBeginsBetweenVectors", "P34", for_gpus(),
     at_op("transformer.h.0.mlp.c_fc", 0, [](Plan&, Op& op) { edit(op.operands)[1].offset += 4; })},
    {"OtherTarget", "P32", zero(3),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.target.threads += 1;
     }},
    {"OtherTopology", "P32", zero(3),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.topology.shard_degree = 1;
     }},
    {"OtherNumberOfMicroBatches", "P32", zero(3),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.micro_batches *= 2;
     }},
    {"StepsDiffer", "P21", zero(3),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.find(Phase::steady_step)->ops.front().stream = Stream::host;
     }},
    {"RoundedParametersSaved", "P36", in_bf16(zero(3)),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes)
         for (Op& op : p.find(Phase::save)->ops)
           if (auto* save = std::get_if<Save>(&op.action); save != nullptr && save->content == StateContent::master)
             save->content = StateContent::parameter;
     }},
    {"MomentsSwappedWhenSaved", "P36", zero(2),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes)
         for (Op& op : p.find(Phase::save)->ops)
           if (auto* save = std::get_if<Save>(&op.action);
               save != nullptr && save->content == StateContent::first_moment)
             save->content = StateContent::second_moment;
     }},
    {"SavedFromTheNeighboursPlace", "P36", zero(3),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes)
         for (Op& op : p.find(Phase::save)->ops)
           if (auto* save = std::get_if<Save>(&op.action); save != nullptr) save->rank_stride_elems = Elems{0};
     }},
    {"OneShardSavedByAll", "P36", zero(2),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes)
         for (Op& op : p.find(Phase::save)->ops)
           if (auto* save = std::get_if<Save>(&op.action);
               save != nullptr && save->content == StateContent::parameter) {
             save->rank_stride_elems = Elems{0};
             edit(op.operands)[0].rank_stride = 0;
           }
     }},
    {"ReplicasAllSaveAll", "P36", zero(0),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes)
         for (Op& op : p.find(Phase::save)->ops)
           if (auto* save = std::get_if<Save>(&op.action); save != nullptr && save->flat >= 0)
             save->held = Save::Held::here;
     }},
    {"OneSaveIsMissing", "P36", zero(1),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.find(Phase::save)->ops.erase(p.find(Phase::save)->ops.begin() + 1);
     }},
    {"EvaluationDrops", "P37", evaluated(zero(3)),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes)
         for (Op& op : p.find(Phase::evaluate)->ops)
           if (auto* compute = std::get_if<Compute>(&op.action)) compute->drops = true;
     }},
    {"TrainingDropsNothing", "P31", zero(3), in_steps([](Plan&, std::vector<Op>& ops) {
       for (Op& op : ops)
         if (auto* compute = std::get_if<Compute>(&op.action)) compute->drops = false;
     })},
    {"EvaluationOfOtherOps", "P37", evaluated(zero(2)),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.find(Phase::evaluate)->ops = p.find(Phase::steady_step)->ops;
     }},
    {"EvaluationLacksAnOperator", "P4", evaluated(zero(0)),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) {
         std::vector<Op>& ops = p.find(Phase::evaluate)->ops;
         ops.erase(std::ranges::find_if(ops, [](const Op& op) { return std::holds_alternative<Compute>(op.action); }));
       }
     }},
    {"EvaluationLacksItsLoss", "P4", evaluated(zero(1)),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.find(Phase::evaluate)->ops.pop_back();
     }},
    {"EvaluationThatNobodyAskedFor", "P37", zero(1),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.phases.push_back({.phase = Phase::evaluate, .ops = {}});
     }},
    {"NothingIsSaved", "P21", zero(0),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.phases.pop_back();
     }},
    {"WrongMomentHashed", "P23", zero(0),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes)
         std::get<Digest>(p.find(Phase::digest)->ops.back().action).content = Digest::Content::first_moment;
     }},
};

INSTANTIATE_TEST_SUITE_P(All, PlantedBugs, testing::ValuesIn(kPlanted), name_of);

}  // namespace
}  // namespace shard::plan
