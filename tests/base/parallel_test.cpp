// Is each piece of work done once, on threads that are told apart, whatever processors there are?
#include "traces/base/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <functional>
#include <vector>

namespace shard {
namespace {

TEST(Parallel, EveryIndexIsWorkedOnOnce) {
  for (const bool parallel : {false, true})
    for (const std::size_t count : {0UL, 1UL, 3UL, 1000UL}) {
      std::vector<int> done(count, 0);
      for_each_index(count, parallel, [&](std::size_t i) { ++done[i]; });
      EXPECT_EQ(done, std::vector<int>(count, 1));
    }
}

TEST(Parallel, WhatAThreadHasToItselfNoOtherTouches) {
  std::vector<std::size_t> own(kMostWorkers, 0);
  for_each_index(10'000, true, [&](std::size_t, std::size_t worker) {
    ASSERT_LT(worker, kMostWorkers);
    ++own[worker];  // a race, for the thread sanitizer, were two threads of one number
  });
  std::size_t sum = 0;
  for (const std::size_t each : own) sum += each;
  EXPECT_EQ(sum, 10'000U);
}

/// The processors that this process may use, as they were when this goes.
class Processors {
 public:
  Processors() { sched_getaffinity(0, sizeof allowed_, &allowed_); }
  ~Processors() { sched_setaffinity(0, sizeof allowed_, &allowed_); }
  Processors(const Processors&) = delete;
  Processors& operator=(const Processors&) = delete;
  /// Only the one that the caller is on.
  void keep_one() const {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
  }

 private:
  cpu_set_t allowed_{};
};

TEST(Parallel, OneProcessorIsEnough) {
  const Processors processors;
  processors.keep_one();
  std::vector<int> done(100, 0);
  for_each_index(done.size(), true, [&](std::size_t i) { ++done[i]; });
  EXPECT_EQ(done, std::vector<int>(100, 1));
}

TEST(Parallel, AHelperMayRunWhereItsMakerMay) {
  cpu_set_t makers;
  ASSERT_EQ(sched_getaffinity(0, sizeof makers, &makers), 0);
  cpu_set_t helpers;
  CPU_ZERO(&helpers);
  const std::function<void(std::size_t)> look = [&](std::size_t) { sched_getaffinity(0, sizeof helpers, &helpers); };
  HelperThreads threads;
  ASSERT_TRUE(threads.start(look, 1));
  threads.join();
  EXPECT_TRUE(CPU_EQUAL(&makers, &helpers));
}

}  // namespace
}  // namespace shard
