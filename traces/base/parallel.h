// Independent pieces of work on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <type_traits>

#include "traces/base/helper_threads.h"

namespace shard {

/// At most so many threads work on one thing.
inline constexpr std::size_t kMostWorkers = 4;

/// Calls work(0), ..., work(count - 1), each once, in the order of their numbers but beside each other where `parallel`
/// and the machine has more than one processor; returns when all are done. The calling thread works too. `work` must
/// not throw. It may ask for a second number, below kMostWorkers: that of the thread it is called on, for what one
/// thread has to itself.
template <class Work>
void for_each_index(std::size_t count, bool parallel, const Work& work) {
  std::atomic<std::size_t> next = 0;
  const std::function<void(std::size_t)> run = [&](std::size_t worker) {
    for (std::size_t i = next++; i < count; i = next++) {
      if constexpr (std::is_invocable_v<const Work&, std::size_t, std::size_t>)
        work(i, worker);
      else
        work(i);
    }
  };
  const std::size_t threads =
      std::min({parallel ? kMostWorkers : 1, count, std::max<std::size_t>(1, std::thread::hardware_concurrency())});
  HelperThreads helpers;
  // Where the process gets no more threads, those that there are do it.
  for (std::size_t worker = 1; worker < threads && helpers.start(run, worker);) ++worker;
  run(0);
  helpers.join();
}

}  // namespace shard
