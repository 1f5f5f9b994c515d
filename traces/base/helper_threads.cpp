// POSIX threads, since std::thread cannot say where it begins.
#include "traces/base/helper_threads.h"

#include <pthread.h>
#include <sched.h>

namespace shard {

struct HelperThreads::Helper {
  const std::function<void(std::size_t)>* work = nullptr;
  std::size_t number = 0;
  cpu_set_t allowed{};  ///< of the process; none: not known
  pthread_t thread{};
};

namespace {

/// The processors of `allowed` without the caller's own; none where that is the only one.
cpu_set_t others(cpu_set_t allowed) {
  if (const int own = sched_getcpu(); own >= 0) CPU_CLR(static_cast<std::size_t>(own), &allowed);
  return allowed;
}

/// As the attributes say; where the kernel does not want them, wherever it likes.
bool create(pthread_t& thread, const cpu_set_t& where, void* (*run)(void*), void* helper) {
  pthread_attr_t attributes;
  if (CPU_COUNT(&where) > 0 && pthread_attr_init(&attributes) == 0) {
    const bool created = pthread_attr_setaffinity_np(&attributes, sizeof where, &where) == 0 &&
                         pthread_create(&thread, &attributes, run, helper) == 0;
    pthread_attr_destroy(&attributes);
    if (created) return true;
  }
  return pthread_create(&thread, nullptr, run, helper) == 0;
}

}  // namespace

HelperThreads::HelperThreads() = default;

HelperThreads::~HelperThreads() {
  join();
}

void* HelperThreads::run(void* helper) {
  const Helper& self = *static_cast<const Helper*>(helper);
  if (CPU_COUNT(&self.allowed) > 0) sched_setaffinity(0, sizeof self.allowed, &self.allowed);
  (*self.work)(self.number);
  return nullptr;
}

bool HelperThreads::start(const std::function<void(std::size_t)>& work, std::size_t number) {
  auto helper = std::make_unique<Helper>();
  helper->work = &work;
  helper->number = number;
  if (sched_getaffinity(0, sizeof helper->allowed, &helper->allowed) != 0) CPU_ZERO(&helper->allowed);
  if (!create(helper->thread, others(helper->allowed), run, helper.get())) return false;
  helpers_.push_back(std::move(helper));
  return true;
}

void HelperThreads::join() {
  for (const std::unique_ptr<Helper>& helper : helpers_) pthread_join(helper->thread, nullptr);
  helpers_.clear();
}

}  // namespace shard
