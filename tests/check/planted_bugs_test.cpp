// Does the verifier find each of these bugs, planted into plans that are right, and name the rule that forbids it?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "sim/check/verify.h"
#include "tests/compile/support.h"

namespace shard::plan {
namespace {

using testing::EndsWith;

/// Finds ops by name: the n-th whose name begins so.
std::size_t find_op(const PhaseOps& phase, std::string_view name, std::size_t nth = 0) {
  for (std::size_t i = 0; i < phase.ops.size(); ++i)
    if (phase.ops[i].name.starts_with(name) && nth-- == 0) return i;
  ADD_FAILURE() << "no op " << name;
  return 0;
}

struct Planted {
  const char* name;
  const char* rule;
  Strategy strategy;
  std::function<void(PlanSet&)> plant;
  ModelPtr (*model)() = small_gpt2;
};

void PrintTo(const Planted& planted, std::ostream* out) {
  *out << planted.name;
}

/// Changes both forms of the step in every class alike.
std::function<void(PlanSet&)> in_steps(std::function<void(Plan&, std::vector<Op>&)> change) {
  return [change](PlanSet& plans) {
    for (Plan& plan : plans.classes)
      for (PhaseOps& phase : plan.phases)
        if (phase.phase == Phase::first_step || phase.phase == Phase::steady_step) change(plan, phase.ops);
  };
}

/// Block 0's gathered parameters are released at the first op of this name, in place of where they first are.
std::function<void(PlanSet&)> release_at(std::string name) {
  return in_steps([name = std::move(name)](Plan& plan, std::vector<Op>& ops) {
    for (Op& op : ops)
      if (const auto it =
              std::ranges::find_if(op.release, [&](BufferId b) { return plan.buffer(b).name == "gathered block 0"; });
          it != op.release.end()) {
        const BufferId gathered = *it;
        op.release.erase(it);
        std::ranges::find(ops, name, &Op::name)->release.push_back(gathered);
        return;
      }
  });
}
/// Changes the n-th op of that name in both forms of the step.
std::function<void(PlanSet&)> at_op(std::string name, std::size_t nth, std::function<void(Plan&, Op&)> change) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes)
      for (PhaseOps& phase : plan.phases)
        if (phase.phase == Phase::first_step || phase.phase == Phase::steady_step)
          change(plan, phase.ops[find_op(phase, name, nth)]);
  };
}
/// Erases an op; what it took, the next op takes, and what it gave back, the op before gives back. Its edges go.
std::function<void(PlanSet&)> drop(std::string name, std::size_t nth = 0) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes)
      for (PhaseOps& phase : plan.phases) {
        if (phase.phase != Phase::first_step && phase.phase != Phase::steady_step) continue;
        std::vector<Op>& ops = phase.ops;
        const std::size_t i = find_op(phase, name, nth);
        for (BufferId b : ops[i].acquire) ops[i + 1].acquire.push_back(b);
        for (BufferId b : ops[i].release) ops[i - 1].release.push_back(b);
        for (Op& op : ops) std::erase(op.dependencies, ops[i].id);
        // A buffer that only this op touched is gone with it.
        for (BufferId b : ops[i].acquire)
          if (std::ranges::count(ops[i].release, b) == 1) {
            std::erase(ops[i + 1].acquire, b);
            std::erase(ops[i - 1].release, b);
          }
        ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
      }
  };
}
/// The same in the classes that have the op.
std::function<void(PlanSet&)> drop_on_owner(std::string name, std::size_t nth = 0) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes) {
      if (std::ranges::find(plan.find(Phase::steady_step)->ops, name, &Op::name) ==
          plan.find(Phase::steady_step)->ops.end())
        continue;
      PlanSet one;
      one.classes = {std::move(plan)};
      drop(name, nth)(one);
      plan = std::move(one.classes.front());
    }
  };
}
/// The op once more, right behind itself; later ids move up.
std::function<void(PlanSet&)> twice(std::string name, std::size_t nth = 0) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes) {
      std::int32_t id = -1;
      for (PhaseOps& phase : plan.phases) {
        const bool step = phase.phase == Phase::first_step || phase.phase == Phase::steady_step;
        if (phase.phase == Phase::first_step) id = phase.ops[find_op(phase, name, nth)].id.value;
        if (id < 0) continue;
        for (Op& op : phase.ops) {
          if (op.id.value > id) ++op.id.value;
          for (OpId& d : op.dependencies)
            if (d.value > id) ++d.value;
        }
        if (!step) continue;
        const std::size_t i = find_op(phase, name, nth);
        Op copy = phase.ops[i];
        ++copy.id.value;
        copy.acquire.clear();
        phase.ops[i].release.clear();
        phase.ops.insert(phase.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(copy));
      }
    }
  };
}
/// Two neighbours change places, their ids do not.
std::function<void(PlanSet&)> swap_with_next(std::string name, std::size_t nth = 0) {
  return in_steps([=](Plan&, std::vector<Op>& ops) {
    const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
    const std::size_t i = find_op(view, name, nth);
    std::swap(ops[i], ops[i + 1]);
    std::swap(ops[i].id, ops[i + 1].id);
    // Lifetimes cover both.
    for (BufferId b : ops[i + 1].acquire) ops[i].acquire.push_back(b);
    for (BufferId b : ops[i].release) ops[i + 1].release.push_back(b);
    ops[i + 1].acquire.clear();
    ops[i].release.clear();
  });
}

