// Events over launches, and CUDA's functions that ask for them or wait.
#include "profiler/standin/behind.h"

#include "profiler/standin/card.h"
#include "profiler/standin/handles.h"
#include "profiler/standin/work.h"

namespace shard::standin {
namespace {

constexpr int kNotReady = 600;

}  // namespace

void Behind::launch() {
  if (at_once()) return;
  const std::lock_guard lock(mutex_);
  ++now_;
  asked_ = 0;
}

void Behind::record(const void* event) {
  if (at_once()) return;
  const std::lock_guard lock(mutex_);
  recorded_[event] = now_;
}

void Behind::forget(const void* event) {
  if (at_once()) return;
  const std::lock_guard lock(mutex_);
  recorded_.erase(event);
}

void Behind::wait() {
  if (at_once()) return;
  const std::lock_guard lock(mutex_);
  recorded_.clear();
  asked_ = 0;
}

bool Behind::is_over(const void* event) {
  if (at_once()) return true;
  const std::lock_guard lock(mutex_);
  const auto found = recorded_.find(event);
  if (found == recorded_.end()) return true;
  if (launches_ != kUntilWaited && now_ - found->second >= launches_) return true;
  return ++asked_ > kPatience;
}

Behind& behind() {
  static auto* const behind = new Behind(card().behind);
  return *behind;
}

}  // namespace shard::standin

using namespace shard::standin;

STANDIN int cudaEventQuery(void* event) {
  return behind().is_over(event) ? kSuccess : kNotReady;
}
STANDIN int cudaEventDestroy(void* event) {
  behind().forget(event);
  return kSuccess;
}
STANDIN int cudaEventSynchronize(void* event) {
  keep_work(Work::host_wait, nullptr, {2, number_of(event)});
  behind().wait();
  return kSuccess;
}
STANDIN int cudaStreamSynchronize(void* stream) {
  keep_work(Work::host_wait, stream, {1, 0});
  behind().wait();
  return kSuccess;
}
STANDIN int cudaDeviceSynchronize() {
  keep_work(Work::host_wait, nullptr, {0, 0});
  behind().wait();
  return kSuccess;
}
