// Threads that help their maker: at once, on other processors than its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace shard {

/// Kernels of virtual machines put a new thread beside its maker when the other processors sleep, and move it some
/// milliseconds later, which is as long as the work takes. So a helper begins on another processor of those that the
/// process may use, and from then on may run on any of them.
class HelperThreads {
 public:
  HelperThreads();
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;
  ~HelperThreads();  ///< joins

  /// Calls work(number) on a new thread. `work` outlives join() and does not throw. False where the process gets no
  /// more threads.
  [[nodiscard]] bool start(const std::function<void(std::size_t)>& work, std::size_t number);
  /// Returns when all have ended.
  void join();

 private:
  struct Helper;
  static void* run(void* helper);
  std::vector<std::unique_ptr<Helper>> helpers_;
};

}  // namespace shard
