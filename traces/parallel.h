// Independent pieces of work on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace shard {

/// Calls work(0), ..., work(count - 1), each once, in the order of their numbers but beside each other where `parallel`
/// and the machine has more than one processor; returns when all are done. The calling thread works too. `work` must
/// not throw.
template <class Work>
void for_each_index(std::size_t count, bool parallel, const Work& work) {
  constexpr std::size_t kMostThreads = 4;
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> helpers;
  const std::size_t threads =
      std::min({parallel ? kMostThreads : 1, count, std::max<std::size_t>(1, std::thread::hardware_concurrency())});
  helpers.reserve(threads);
  try {
    while (helpers.size() + 1 < threads) helpers.emplace_back(run);
  } catch (const std::system_error&) {  // no more threads for this process: those that there are do it
  }
  run();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace shard
