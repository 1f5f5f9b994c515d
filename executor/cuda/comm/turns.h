// Ranks as threads of which one runs at a time: what they enqueue on a device that they share comes in one order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/progress.h"
#include "traces/base/result.h"

namespace shard::cuda {

/// A turn goes round the ranks that have entered and not left. Everything that ranks share is touched by the one whose
/// turn it is, so it needs no lock of its own.
class Turns {
 public:
  /// `deadline`: how long nothing is noted in `progress` until what is waited for is given up.
  Turns(int ranks, std::chrono::milliseconds deadline,
        std::shared_ptr<Progress> progress = std::make_shared<Progress>());

  /// Waits for the first turn; all ranks enter before any goes on.
  void enter(int rank);
  /// Gives the turn on for good. Waits for this rank's turn first, unless it has it.
  void leave(int rank);

  /// Lets the others go on, and returns at this rank's next turn. Errors: what stop() said.
  [[nodiscard]] Result<void> yield(int rank);
  /// Yields until `ready`, which is asked at this rank's turns. Errc::retryable behind the deadline, naming `what` was
  /// waited for.
  template <class Ready>
  [[nodiscard]] Result<void> until(int rank, const std::string& what, const Ready& ready) {
    IdleTime idle(*progress_);
    while (!ready()) {
      if (idle.lasted() > deadline_) return late(rank, what);
      if (Result<void> r = yield(rank); !r) return r;
    }
    return {};
  }
  /// Every rank's waiting ends with this error. The first one stays.
  void stop(const Error& error);
  [[nodiscard]] std::optional<Error> stopped() const;
  [[nodiscard]] std::chrono::milliseconds deadline() const { return deadline_; }
  [[nodiscard]] Progress& progress() { return *progress_; }
  [[nodiscard]] int ranks() const { return static_cast<int>(there_.size()); }

 private:
  [[nodiscard]] Error late(int rank, const std::string& what) const;
  /// The next rank behind `rank` that is there; `rank` itself where it is alone.
  [[nodiscard]] int next(int rank) const;

  std::chrono::milliseconds deadline_;
  std::shared_ptr<Progress> progress_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> there_;
  int missing_;  ///< have not entered yet
  int turn_ = 0;
  std::optional<Error> stopped_;
};

}  // namespace shard::cuda
