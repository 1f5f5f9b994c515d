// The pool's protocol: post, enter, drain, close, leave.
#include "executor/cpu/kernels/threads.h"

#include <pthread.h>
#include <sched.h>

#include <cassert>
#include <csignal>

namespace shard::cpu {
namespace {

constexpr std::uint32_t kOpen = 1U << 15;
constexpr std::uint32_t kInside = kOpen - 1;
constexpr std::uint32_t generation_of(std::uint32_t state) {
  return state >> 16;
}

// About 10 us of spinning (a pause is some 40 ns), as long as the gap between two kernels of a step; then yields for
// the case of more threads than cores; then sleeps until `word` is no longer `old`.
constexpr int kSpins = 256;
constexpr int kYields = 4;

std::uint32_t wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
  for (int i = 0; i < kSpins + kYields; ++i) {
    const std::uint32_t now = word.load(std::memory_order_acquire);
    if (now != old) return now;
    if (i < kSpins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      sched_yield();
    }
  }
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  assert(threads >= 1 && threads < static_cast<int>(kInside));
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { work(worker); });
  } catch (...) {  // too few processes or too little memory are allowed: those that were started must not be waited for
    stop_.store(true, std::memory_order_relaxed);
    state_.fetch_add(1U << 16, std::memory_order_release);
    state_.notify_all();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  state_.fetch_add(1U << 16, std::memory_order_release);
  state_.notify_all();
  workers_.clear();  // joins
}

void ThreadPool::run_tasks(std::int64_t tasks, Call call, const void* context) {
  if (workers_.empty() || tasks <= 1) {
    for (std::int64_t task = 0; task < tasks; ++task) call(context, task, 0);
    return;
  }
  tasks_ = tasks;
  call_ = call;
  context_ = context;
  next_.store(0, std::memory_order_relaxed);
  left_.store(0, std::memory_order_relaxed);
  const std::uint32_t generation = generation_of(state_.load(std::memory_order_relaxed)) + 1;
  state_.store(generation << 16 | kOpen, std::memory_order_release);
  state_.notify_all();
  drain(0);
  const std::uint32_t closed = state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  if ((closed & kInside) == 0) return;
  while (wait_while(left_, 0) == 0) {
  }
}

void ThreadPool::work(int worker) {
  std::uint32_t done = 0;  // state with which this worker has nothing left to do
  for (;;) {
    std::uint32_t state = wait_while(state_, done);
    if (stop_.load(std::memory_order_relaxed)) return;
    if ((state & kOpen) == 0 || generation_of(state) == generation_of(done)) {
      done = state;
      continue;
    }
    if (!state_.compare_exchange_strong(state, state + 1, std::memory_order_acq_rel)) continue;
    drain(worker);
    done = state_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if ((done & (kOpen | kInside)) == 0) {
      left_.store(1, std::memory_order_release);
      left_.notify_one();
    }
  }
}

void ThreadPool::drain(int worker) {
  for (std::int64_t task = next_.fetch_add(1, std::memory_order_relaxed); task < tasks_;
       task = next_.fetch_add(1, std::memory_order_relaxed)) {
    call_(context_, task, worker);
  }
}

}  // namespace shard::cpu