Strategy zero(std::int32_t stage, std::int32_t world = 2, std::int64_t accumulation = 2) {
  return {.world_size = world,
          .stage = stage,
          .unit = UnitKind::module,
          .micro_batch = 1,
          .global_batch = world * accumulation,
          .sequence = 4,
          .prefetch = 1};
}
Strategy freezing(std::int32_t stage, std::vector<std::string> patterns, Precision precision = Precision::fp32) {
  Strategy s = zero(stage);
  s.freeze = std::move(patterns);
  s.precision = precision;
  return s;
}
std::int32_t first_frozen(const Plan& plan) {
  const auto at = std::ranges::find(plan.flats, true, &Flat::frozen);
  return static_cast<std::int32_t>(at - plan.flats.begin());
}
Strategy by_parameter() {
  Strategy s = zero(1);
  s.partition = Partition::parameter;
  return s;
}
Strategy by_messages(std::int32_t stage) {
  Strategy s = zero(stage);
  s.transport = Transport::messages;
  return s;
}
/// Two ranks share each model, two such pairs the data.
Strategy split_in_two(std::int32_t stage, model::TensorLayout layout = model::TensorLayout::megatron) {
  Strategy s = zero(stage, 2);
  s.world_size = 4;
  s.tensor_parallel = 2;
  s.tensor_layout = layout;
  return s;
}
Strategy split_and_clipped(std::int32_t stage) {
  Strategy s = split_in_two(stage);
  s.clip_norm = true;
  return s;
}
/// Changes how one parameter is cut, in every class.
std::function<void(PlanSet&)> cut_otherwise(std::string parameter, std::function<void(model::ParameterSplit&)> change) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes) {
      model::Model model = *plan.model;
      for (std::size_t p = 0; p < model.parameters.size(); ++p)
        if (model.parameters[p].name.ends_with(parameter)) change(model.split.parameters[p]);
      plan.model = std::make_shared<const model::Model>(std::move(model));
    }
  };
}
/// Changes an operator, and the ops that are made of it, in every class.
std::function<void(PlanSet&)> operator_otherwise(std::string name, std::function<void(model::Attributes&)> change) {
  return [=](PlanSet& plans) {
    for (Plan& plan : plans.classes) {
      model::Graph graph = *plan.graph;
      for (model::Operator& op : graph.operators)
        if (op.name == name) change(op.attributes);
      for (PhaseOps& phase : plan.phases)
        for (Op& op : phase.ops)
          if (auto* compute = std::get_if<Compute>(&op.action))
            compute->attributes = graph.operators[static_cast<std::size_t>(compute->source)].attributes;
      plan.graph = std::make_shared<const model::Graph>(std::move(graph));
    }
  };
}
Strategy dropping(Strategy s) {
  s.dropout = 0.1F;
  return s;
}
Strategy recomputed() {
  Strategy s = zero(3);
  s.recompute = Recompute::block;
  return s;
}
Strategy in_order_of_arrival() {
  Strategy s = zero(0, 1, 4);
  s.reproducible = false;
  return s;
}
Strategy clipped(std::int32_t stage) {
  Strategy s = zero(stage);
  s.clip_norm = true;
  return s;
}
Strategy scaled(std::int32_t stage, std::int32_t world = 2) {
  Strategy s = zero(stage, world);
  s.loss_scaling = true;
  return s;
}
BufferId named(const Plan& plan, std::string_view name) {
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (plan.buffers[b].name == name) return BufferId{static_cast<std::int32_t>(b)};
  ADD_FAILURE() << "no buffer " << name;
  return BufferId{};
}
Strategy clipped_sgd() {
  Strategy s = clipped(2);
  s.optimizer = OptimizerKind::sgd;
  return s;
}
/// The facts of all ranks are taken from this rank alone.
void decide_alone(Plan& plan, std::vector<Op>& ops) {
  const BufferId facts = named(plan, "gradient facts");
  for (Op& op : ops) {
    std::erase(op.release, facts);
    if (op.name != "decide") continue;
    op.operands[0] = {.buffer = facts, .bytes = plan.buffer(facts).bytes.count()};
    op.release.push_back(facts);
    std::get<Decide>(op.action) = {.members = 1, .counted = 1};
  }
}
Strategy on_host(std::int32_t stage) {
  Strategy s = zero(stage);
  s.placement.policy = PlacementPolicy::host;
  return s;
}
/// Only one kind of model data away from the device.
Strategy optimizer_on(Share share, Precision precision = Precision::fp32) {
  Strategy s = zero(2);
  s.placement = {.policy = PlacementPolicy::fixed, .optimizer = share};
  s.precision = precision;
  return s;
}
Strategy gradients_on_host(std::int32_t stage) {
  Strategy s = zero(stage);
  s.placement = {.policy = PlacementPolicy::fixed, .gradients = kOnHost};
  return s;
}
Strategy clipped_gradients_on_host() {
  Strategy s = gradients_on_host(2);
  s.clip_norm = true;
  return s;
}
Strategy optimizer_clipped_on_host() {
  Strategy s = optimizer_on(kOnHost);
  s.clip_norm = true;
  return s;
}
Strategy owned(std::int32_t stage) {
  Strategy s = zero(stage);
  s.ownership = Ownership::rank;
  return s;
}
/// Of one size, or beginning at these parameters.
Strategy chunked(std::vector<std::int32_t> starts) {
  Strategy s = zero(3);
  s.unit = UnitKind::chunk;
  s.chunk_elems = Elems{600};
  s.chunk_starts = std::move(starts);
  return s;
}
Strategy kept() {
  Strategy s = zero(3);
  s.keep_gathered = true;
  return s;
}
Strategy reused(Ownership ownership = Ownership::split) {
  Strategy s = zero(3, 2, 1);
  s.precision = Precision::bf16;
  s.reuse_shard = true;
  s.prefetch = 0;
  s.ownership = ownership;
  return s;
}
Strategy owned_on_host(std::int32_t stage) {
  Strategy s = owned(stage);
  s.placement.policy = PlacementPolicy::host;
  return s;
}
Strategy reused_on_host(Ownership ownership = Ownership::split) {
  Strategy s = reused(ownership);
  s.placement.policy = PlacementPolicy::host;
  return s;
}
Strategy in_buckets() {
  Strategy s = zero(3);
  s.bucket_mib = 1;
  return s;
}
Communicate& call(Op& op) {
  return std::get<Communicate>(op.action);
}
Buffer& buffer_of(Plan& plan, Op& op, std::size_t operand) {
  return plan.buffer(op.operands[operand].buffer);
}

