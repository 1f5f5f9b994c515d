// What the ranks of a process have been seen to get done, and a wait whose deadline that begins anew.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace shard {

/// Shared by ranks that may wait for one another: while one of them gets on, none of them hangs. Any thread.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  Progress() = default;
  /// `now`: the clock that waits are measured with; any thread calls it.
  explicit Progress(std::function<Clock::time_point()> now) : now_(std::move(now)) {}

  /// Something was done, however little.
  void note() { moves_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t moves() const { return moves_.load(std::memory_order_relaxed); }
  [[nodiscard]] Clock::time_point now() const { return now_(); }

 private:
  std::atomic<std::int64_t> moves_{0};
  std::function<Clock::time_point()> now_ = Clock::now;
};

/// One wait of one thread.
class IdleTime {
 public:
  explicit IdleTime(const Progress& progress) : progress_(progress), moves_(progress.moves()), since_(progress.now()) {}

  /// How long nothing has been done: since this was made, or since a question that found that something was.
  [[nodiscard]] Progress::Clock::duration lasted() {
    const std::int64_t moves =
        progress_.moves();  // before the time: what is done in between counts for the next question
    const Progress::Clock::time_point now = progress_.now();
    if (std::exchange(moves_, moves) != moves) since_ = now;
    return now - since_;
  }

 private:
  const Progress& progress_;
  std::int64_t moves_;
  Progress::Clock::time_point since_;
};

}  // namespace shard
