// Does the verifier find bugs of units: of chunks, owners, what is kept or reused, and buckets?
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/check/planted_strategies.h"
#include "tests/check/planting.h"

namespace shard::plan {
namespace {

const Planted kOfUnits[] = {
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
             edit(op.operands)[0].buffer = p.flat_parameters[static_cast<std::size_t>(
                 std::ranges::find(p.units, "block 0", &Unit::name)->flats.front())];
           })},
    {"UnitLeftOutOfItsBucket", "P8", in_buckets(),
     at_op("reduce", 0,
           [](Plan&, Op& op) {
             edit(call(op).segments).pop_back();
             edit(op.operands).resize(op.operands.size() - 2);
           })},
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
         edit(op.operands)[0].bytes /= 2;
       }
     }},
};

INSTANTIATE_TEST_SUITE_P(Units, PlantedBugs, testing::ValuesIn(kOfUnits), name_of);

}  // namespace
}  // namespace shard::plan
