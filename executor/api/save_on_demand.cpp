// A checkpoint when it is asked for.
#include "executor/api/save_on_demand.h"

namespace shardscope {

shard::Result<void> SaveOnDemand::save(shard::train::Session& session, Outcome& outcome, const MakeKeeper& make) {
  auto keeper = make([&outcome](const shard::train::SavedCheckpoint& saved) { outcome.saved = saved; });
  if (!keeper) return keeper.error();
  keeper_ = std::move(*keeper);
  outcome_ = &outcome;
  const shard::Result<void> kept = session.keep();
  keeper_.reset();
  outcome_ = nullptr;
  return outcome.fault ? shard::Result<void>() : kept;
}

shard::Result<void> SaveOnDemand::begin(std::int64_t steps) {
  return noted(keeper_->begin(steps));
}

void SaveOnDemand::take(shard::model::ParamId param, shard::plan::StateContent content, std::int64_t first,
                        std::span<const std::byte> elements) {
  keeper_->take(param, content, first, elements);
}

shard::Result<void> SaveOnDemand::end() {
  return noted(keeper_->end());
}

shard::Result<void> SaveOnDemand::noted(shard::Result<void> result) {
  if (!result) outcome_->fault = result.error();
  return result;
}

}  // namespace shardscope
