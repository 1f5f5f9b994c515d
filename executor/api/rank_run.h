// One rank of a run whose loop is somebody else's: all that its session needs, on a thread of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "executor/api/impl.h"
#include "executor/api/save_on_demand.h"
#include "executor/api/step_data.h"
#include "executor/comm/communicator.h"
#include "executor/cpu/backend.h"
#include "executor/cpu/memories.h"
#include "executor/train/moments_observer.h"
#include "executor/train/session.h"

namespace shardscope {

/// All but abort() on one thread, create() first; every rank the same calls.
class RankRun {
 public:
  /// Plan, tokens and the run that this one goes on with (null: it is a new one) outlive it.
  RankRun(const Plan::Impl& plan, std::unique_ptr<shard::Communicator> communicator, const OwnTokens& own,
          const shard::train::ResumedRun* resumed);

  [[nodiscard]] shard::Result<void> create();
  [[nodiscard]] shard::Result<shard::train::StepResult> step();
  [[nodiscard]] shard::Result<std::string> digest();
  /// Behind a step. What it returns is the run's fault; the checkpoint's own, after which the run goes on, is in
  /// `outcome`, and on rank 0 what was saved.
  [[nodiscard]] shard::Result<void> save(const std::string& folder, std::int64_t keep, SaveOnDemand::Outcome& outcome);

  /// Of the phase that ended last.
  [[nodiscard]] const shard::record::PhaseMoments& moments() const { return observer_.last(); }
  [[nodiscard]] Live peak() const;
  /// Ends the others.
  void abort(const shard::Error& error) { communicator_->abort(error.what); }

 private:
  const shard::commands::Prepared& prepared_;
  const shard::commands::TrainOptions& train_options_;
  const shard::plan::Plan& plan_;
  std::unique_ptr<shard::Communicator> communicator_;
  const OwnTokens& own_;
  const shard::train::ResumedRun* resumed_;
  SaveOnDemand saver_{};
  shard::train::MomentsObserver observer_;
  shard::train::SessionOptions options_;
  std::unique_ptr<StepData> data_;
  std::unique_ptr<shard::commands::RankWeights> weights_;
  std::optional<shard::cpu::ThreadPool> pool_;
  std::optional<shard::cpu::Memories> memories_;
  std::optional<shard::cpu::Backend> backend_;
  std::optional<shard::train::Session> session_;
};

}  // namespace shardscope
