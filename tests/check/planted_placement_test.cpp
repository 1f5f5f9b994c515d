// Does the verifier find bugs of placement?
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/check/planted_strategies.h"
#include "tests/check/planting.h"

namespace shard::plan {
namespace {

/// What is pinned becomes pageable and the other way round.
void swap_kinds_of_host_memory(PlanSet& plans) {
  const auto other = [](Memory m) { return m == Memory::host ? Memory::pinned : Memory::host; };
  for (Plan& plan : plans.classes) {
    for (Buffer& buffer : plan.buffers)
      if (is_host(buffer.memory)) buffer.memory = other(buffer.memory);
    std::swap(plan.arena_bytes[static_cast<std::size_t>(Memory::host)],
              plan.arena_bytes[static_cast<std::size_t>(Memory::pinned)]);
  }
}

const Planted kMisplaced[] = {
    {"PageableMemoryOfGpus", "P35", for_gpus(on_host(3)), swap_kinds_of_host_memory},
    {"PinnedMemoryWithoutGpus", "P35", on_host(3), swap_kinds_of_host_memory},
    {"ShardNotBrought", "P8", on_host(3), drop("bring parameter shard block 1")},
    {"UnitNotBroughtAgain", "P8", on_host(0), drop("bring parameters block 0", 1)},
    {"UnitEvictedWhileInUse", "P4", on_host(0), in_steps([](Plan& plan, std::vector<Op>& ops) {
       for (Op& op : ops)
         if (const auto it = std::ranges::find_if(
                 op.release, [&](BufferId b) { return plan.buffer(b).name == "fetched parameters block 0"; });
             it != op.release.end()) {
           const BufferId fetched = *it;
           edit(op.release).remove(fetched);
           const auto later = std::ranges::find_if(ops, [](const Op& o) { return o.name == "transformer.h.0.ln_1"; });
           return edit(later->release).push_back(fetched);
         }
     })},
    {"ShardBroughtToAnotherRanksPlace", "P18", on_host(3),
     at_op("gather block 0", 0,
           [](Plan&, Op& op) {
             edit(op.operands)[0].offset += op.operands[0].bytes;
             edit(op.operands)[0].rank_stride = 0;
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
               edit(phase.ops[i].operands)[0].buffer = phase.ops[i + 1].operands[0].buffer;
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
       edit(ops[moved].acquire).append(ops[node].acquire);
       edit(ops[node].release).append(ops[moved].release);
       edit(ops[node].acquire).clear();
       edit(ops[moved].release).clear();
     })},
    {"RefreshedOnTheHost", "P24", on_host(1),
     at_op("refresh block 0", 0,
           [](Plan& p, Op& op) {
             for (std::size_t b = 0; b < p.buffers.size(); ++b)
               if (p.buffers[b].name == "parameters block 0")
                 edit(op.operands)[0].buffer = BufferId{static_cast<std::int32_t>(b)};
           })},
    {"StepInTwoMemories", "P24", optimizer_on(kOnHost),
     at_op("step block 0", 0, [](Plan& p, Op& op) { edit(op.operands)[2].buffer = p.scalars; })},
    {"StepOnDisk", "P24", optimizer_on(kOnDisk),
     at_op("step block 0", 0,
           [](Plan& p, Op& op) {
             for (std::size_t b = 0; b < p.buffers.size(); ++b)
               if (p.buffers[b].name == "block 0 first moment")
                 edit(op.operands)[4].buffer = BufferId{static_cast<std::int32_t>(b)};
           })},
    {"RoundedBehindTheBus", "P25", optimizer_on(kOnHost, Precision::bf16), in_steps([](Plan&, std::vector<Op>& ops) {
       const PhaseOps view{.phase = Phase::steady_step, .ops = ops};
       const std::size_t i = find_op(view, "store block 0");
       edit(ops[i + 1].operands)[0] = ops[i].operands[0];
     })},
    {"OwnedUnitNotBrought", "P8", owned_on_host(3), drop_on_owner("bring parameters block 1")},
    {"OwnedUnitSentFromTheHost", "P24", owned_on_host(3), in_steps([](Plan& p, std::vector<Op>& ops) {
       for (Op& op : ops)
         if (op.name == "gather block 1" && op.operands[0].reads())
           edit(op.operands)[0].buffer = named(p, "parameters block 1");
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

INSTANTIATE_TEST_SUITE_P(Placement, PlantedBugs, testing::ValuesIn(kMisplaced), name_of);

}  // namespace
}  // namespace shard::plan
