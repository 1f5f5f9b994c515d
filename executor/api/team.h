// Threads that do the same thing at the same time, each for its rank, whenever they are asked to.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "traces/base/result.h"

namespace shardscope {

/// One caller at a time.
class Team {
 public:
  /// `fell`: called on the thread of a rank that failed, before all() returns, so that it can tell those who wait for
  /// it.
  Team(int ranks, std::function<void(int rank, const shard::Error& error)> fell);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  /// work(rank) on every rank's thread; returns when all are back. The error that came first, since the others' may be
  /// its consequences; then it stays, and nothing is done any more. What work throws becomes an error.
  [[nodiscard]] shard::Result<void> all(const std::function<shard::Result<void>(int rank)>& work);

 private:
  void serve(int rank);
  void end();

  std::function<void(int, const shard::Error&)> fell_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable back_;
  const std::function<shard::Result<void>(int)>* work_ = nullptr;
  std::uint64_t round_ = 0;
  int working_ = 0;
  bool ended_ = false;
  std::optional<shard::Error> first_;
  std::vector<std::thread> threads_;
};

}  // namespace shardscope
