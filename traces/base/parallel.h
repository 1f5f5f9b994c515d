// Independent pieces of work on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

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
  const auto run = [&](std::size_t worker) {
    for (std::size_t i = next++; i < count; i = next++) {
      if constexpr (std::is_invocable_v<const Work&, std::size_t, std::size_t>)
        work(i, worker);
      else
        work(i);
    }
  };
  std::vector<std::thread> helpers;
  const std::size_t threads =
      std::min({parallel ? kMostWorkers : 1, count, std::max<std::size_t>(1, std::thread::hardware_concurrency())});
  helpers.reserve(threads);
  try {
    while (helpers.size() + 1 < threads) helpers.emplace_back(run, helpers.size() + 1);
  } catch (const std::system_error&) {  // no more threads for this process: those that there are do it
  }
  run(0);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace shard