const Planted kPlanted[] = {
    {"IdsOutOfOrder", "P1", zero(3), at_op("transformer.wpe", 0, [](Plan&, Op& op) { op.id.value += 5; })},
    {"AbsentOpLeftBehind", "P1", zero(3), at_op("mean loss", 0, [](Plan&, Op& op) { op.action = Absent{}; })},
    {"BufferShrunk", "P2", zero(3),
     at_op("transformer.h.0.mlp.c_fc", 0, [](Plan& p, Op& op) { buffer_of(p, op, 3).bytes = Bytes{64}; })},
    {"RankStrideTooFar", "P2", zero(1), at_op("step", 0, [](Plan&, Op& op) { op.operands[0].rank_stride *= 64; })},
    {"EdgeToALaterOp", "P3", zero(3),
     at_op("transformer.wpe", 0, [](Plan&, Op& op) { op.dependencies.push_back(OpId{op.id.value + 1}); })},
    {"EdgeWithinAStream", "P3", zero(3),
     at_op("transformer.h.0.mlp.act", 0, [](Plan&, Op& op) { op.dependencies.push_back(OpId{op.id.value - 1}); })},
    {"ReleasedEarly", "P4", zero(3), release_at("transformer.h.0.ln_1")},
    {"NeverReleased", "P4", zero(3), in_steps([](Plan&, std::vector<Op>& ops) {
       for (auto it = ops.rbegin(); it != ops.rend(); ++it)
         if (!it->release.empty()) return it->release.pop_back();
     })},
    {"TakenTwice", "P4", zero(3), in_steps([](Plan&, std::vector<Op>& ops) {
       for (std::size_t i = 0; i < ops.size(); ++i)
         if (!ops[i].acquire.empty() && ops[i].release.empty() && i > 3)
           return ops[i + 1].acquire.push_back(ops[i].acquire.back());
     })},
    {"OffsetShifted", "P5", zero(3),
     at_op("transformer.h.0.mlp.c_fc", 0, [](Plan& p, Op& op) { buffer_of(p, op, 0).offset = buffer_of(p, op, 3).offset; })},
    {"OffsetNotAligned", "P5", zero(2), at_op("load scalars", 0, [](Plan& p, Op& op) { ++buffer_of(p, op, 0).offset; })},
    {"ArenaTooSmall", "P6", zero(3),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.arena_bytes[0] -= Bytes{64};
     }},
    {"EdgesOfAReaderDropped", "P7", zero(3),
     at_op("transformer.wte", 0, [](Plan&, Op& op) { op.dependencies.clear(); })},
    {"EdgesOfAReductionDropped", "P7", zero(2), at_op("reduce", 1, [](Plan&, Op& op) { op.dependencies.clear(); })},
    {"EdgesOfAGatherIntoReusedBytesDropped", "P7", zero(3), in_steps([](Plan&, std::vector<Op>& ops) {
       for (auto it = ops.rbegin(); it != ops.rend(); ++it)
         if (it->name.starts_with("gather block") && !it->dependencies.empty()) return it->dependencies.clear();
     })},
    {"GatherDropped", "P8", zero(3), drop("gather block 1")},
    {"BatchNotLoaded", "P20", zero(3), drop("load batch", 1)},
    {"ReductionDropped", "P8", zero(2), drop("reduce block 0")},
    {"NewbornStateNotZeroed", "P8", zero(2),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) {
         std::vector<Op>& ops = p.find(Phase::first_step)->ops;
         const std::size_t i = find_op(*p.find(Phase::first_step), "zero state");
         for (BufferId b : ops[i].acquire) ops[i + 1].acquire.push_back(b);
         ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
       }
     }},
    {"WrongScale", "P9", zero(3),
     at_op("loss backward", 0, [](Plan&, Op& op) { std::get<Compute>(op.action).scale = 0.5f; })},
    {"WrongAccumulateFlag", "P9", zero(3),
     at_op("transformer.wte backward", 0, [](Plan&, Op& op) { std::get<Compute>(op.action).accumulate_weight = false; })},
    {"OperandMissing", "P9", zero(3),
     at_op("transformer.h.1.attn backward", 0, [](Plan&, Op& op) { op.operands.erase(op.operands.begin()); })},
    {"OperandsSwapped", "P10", zero(3),
     at_op("transformer.h.1.ln_1 backward", 0,
           [](Plan&, Op& op) { std::swap(op.operands[2].buffer, op.operands[3].buffer); })},
    {"NeighboursSwapped", "P8", zero(3), swap_with_next("transformer.h.0.ln_2")},
    {"RecomputationSkipsAnOp", "P8", recomputed(), drop("transformer.h.0.mlp.act again")},
    {"StaleValue", "P10", zero(3),
     at_op("transformer.h.1.ln_1", 0,
           [](Plan& p, Op& op) {
             for (std::size_t b = 0; b < p.buffers.size(); ++b)
               if (p.buffers[b].name == "transformer.h.0.attn.residual")
                 op.operands[0].buffer = BufferId{static_cast<std::int32_t>(b)};
           })},
    {"ParameterOffsetShifted", "P11", zero(3),
     at_op("transformer.h.0.attn.c_attn", 0, [](Plan&, Op& op) { op.operands[1].offset += 4; })},
    {"NeighbouringParameterRead", "P11", zero(0),
     at_op("transformer.h.0.ln_1", 0, [](Plan&, Op& op) { std::swap(op.operands[1].offset, op.operands[2].offset); })},
    {"ResidualGradientOverwritten", "P9", zero(3),
     at_op("transformer.h.1.ln_2 backward", 0, [](Plan&, Op& op) { op.operands[5].access = Access::write; })},
    {"ResidualGradientStartedAgain", "P12", zero(3),
     at_op("transformer.h.1.ln_2 backward", 0,
           [](Plan&, Op& op) {
             op.operands[5].access = Access::write;
             std::get<Compute>(op.action).accumulate_input = false;
           })},
    {"BackwardSkipped", "P12", zero(3), drop("transformer.h.1.ln_2 backward")},
    {"TiedGradientOverwritten", "P13", zero(0),
     at_op("transformer.wte backward", 0,
           [](Plan&, Op& op) {
             op.operands[2].access = Access::write;
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
    {"SumOverPartsDropped", "P10", split_in_two(3), drop("transformer.h.0.attn.c_proj.sum")},
    {"SumOfGradientsOverPartsDropped", "P12", split_in_two(3), drop("transformer.h.0.ln_2.shared backward")},
    {"EmbeddingNotSummed", "P10", split_in_two(0), drop("transformer.wte.sum")},
    {"SumOverPartsTwice", "P27", split_in_two(0), twice("transformer.h.0.mlp.c_proj.sum")},
    {"SumOfGradientsOverPartsTwice", "P27", split_in_two(1), twice("transformer.h.1.ln_1.shared backward")},
    {"BiasAddedOnEveryRank", "P10", split_in_two(0),
     in_steps([](Plan&, std::vector<Op>& ops) {
       const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
       const std::size_t i = find_op(view, "transformer.h.0.mlp.c_proj.sum");
       ops[i + 1].dependencies.clear();
       std::swap(ops[i], ops[i + 1]);
       std::swap(ops[i].id, ops[i + 1].id);
     })},
    {"SumOverRanksWithOtherData", "P15", split_in_two(0),
     at_op("transformer.h.0.mlp.c_proj.sum", 0, [](Plan&, Op& op) { call(op).group = Group::data; })},
    {"HalfOfAPartSummed", "P27", split_in_two(0),
     at_op("transformer.h.0.mlp.c_proj.sum", 0,
           [](Plan&, Op& op) {
             op.operands[0].bytes /= 2;
             call(op).segments[0].elems = Elems{call(op).segments[0].elems.count() / 2};
           })},
    {"StatisticsNotGathered", "P8", split_in_two(2), drop("loss.statistics.all")},
    {"SumAgainLeftOut", "P10",
     [] {
       Strategy s = split_in_two(0);
       s.recompute = Recompute::block;
       return s;
     }(),
     drop("transformer.h.0.attn.c_proj.sum again")},
    {"ColumnsNotGathered", "P8", split_in_two(3, model::TensorLayout::colossalai),
     drop("transformer.h.1.attn.c_attn.all")},
    {"GradientOfColumnsNotGathered", "P8", split_in_two(0, model::TensorLayout::colossalai),
     drop("transformer.ln_f.part backward")},
    {"QueriesKeysAndValuesCutAcrossHeads", "P28", split_in_two(0),
     cut_otherwise("h.1.attn.c_attn.weight", [](model::ParameterSplit& split) { split.pieces = 1; })},
    {"RowsOfOtherColumns", "P28", split_in_two(0),
     cut_otherwise("h.0.mlp.c_proj.weight", [](model::ParameterSplit& split) { split.pieces = 2; })},
    {"PartOfAParameterMissing", "P28", split_in_two(0),
     cut_otherwise("h.0.mlp.c_fc.weight", [](model::ParameterSplit& split) { split.whole[1] += 2; })},
    {"MasksOfOtherHeads", "P28", dropping(split_in_two(0)),
     operator_otherwise("transformer.h.0.attn", [](model::Attributes& a) { a.parts = 0; })},
    {"MasksOfHeadsThatNoOtherRankHas", "P28", dropping(split_in_two(0, model::TensorLayout::colossalai)),
     operator_otherwise("transformer.h.0.attn", [](model::Attributes& a) { a.parts = 2; })},
    {"AttentionThatDropsNothing", "P31", dropping(zero(2)),
     operator_otherwise("transformer.h.1.attn", [](model::Attributes& a) { a.probability = 0; })},
    {"DropsWhatTheStrategyDoesNot", "P31", zero(2),
     operator_otherwise("transformer.h.1.attn", [](model::Attributes& a) { a.probability = 0.1F; })},
    {"OneMaskForTwoOperators", "P31", dropping(zero(2)),
     operator_otherwise("transformer.h.1.attn", [](model::Attributes& a) { --a.mask; })},
    {"StepsWhatIsFrozen", "P30", freezing(0, {"transformer.h.1.*"}),
     [](PlanSet& plans) {
       twice("step block 0")(plans);
       at_op("step block 0", 1, [](Plan& p, Op& op) {
         std::get<OptimizerStep>(op.action).flat = first_frozen(p);
       })(plans);
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
             for (Operand& o : op.operands) o.buffer = p.flat_parameters[static_cast<std::size_t>(first_frozen(p))];
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
    {"GradientOfWhatNothingTrainedIsUnder", "P30",
     freezing(0, {"transformer.w*", "transformer.h.0.*"}),
     at_op("transformer.h.1.ln_1 backward", 0,
           [](Plan&, Op& op) {
             Operand dx = op.operands[4];
             dx.access = Access::write;
             op.operands.insert(op.operands.begin() + 5, dx);
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
             op.operands.erase(op.operands.begin() + dx);
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
             op.operands.pop_back();
             std::get<Compute>(op.action).workspace = false;
           })},
    {"BiasOfAFrozenProductForgotten", "P8", freezing(2, {"*c_attn.weight"}),
     drop("transformer.h.1.attn.c_attn backward_weight")},
    {"InputOfAFrozenProductForgotten", "P8", freezing(2, {"*c_attn.*"}),
     drop("transformer.h.1.attn.c_attn backward_input")},
    {"SteppedTwice", "P16", zero(0), twice("step block 0")},
    {"StepOfOtherElements", "P16", zero(2),
     at_op("step block 0", 0, [](Plan&, Op& op) { std::get<OptimizerStep>(op.action).first_elem += Elems{1}; })},
    {"StepWithALeaf", "P16", zero(2, 2, 1),
     at_op("step block 0", 0,
           [](Plan& p, Op& op) {
             op.operands[1].buffer = p.flat_gradients[static_cast<std::size_t>(std::get<OptimizerStep>(op.action).flat) + 1];
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
    {"OwnedUnitSentByAnother", "P18", owned(3),
     at_op("gather block 0", 1, [](Plan&, Op& op) { call(op).root = 1 - call(op).root; })},
    {"OwnedUnitReducedToAnother", "P15", owned(2),
     at_op("reduce block 0", 0, [](Plan&, Op& op) { call(op).root = 1 - call(op).root; })},
    {"OwnedUnitSummedByNobody", "P15", owned(1), drop("reduce block 1")},
    {"OwnedUnitNotSent", "P8", owned(3), drop("gather block 1")},
    {"OwnedUnitNotRefreshed", "P17", owned(2), drop("refresh block 1")},
    {"OwnerMissing", "P22", owned(3),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.flats[1].owner = -1;
     }},
    {"OwnedUnitReceivedAsAnother", "P19", owned(3),
     [](PlanSet& plans) {
       // Both blocks are equally large, so that only what they are differs.
       Plan& p = plans.classes.back();
       for (Phase phase : {Phase::first_step, Phase::steady_step}) {
         PhaseOps& step = *p.find(phase);
         Op& op = step.ops[find_op(step, "gather block 0")];
         Op& other = step.ops[find_op(step, "gather block 1")];
         std::swap(op.operands, other.operands);
       }
     }},
    {"KeptUnitDroppedAfterForward", "P4", kept(), release_at("loss")},
    {"KeptUnitNotGathered", "P8", kept(), drop("gather block 1")},
    {"ReusedShardNotMadeAgain", "P17", reused(), drop("store block 1")},
    {"OwnedReusedShardNotMadeAgain", "P17", reused(Ownership::rank),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes)
         for (Phase phase : {Phase::first_step, Phase::steady_step})
           std::erase_if(p.find(phase)->ops, [](const Op& op) { return op.name == "store block 1"; });
     }},
    {"GradientOverParametersStillNeeded", "P15", reused(),
     at_op("reduce block 1", 0,
           [](Plan& p, Op& op) {
             op.operands[0].buffer = p.flat_parameters[static_cast<std::size_t>(
                 std::ranges::find(p.units, "block 0", &Unit::name)->flats.front())];
           })},
    {"UnitLeftOutOfItsBucket", "P8", in_buckets(),
     at_op("reduce", 0,
           [](Plan&, Op& op) {
             call(op).segments.pop_back();
             op.operands.resize(op.operands.size() - 2);
           })},
    {"StagingTooSmall", "P18", by_messages(2),
     at_op("reduce block 0", 0, [](Plan&, Op& op) { op.operands.back().bytes /= 2; })},
    {"SegmentOfAnotherSize", "P18", zero(2), at_op("reduce", 0, [](Plan&, Op& op) { call(op).segments[0].elems += Elems{2}; })},
    {"ShardOfAnotherRank", "P18", zero(1), at_op("refresh", 0, [](Plan&, Op& op) { op.operands[0].offset += 8; })},
    {"ClassesCallOtherSizes", "P19", by_parameter(),
     [](PlanSet& plans) {
       for (PhaseOps& phase : plans.classes.back().phases)
         if (phase.phase == Phase::steady_step) call(phase.ops[find_op(phase, "reduce")]).segments[0].elems += Elems{2};
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
    {"ParameterInTwoFlats", "P22", zero(3),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.flats[1].items[0].param = p.flats[0].items[0].param;
     }},
    {"ChunkOfAnotherSize", "P22", chunked({}),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.strategy.chunk_elems += Elems{2};
     }},
    {"ChunkBeginsElsewhere", "P22", chunked({0, 3, 9}),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.strategy.chunk_starts = {0, 4, 9};
     }},
    {"ChunkLargerThanWhatItHolds", "P22", chunked({0, 3, 9}),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) p.flats[1].elems += Elems{2};
     }},
    {"FlatNotCreated", "P22", zero(1),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes) {
         Op& op = p.find(Phase::creation)->ops[1];
         op.operands[0].bytes /= 2;
       }
     }},
    {"FactsNotReset", "P8", clipped(2), drop("begin control")},
    {"OneTensorNotInspected", "P26", clipped(2), drop("inspect block 0")},
    {"InspectedTwice", "P26", clipped(1), twice("inspect block 0")},
    {"InspectedBeforeItIsReduced", "P15", clipped(0),
     in_steps([](Plan&, std::vector<Op>& ops) {
       const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
       const std::size_t reduction = find_op(view, "reduce transformer.wte");
       const std::size_t inspection = find_op(view, "inspect transformer.wte");
       std::swap(ops[reduction].operands, ops[inspection].operands);
       std::swap(ops[reduction].action, ops[inspection].action);
       std::swap(ops[reduction].name, ops[inspection].name);
     })},
    {"FactsSentTooEarly", "P26", clipped(2),
     in_steps([](Plan&, std::vector<Op>& ops) {
       const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
       const std::size_t gather = find_op(view, "gather gradient facts");
       std::swap(ops[gather - 1], ops[gather]);
       std::swap(ops[gather - 1].id, ops[gather].id);
       std::swap(ops[gather - 1].release, ops[gather].release);
       for (Op& op : ops) std::erase(op.dependencies, ops[gather].id);
       ops[gather - 1].dependencies.clear();
     })},
    {"ClippedByOwnNorm", "P26", clipped(2), in_steps(decide_alone)},
    {"OverflowOfOneRankAlone", "P26", scaled(1), in_steps(decide_alone)},
    {"SteppedBeforeTheDecision", "P8", clipped_sgd(), swap_with_next("decide")},
    {"LossNotScaled", "P9", scaled(2),
     at_op("loss backward", 0, [](Plan&, Op& op) { std::get<Compute>(op.action).scaled = false; })},
    {"LossScaledByThatOfTheNextStep", "P10", scaled(2),
     at_op("loss backward", 0,
           [](Plan& p, Op& op) {
             op.operands.back().buffer = named(p, "loss scaler");
           })},
    {"NormOfOnePartOfTheModel", "P18", split_and_clipped(0),
     at_op("gather gradient facts", 0, [](Plan&, Op& op) { call(op).group = Group::data; })},
    {"NormOfOneRankOfTheModel", "P26", split_and_clipped(2),
     at_op("decide", 0, [](Plan&, Op& op) { std::get<Decide>(op.action).counted = 2; })},
    {"ScalerNotUpdated", "P26", scaled(0),
     at_op("decide", 0, [](Plan&, Op& op) { op.operands[3].access = Access::read; })},
    {"LocalOverflowNotLookedFor", "P26", scaled(2), drop("inspect own block 1", 1)},
    {"LocalOverflowNotLookedForAlone", "P26", scaled(0, 1), drop("inspect own block 1")},
    {"PredivideForgotten", "P26", clipped(0),
     at_op("step block 0", 0, [](Plan&, Op& op) { std::get<OptimizerStep>(op.action).factor = 0.5f; })},
    {"WrongMomentHashed", "P23", zero(0),
     [](PlanSet& plans) {
       for (Plan& p : plans.classes)
         std::get<Digest>(p.find(Phase::digest)->ops.back().action).content = Digest::Content::first_moment;
     }},
};

