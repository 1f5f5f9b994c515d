// Saves a run's state as checkpoints: each rank writes what it alone holds, and its part of what others hold too.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/state/checkpoint/draft.h"
#include "executor/state/checkpoint/part.h"
#include "executor/train/checkpoint_tensors.h"
#include "executor/train/session.h"
#include "executor/train/together.h"
#include "sim/ir/plan.h"

namespace shard::train {

struct CheckpointPlan {
  CheckpointTensors tensors;     ///< of the run
  std::int64_t tokens = 0;       ///< of one step, over all ranks
  std::filesystem::path folder;  ///< that checkpoints are made in
  std::int64_t every = 0;        ///< steps between two; 0: none but the last
  bool at_end = false;           ///< behind the last step too
  /// The signal by which this rank is asked to end its run, any rank's is all ranks'; 0: none so far. Null: nobody
  /// asks.
  std::function<int()> asked = nullptr;
  std::int64_t keep = 0;         ///< the newest so many stay; 0: all
  bool beside_training = false;  ///< what takes as long as the disk does goes on while the next steps run
  std::string config;            ///< of the model, as Hugging Face's libraries read it; empty: no config.json
  checkpoint::Manifest facts{};  ///< numbers and about; the rest is filled in
};

/// What was saved last.
struct SavedCheckpoint {
  std::filesystem::path path;
  std::int64_t step = 0;
  Bytes bytes{0};
  double seconds = 0;
};

/// One rank's. All ranks see one folder. What it refers to outlives it. One thread, and another of its own for what the
/// disk does: to bring files there, to read them again, to give them their name. With `beside_training` that is done
/// while steps go on. Then end() hands it to that thread, wants() finds out what became of it, and it is waited for by
/// the next begin() and by settle(); errors come from there. At most one checkpoint is being made.
class CheckpointKeeper final : public StateKeeper {
 public:
  /// `after`: called on rank 0 when a checkpoint counts; may be empty.
  CheckpointKeeper(CheckpointPlan what, const plan::Plan& plan, Communicator& communicator,
                   std::function<void(const SavedCheckpoint&)> after);

  /// A run that is asked to end is saved behind these steps, and ends there.
  [[nodiscard]] Result<bool> wants(std::int64_t steps, std::int64_t last) override;
  [[nodiscard]] bool ends_run() const override { return ended_by_ != 0; }
  /// The signal that ended the run before its last step; 0: none. The same on all ranks.
  [[nodiscard]] int ended_by() const { return ended_by_; }
  /// Errors, here and of end(): those of Draft and Part, and io where a rank does not see the folder.
  [[nodiscard]] Result<void> begin(std::int64_t steps) override;
  void take(model::ParamId param, plan::StateContent content, std::int64_t first,
            std::span<const std::byte> elements) override;
  [[nodiscard]] Result<void> end() override;
  [[nodiscard]] Result<void> settle() override;

  /// Of one checkpoint, the manifest left out.
  [[nodiscard]] Bytes bytes() const { return Bytes{layout_.bytes + static_cast<std::int64_t>(what_.config.size())}; }

 private:
  void write(std::int32_t tensor, std::int64_t offset, std::span<const std::byte> bytes);
  [[nodiscard]] Result<std::string> finish_part();
  [[nodiscard]] Result<std::string> commit(const std::vector<std::string>& pieces);
  /// The checkpoint that is being made, as far as it got while steps ran.
  [[nodiscard]] Result<void> go_on();
  /// What all ranks said of the work that is done: on to what comes behind it, if anything does.
  [[nodiscard]] Result<void> go_on_behind(const Result<std::vector<std::string>>& done);

  CheckpointPlan what_;
  const plan::Plan& plan_;
  Communicator& communicator_;
  std::function<void(const SavedCheckpoint&)> after_;
  checkpoint::Layout layout_;
  int ended_by_ = 0;
  std::int64_t steps_ = 0;  ///< of the one that is being saved
  std::chrono::steady_clock::time_point begin_{};
  std::optional<checkpoint::Draft> draft_{};  ///< of rank 0
  std::optional<checkpoint::Part> part_{};
  std::vector<bool> heads_{};           ///< by parameter: this rank writes its first element, and its count
  std::vector<std::int32_t> counts_{};  ///< by parameter; streams hand out state in any order
  std::optional<Error> fault_{};        ///< the first of this rank's
  /// What is done for the checkpoint that end() was called of: first finish_part(), then, `committing_`, commit(). The
  /// last member, so that its thread ends before what it works on.
  bool committing_ = false;
  std::optional<JointWork> work_{};
};

}  // namespace shard::train
