// The thread pool: every task once, effects visible afterwards, many short jobs, more threads than cores.
#include "executor/cpu/kernels/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

namespace shard::cpu::test {
namespace {

TEST(ThreadPool, RunsEveryTaskOnceAndShowsItsEffects) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.threads(), threads);
    for (const std::int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<int> runs(static_cast<std::size_t>(tasks), 0);  // plain ints: a data race is the sanitizer's to see
      pool.run(tasks, [&](std::int64_t task) { ++runs[static_cast<std::size_t>(task)]; });
      for (const int count : runs) ASSERT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, ManyShortJobsFollowEachOther) {
  ThreadPool pool(4);
  std::vector<std::int64_t> values(16, 0);
  constexpr std::int64_t kJobs = 70000;  // more than the 16-bit generation
  for (std::int64_t job = 0; job < kJobs; ++job) {
    pool.run(4, [&](std::int64_t task) { values[static_cast<std::size_t>(4 * task)] += job; });
  }
  for (std::size_t task = 0; task < 4; ++task) EXPECT_EQ(values[4 * task], kJobs * (kJobs - 1) / 2);
}

TEST(ThreadPool, WorkersHaveTheirOwnScratch) {
  ThreadPool pool(3);
  std::vector<std::int64_t> scratch(3, 0);
  pool.run(5000, [&](std::int64_t task, int worker) { scratch[static_cast<std::size_t>(worker)] += task; });
  EXPECT_EQ(std::accumulate(scratch.begin(), scratch.end(), std::int64_t{0}), 5000 * 4999 / 2);
}

TEST(ThreadPool, WorkersWakeAfterAPauseLongerThanTheirSpin) {
  ThreadPool pool(2);
  std::atomic<bool> other_ran{false};
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> arrived{0};
    for (int i = 0; i < 20000; ++i) std::this_thread::yield();  // the worker goes to sleep meanwhile
    // Task 0 ends only when another thread has taken task 1.
    pool.run(2, [&](std::int64_t, int worker) {
      ++arrived;
      while (arrived.load() < 2) std::this_thread::yield();
      if (worker != 0) other_ran = true;
    });
  }
  EXPECT_TRUE(other_ran);
}

}  // namespace
}  // namespace shard::cpu::test
