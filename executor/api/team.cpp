// Threads of ranks.
#include "executor/api/team.h"

#include <utility>

#include "sim/cli/uncaught.h"

namespace shardscope {

Team::Team(int ranks, std::function<void(int, const shard::Error&)> fell) : fell_(std::move(fell)) {
  try {
    for (int rank = 0; rank < ranks; ++rank) threads_.emplace_back([this, rank] { serve(rank); });
  } catch (...) {  // no more threads: those that there are must go first
    end();
    throw;
  }
}

Team::~Team() {
  end();
}

void Team::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  asked_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

shard::Result<void> Team::all(const std::function<shard::Result<void>(int)>& work) {
  std::unique_lock lock(mutex_);
  if (first_) return *first_;
  work_ = &work;
  working_ = static_cast<int>(threads_.size());
  round_ += 1;
  asked_.notify_all();
  back_.wait(lock, [this] { return working_ == 0; });
  work_ = nullptr;
  if (first_) return *first_;
  return {};
}

void Team::serve(int rank) {
  std::uint64_t done = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [&] { return ended_ || round_ != done; });
    if (ended_) return;
    done = round_;
    const auto& work = *work_;
    lock.unlock();
    const shard::Result<void> result = shard::cli::guarded([&] { return work(rank); });
    lock.lock();
    if (!result) {
      if (!first_) first_ = result.error();
      lock.unlock();
      fell_(rank, result.error());
      lock.lock();
    }
    if (--working_ == 0) back_.notify_one();
  }
}

}  // namespace shardscope