/// Bugs of placement.
const Planted kMisplaced[] = {
    {"ShardNotBrought", "P8", on_host(3), drop("bring parameter shard block 1")},
    {"UnitNotBroughtAgain", "P8", on_host(0), drop("bring parameters block 0", 1)},
    {"UnitEvictedWhileInUse", "P4", on_host(0), in_steps([](Plan& plan, std::vector<Op>& ops) {
       for (Op& op : ops)
         if (const auto it = std::ranges::find_if(
                 op.release, [&](BufferId b) { return plan.buffer(b).name == "fetched parameters block 0"; });
             it != op.release.end()) {
           const BufferId fetched = *it;
           op.release.erase(it);
           return std::ranges::find_if(ops, [](const Op& o) { return o.name == "transformer.h.0.ln_1"; })
               ->release.push_back(fetched);
         }
     })},
    {"ShardBroughtToAnotherRanksPlace", "P18", on_host(3),
     at_op("gather block 0", 0,
           [](Plan&, Op& op) {
             op.operands[0].offset += op.operands[0].bytes;
             op.operands[0].rank_stride = 0;
           })},
    {"HostCopyStale", "P17", on_host(1), drop("take back fetched parameters block 1")},
    {"StepNotTakenBack", "P17", optimizer_on(kOnHost), drop("take back parameters block 0")},
    {"StateNotTakenBackToDisk", "P16", optimizer_on(kOnDisk),
     [](PlanSet& plans) {
       // What the state was before the step goes back over it.
       for (Plan& plan : plans.classes)
         for (PhaseOps& phase : plan.phases)
           for (std::size_t i = 0; i + 1 < phase.ops.size(); ++i)
             if (phase.ops[i].name == "take back block 0 first moment on host")
               phase.ops[i].operands[0].buffer = phase.ops[i + 1].operands[0].buffer;
     }},
    {"StateNotReadFromDisk", "P8", optimizer_on(kOnDisk), drop("bring block 0 first moment")},
    {"GradientNotOffloaded", "P8", gradients_on_host(2), drop("offload gradient shard block 0")},
    {"TreeNodeReadTooEarly", "P8", gradients_on_host(0), in_steps([](Plan&, std::vector<Op>& ops) {
       const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
       const std::size_t moved = find_op(view, "offload gradients block 0", 1);
       std::size_t node = moved;
       while (ops[node].name != "add gradient block 0") ++node;
       std::swap(ops[node].operands, ops[moved].operands);
       std::swap(ops[node].action, ops[moved].action);
       std::swap(ops[node].name, ops[moved].name);
       // What both need is there for both.
       ops[moved].acquire.insert(ops[moved].acquire.end(), ops[node].acquire.begin(), ops[node].acquire.end());
       ops[node].release.insert(ops[node].release.end(), ops[moved].release.begin(), ops[moved].release.end());
       ops[node].acquire.clear();
       ops[moved].release.clear();
     })},
    {"RefreshedOnTheHost", "P24", on_host(1),
     at_op("refresh block 0", 0,
           [](Plan& p, Op& op) {
             for (std::size_t b = 0; b < p.buffers.size(); ++b)
               if (p.buffers[b].name == "parameters block 0")
                 op.operands[0].buffer = BufferId{static_cast<std::int32_t>(b)};
           })},
    {"StepInTwoMemories", "P24", optimizer_on(kOnHost),
     at_op("step block 0", 0, [](Plan& p, Op& op) { op.operands[2].buffer = p.scalars; })},
    {"StepOnDisk", "P24", optimizer_on(kOnDisk),
     at_op("step block 0", 0,
           [](Plan& p, Op& op) {
             for (std::size_t b = 0; b < p.buffers.size(); ++b)
               if (p.buffers[b].name == "block 0 first moment")
                 op.operands[4].buffer = BufferId{static_cast<std::int32_t>(b)};
           })},
    {"RoundedBehindTheBus", "P25", optimizer_on(kOnHost, Precision::bf16), in_steps([](Plan&, std::vector<Op>& ops) {
       const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
       const std::size_t i = find_op(view, "store block 0");
       ops[i + 1].operands[0] = ops[i].operands[0];
     })},
    {"OwnedUnitNotBrought", "P8", owned_on_host(3), drop_on_owner("bring parameters block 1")},
    {"OwnedUnitSentFromTheHost", "P24", owned_on_host(3), in_steps([](Plan& p, std::vector<Op>& ops) {
       for (Op& op : ops)
         if (op.name == "gather block 1" && op.operands[0].reads())
           op.operands[0].buffer = named(p, "parameters block 1");
     })},
    {"OwnedRefreshNotTakenBack", "P17", owned_on_host(2), drop_on_owner("take back fetched parameters block 1")},
    {"OwnedSumNotOffloaded", "P8", owned_on_host(2), drop_on_owner("offload summed gradients block 1")},
    {"ReusedGradientNotMoved", "P16", reused_on_host(), drop("offload reduced gradients block 1")},
    {"ReusedShardOnHostNotMadeAgain", "P17", reused_on_host(), drop("store block 1")},
    {"OwnedReusedShardOnHostNotMadeAgain", "P17", reused_on_host(Ownership::rank), drop_on_owner("store block 1")},
    {"FactsNotTakenBack", "P8", clipped_gradients_on_host(), drop("take back gradient facts on host")},
    {"DecisionNotHandedOver", "P8", optimizer_clipped_on_host(), drop("hand over control")},
    {"ScalarsNotHandedOver", "P8", optimizer_on(kOnHost), drop("hand over optimizer scalars")},
};

class PlantedBugs : public testing::TestWithParam<Planted> {};

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

INSTANTIATE_TEST_SUITE_P(All, PlantedBugs, testing::ValuesIn(kPlanted),
                         [](const auto& each) { return std::string(each.param.name); });
INSTANTIATE_TEST_SUITE_P(Placement, PlantedBugs, testing::ValuesIn(kMisplaced),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace shard::plan
