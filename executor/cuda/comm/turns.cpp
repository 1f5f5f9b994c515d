// A turn that goes round.
#include "executor/cuda/comm/turns.h"

#include <utility>

#include "executor/comm/validate.h"
#include "traces/base/deadline.h"

namespace shard::cuda {

Turns::Turns(int ranks, std::chrono::milliseconds deadline, std::shared_ptr<Progress> progress)
    : deadline_(deadline),
      progress_(std::move(progress)),
      there_(static_cast<std::size_t>(ranks), false),
      missing_(ranks) {}

void Turns::enter(int rank) {
  std::unique_lock lock(mutex_);
  there_[static_cast<std::size_t>(rank)] = true;
  --missing_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return missing_ == 0 && turn_ == rank; });
}

void Turns::leave(int rank) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return missing_ == 0 && turn_ == rank; });
  turn_ = next(rank);
  there_[static_cast<std::size_t>(rank)] = false;
  changed_.notify_all();
}

Result<void> Turns::yield(int rank) {
  std::unique_lock lock(mutex_);
  turn_ = next(rank);
  if (turn_ != rank) {
    changed_.notify_all();
    changed_.wait(lock, [&] { return turn_ == rank; });
  }
  if (stopped_) return *stopped_;
  return {};
}

void Turns::stop(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) stopped_ = error;
}

std::optional<Error> Turns::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

Error Turns::late(int rank, const std::string& what) const {
  return {.code = Errc::retryable,
          .what = what + " did not come within " + in_seconds(deadline_),
          .where = rank_name(Rank{rank}),
          .help = "look at what that rank is doing; a larger --timeout helps if it is only slow"};
}

int Turns::next(int rank) const {
  const int ranks = static_cast<int>(there_.size());
  for (int step = 1; step < ranks; ++step)
    if (const int other = (rank + step) % ranks; there_[static_cast<std::size_t>(other)]) return other;
  return rank;
}

}  // namespace shard::cuda
