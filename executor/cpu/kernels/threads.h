// A pool of own threads that runs numbered tasks: no OpenMP, nothing allocated after construction.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace shard::cpu {

/// Runs tasks 0..n-1 on `threads` (>= 1) threads, of which the caller is one (1: no other thread exists).
/// Which thread runs which task is not fixed: kernels give equal bits for any number of threads because their tasks
/// are cut by the shape alone and write disjoint memory, never because of an assignment.
/// A pool serves one caller at a time; run() does not nest. Idle workers spin for some microseconds, then sleep in the
/// kernel; run() waits only for workers that took part, so more threads than cores do not hold each other up.
/// Workers take no signals.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls fn(task), or fn(task, worker) with worker in 0..threads()-1, once for each task in 0..tasks-1; returns when
  /// all are done and their writes are visible to the caller. fn must not throw.
  template <class F>
  void run(std::int64_t tasks, const F& fn) {
    const Call call = [](const void* context, std::int64_t task, int worker) {
      const F& body = *static_cast<const F*>(context);
      if constexpr (std::is_invocable_v<const F&, std::int64_t, int>) {
        body(task, worker);
      } else {
        body(task);
      }
    };
    run_tasks(tasks, call, &fn);
  }

 private:
  using Call = void (*)(const void* context, std::int64_t task, int worker);

  void run_tasks(std::int64_t tasks, Call call, const void* context);
  void work(int worker);
  void drain(int worker);

  // The job: written by the caller while no worker is inside, read by workers that have entered.
  std::int64_t tasks_ = 0;
  Call call_ = nullptr;
  const void* context_ = nullptr;
  // generation << 16 | open << 15 | workers inside. A worker enters by adding one while the job is open.
  alignas(64) std::atomic<std::uint32_t> state_{0};
  alignas(64) std::atomic<std::int64_t> next_{0};   // next task to hand out
  alignas(64) std::atomic<std::uint32_t> left_{0};  // 1 when the last worker has left a job after its closing
  std::atomic<bool> stop_{false};
  std::vector<std::jthread> workers_;
};

}  // namespace shard::cpu
