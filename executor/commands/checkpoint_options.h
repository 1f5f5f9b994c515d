// Checkpoints of `shardscope train`: the options, what is checked before any rank starts, what is written down.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/train/checkpoint_keeper.h"
#include "executor/train/resumed_run.h"
#include "sim/cli/command_line.h"

namespace shard::commands {

struct TrainOptions;
struct Prepared;

struct CheckpointOptions {
  std::string save;        ///< a folder; empty: none
  std::int64_t every = 0;  ///< steps; 0: the last alone
  bool at_exit = false;    ///< behind the last step too, and where a signal ends the run
  bool async = false;      ///< steps go on while the disk works
  std::int64_t keep = 0;   ///< 0: all
  std::string resume;      ///< a checkpoint or a folder of them; empty: a new run
  bool resume_inexact = false;
  std::function<int()> asked = nullptr;  ///< as CheckpointPlan's; no option
};

/// Declares --save, --save-every, --save-at-exit, --save-async, --keep, --resume, --resume-inexact.
void add_checkpoint_options(cli::Command& command, CheckpointOptions& options);

/// What the numbers of the run depend on, and what a reader of its checkpoints may want to know.
[[nodiscard]] checkpoint::Manifest facts_of(const Prepared& prepared, const TrainOptions& options);

/// Which saved run is to go on, and how errors call who asks for it: "--resume DIR", "--resume-inexact".
struct ResumeRequest {
  std::string folder;  ///< a checkpoint or a folder of them
  bool inexact = false;
  std::string by;
  std::string inexact_by;
};

/// That run. Errors: contradiction where its numbers depend on other values (`inexact` takes them), and with weights to
/// begin with; those of ResumedRun. `notes` gets what is taken inexactly.
[[nodiscard]] Result<std::shared_ptr<const train::ResumedRun>> resumed_run(const ResumeRequest& request,
                                                                           const TrainOptions& options,
                                                                           const Prepared& prepared,
                                                                           std::vector<std::string>& notes);

/// The run that --resume names; null without. Errors: those of resumed_run(); contradiction where the run is over.
[[nodiscard]] Result<std::shared_ptr<const train::ResumedRun>> open_resumed(const cli::Command& command,
                                                                            const TrainOptions& options,
                                                                            const Prepared& prepared,
                                                                            std::vector<std::string>& notes);

/// Can the run's checkpoints be saved: options that go together, the folder, room for as many as will be there at once.
[[nodiscard]] Result<void> check_checkpoints(const cli::Command& command, const TrainOptions& options,
                                             const Prepared& prepared);

/// A rank's keeper; null where nothing is saved. `after`: as CheckpointKeeper's. What it refers to outlives it.
[[nodiscard]] Result<std::unique_ptr<train::CheckpointKeeper>> keeper_of(
    const TrainOptions& options, const Prepared& prepared, const plan::Plan& plan, Communicator& communicator,
    std::function<void(const train::SavedCheckpoint&)> after);

}  // namespace shard::commands
