// SA_RESETHAND: the handler works once, so a program that does not look at the flag can still be ended.
#include "executor/launch/stop_signal.h"

#include <signal.h>

namespace shard {
namespace {

std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void remember(int signal) {
  int none = 0;
  stop_signal.compare_exchange_strong(none, signal, std::memory_order_relaxed);
}

}  // namespace

const std::atomic<int>* install_stop_signal() {
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  return &stop_signal;
}

}  // namespace shard
