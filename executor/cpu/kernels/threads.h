// A pool of own threads that runs numbered tasks: no OpenMP, nothing allocated after construction.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace shard::cpu {

/// Runs tasks 0..n-1 on `threads` threads, of which the caller is one (threads 1: no other thread exists).
/// Which thread runs which task is not fixed: kernels get equal bits for any number of threads because their tasks
/// are cut by the shape alone and write disjoint memory, never because of an assignment.
/// A pool belongs to one calling thread at a time; run() does not nest. Idle workers spin for a few microseconds,
/// then sleep in the kernel, so that more ranks than cores do not steal each other's time.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls fn(task), or fn(task, worker) with worker in 0..threads()-1, once for each task in 0..tasks-1; returns when
  /// all are done (their writes are visible to the caller). fn must not throw.
  template <class F>
  void run(std::int64_t tasks, F&& fn) {
    using Fn = std::remove_reference_t<F>;
    const auto call = [](const void* context, std::int64_t task, int worker) {
      const Fn& body = *static_cast<const Fn*>(context);
      if constexpr (std::is_invocable_v<const Fn&, std::int64_t, int>) {
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

  // One job at a time. `generation_` changes when a job is posted; workers that have left it count in `finished_`.
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<int> finished_{0};
  alignas(64) std::int64_t tasks_ = 0;
  Call call_ = nullptr;
  const void* context_ = nullptr;
  bool stop_ = false;
  std::vector<std::jthread> workers_;
};

}  // namespace shard::cpu
