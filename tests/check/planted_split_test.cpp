// Does the verifier find bugs of plans whose ranks share a model, and of what is dropped at random?
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/check/planted_strategies.h"
#include "tests/check/planting.h"

namespace shard::plan {
namespace {

const Planted kOfParts[] = {
    {"SumOverPartsDropped", "P10", split_in_two(3), drop("transformer.h.0.attn.c_proj.sum")},
    {"SumOfGradientsOverPartsDropped", "P12", split_in_two(3), drop("transformer.h.0.ln_2.shared backward")},
    {"EmbeddingNotSummed", "P10", split_in_two(0), drop("transformer.wte.sum")},
    {"SumOverPartsTwice", "P27", split_in_two(0), twice("transformer.h.0.mlp.c_proj.sum")},
    {"SumOfGradientsOverPartsTwice", "P27", split_in_two(1), twice("transformer.h.1.ln_1.shared backward")},
    {"BiasAddedOnEveryRank", "P10", split_in_two(0), in_steps([](Plan&, std::vector<Op>& ops) {
       const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
       const std::size_t i = find_op(view, "transformer.h.0.mlp.c_proj.sum");
       edit(ops[i + 1].dependencies).clear();
       std::swap(ops[i], ops[i + 1]);
       std::swap(ops[i].id, ops[i + 1].id);
     })},
    {"SumOverRanksWithOtherData", "P15", split_in_two(0),
     at_op("transformer.h.0.mlp.c_proj.sum", 0, [](Plan&, Op& op) { call(op).group = Group::data; })},
    {"HalfOfAPartSummed", "P27", split_in_two(0),
     at_op("transformer.h.0.mlp.c_proj.sum", 0,
           [](Plan&, Op& op) {
             edit(op.operands)[0].bytes /= 2;
             edit(call(op).segments)[0].elems = Elems{call(op).segments[0].elems.count() / 2};
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
    {"NormOfOnePartOfTheModel", "P18", split_and_clipped(0),
     at_op("gather gradient facts", 0, [](Plan&, Op& op) { call(op).group = Group::data; })},
    {"NormOfOneRankOfTheModel", "P26", split_and_clipped(2),
     at_op("decide", 0, [](Plan&, Op& op) { std::get<Decide>(op.action).counted = 2; })},
};

INSTANTIATE_TEST_SUITE_P(Split, PlantedBugs, testing::ValuesIn(kOfParts), name_of);

}  // namespace
}  // namespace shard::plan
