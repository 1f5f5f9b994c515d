// What stands behind the public classes.
#pragma once

#include <string>
#include <vector>

#include <shardscope/model.h>
#include <shardscope/plan.h>

#include "executor/commands/prepared.h"
#include "sim/model/graph.h"
#include "sim/record/moments.h"

namespace shardscope {

struct Model::Impl {
  std::string argument;  ///< of --model
  shard::model::Model model;
};

struct Plan::Impl {
  shard::commands::TrainOptions options;
  shard::commands::Prepared prepared;
  std::vector<shard::record::PlannedMoments> moments;  ///< by class of PlanSet

  [[nodiscard]] const shard::record::PlannedMoments& of_rank(int rank) const {
    return moments[static_cast<std::size_t>(prepared.plans.class_of_rank[static_cast<std::size_t>(rank)])];
  }
};

[[nodiscard]] Live live_of(const shard::record::LiveMemory& live);
/// What creation leaves, of which master parameters and optimizer state are the optimizer's.
[[nodiscard]] Created created_of(const shard::record::LiveMemory& live);
[[nodiscard]] InStep in_step_of(const shard::record::PhaseMoments& moments);

}  // namespace shardscope
