// A rank's keeper for those who bring the loop: it wants the state when it is told to, and at no other time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "executor/train/checkpoint_keeper.h"
#include "executor/train/session.h"

namespace shardscope {

/// The session is made with it as its keeper. One thread.
class SaveOnDemand final : public shard::train::StateKeeper {
 public:
  struct Outcome {
    std::optional<shard::train::SavedCheckpoint> saved{};  ///< on rank 0
    std::optional<shard::Error> fault{};                   ///< of the checkpoint, the same on all ranks
  };
  using After = std::function<void(const shard::train::SavedCheckpoint&)>;
  using MakeKeeper = std::function<shard::Result<std::unique_ptr<shard::train::CheckpointKeeper>>(After)>;

  /// Saves behind the session's last step with the keeper that `make` makes. All ranks call it. An error is the
  /// session's: where the checkpoint's alone went wrong there is none, and the session goes on.
  [[nodiscard]] shard::Result<void> save(shard::train::Session& session, Outcome& outcome, const MakeKeeper& make);

  [[nodiscard]] shard::Result<bool> wants(std::int64_t, std::int64_t) override { return keeper_ != nullptr; }
  [[nodiscard]] shard::Result<void> begin(std::int64_t steps) override;
  void take(shard::model::ParamId param, shard::plan::StateContent content, std::int64_t first,
            std::span<const std::byte> elements) override;
  [[nodiscard]] shard::Result<void> end() override;

 private:
  /// Notes an error of the checkpoint's, and hands it on.
  [[nodiscard]] shard::Result<void> noted(shard::Result<void> result);

  std::unique_ptr<shard::train::CheckpointKeeper> keeper_{};
  Outcome* outcome_ = nullptr;
};

}  // namespace shardscope
