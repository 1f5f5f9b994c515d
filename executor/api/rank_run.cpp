// One rank of a run.
#include "executor/api/rank_run.h"

#include <utility>

namespace shardscope {

using shard::Memory;

RankRun::RankRun(const Plan::Impl& plan, std::unique_ptr<shard::Communicator> communicator, const OwnTokens& own,
                 const shard::train::ResumedRun* resumed)
    : prepared_(plan.prepared),
      train_options_(plan.options),
      plan_(plan.prepared.plans.of_rank(communicator->rank().value)),
      communicator_(std::move(communicator)),
      own_(own),
      resumed_(resumed),
      observer_(plan_),
      options_(shard::commands::session_options(plan.options)) {
  options_.observer = &observer_;
  options_.keeper = &saver_;
  options_.before_phase = [this](shard::Phase phase, std::int64_t) { observer_.begin(phase); };
  options_.after_phase = [this] { observer_.end(); };
}

shard::Result<void> RankRun::create() {
  const shard::plan::Strategy& s = prepared_.planned.strategy;
  const shard::BatchShape shape{.batch = s.micro_batch, .sequence = s.sequence, .seed = options_.seed, .order = train_options_.data_order};
  auto data = shard::open_data(train_options_.data, *prepared_.planned.model, shape);
  if (!data) return data.error();
  data_ = std::make_unique<StepData>(std::move(*data), own_, shape, plan_.micro_batches);
  auto weights = shard::commands::RankWeights::start(train_options_.weights, prepared_.weights,
                                                     prepared_.planned.config, plan_, *communicator_);
  if (!weights) return weights.error();
  weights_ = std::move(*weights);
  weights_->tell(options_);
  if (resumed_ != nullptr) resumed_->tell(options_);
  pool_.emplace(s.threads);
  const auto arena = communicator_->make_arena(plan_.arena_bytes[static_cast<std::size_t>(Memory::device)]);
  if (!arena) return arena.error();
  auto memories = shard::cpu::Memories::make(plan_, *arena, options_.disk_path);
  if (!memories) return memories.error();
  memories_.emplace(std::move(*memories));
  backend_.emplace(plan_, *communicator_, *memories_, *data_, *pool_, shard::train::backend_options(options_));
  session_.emplace(*backend_, plan_, *communicator_, options_);
  return session_->create();
}

shard::Result<shard::train::StepResult> RankRun::step() {
  return session_->step();
}

shard::Result<std::string> RankRun::digest() {
  return session_->digest();
}

shard::Result<void> RankRun::save(const std::string& folder, std::int64_t keep, SaveOnDemand::Outcome& outcome) {
  shard::commands::TrainOptions options = train_options_;
  options.checkpoints = {};
  options.checkpoints.save = folder;
  options.checkpoints.keep = keep;
  return saver_.save(*session_, outcome, [&](auto after) {
    return shard::commands::keeper_of(options, prepared_, plan_, *communicator_, std::move(after));
  });
}

Live RankRun::peak() const {
  return {.device = session_->peak(Memory::device),
          .host = session_->peak(Memory::host) + session_->peak(Memory::pinned),
          .disk = session_->peak(Memory::disk)};
}

}  // namespace shardscope
