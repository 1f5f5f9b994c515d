// A program that uses CUDA as far as a recorder sees it: loads what CUDA_INJECTION64_PATH names, and has a CUPTI that
// is played tell of some work. What it does then, its arguments say.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tests/profiler/fake_cupti.h"

namespace {

using shard::fake_cupti::Records;

std::uint64_t now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

/// As CUDA's driver does at its first call.
void initialise() {
  const char* const library = std::getenv("CUDA_INJECTION64_PATH");
  if (library == nullptr) return;
  void* const handle = ::dlopen(library, RTLD_NOW);
  if (handle == nullptr) std::exit(99);
  reinterpret_cast<int (*)()>(::dlsym(handle, "InitializeInjection"))();
}

std::uint32_t calls = 0;

bool is_recording() {
  return shard::fake_cupti::is_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

void allocate() {
  Records records;
  CUpti_ActivityMemory4 memory{};
  memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  memory.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  memory.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  memory.address = 4096;
  memory.bytes = 1 << 20;
  memory.timestamp = now();
  records.add(memory);
  if (shard::fake_cupti::is_enabled(CUPTI_ACTIVITY_KIND_MEMORY2)) shard::fake_cupti::deliver(records);
}

void work(std::uint32_t kernels) {
  Records records;
  std::uint64_t t = now();
  for (std::uint32_t i = 1; i <= kernels; ++i, t += 100'000) {
    CUpti_ActivityAPI call{};
    call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    call.cbid = 211;
    call.start = t, call.end = t + 10'000;
    call.correlationId = ++calls;
    CUpti_ActivityKernel10 kernel{};
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel.start = t + 20'000, kernel.end = t + 70'000;
    kernel.correlationId = calls;
    kernel.name = "multiply";
    records.add(call).add(kernel);
  }
  if (is_recording()) shard::fake_cupti::deliver(records);
}

template <class Condition>
void wait_until(Condition condition) {
  for (int i = 0; i < 1000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

/// A child that ends by exit, as Python's multiprocessing does; not 0 where it could not.
int fork_and_exit() {
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0 ? 3 : 95;
}

/// Has whoever profiles switch recording off, and on again.
int be_paused() {
  wait_until(is_recording);
  ::kill(::getppid(), SIGUSR1);
  wait_until([] { return !is_recording(); });
  if (is_recording()) return 94;
  work(50);
  ::kill(::getppid(), SIGUSR1);
  wait_until(is_recording);
  if (!is_recording()) return 93;
  work(100);
  return 3;
}

/// Six steps of ten kernels, and one kernel before each; steps 2 and 3 are asked for. Not 0 where recording was on when
/// it should not have been, or off.
int train(const char* name) {
  for (int step = 1; step <= 6; ++step) {
    const bool wanted = step == 2 || step == 3;
    wait_until([] { return !is_recording(); });
    if (is_recording()) return 97;
    work(1);
    shard::fake_cupti::push_range(name);
    if (is_recording() != wanted) return 96;
    const std::uint64_t begin = now();
    work(10);
    // Calls are said to last 0.1 ms each, and lie in the range.
    while (now() < begin + 1'000'000) std::this_thread::yield();
    shard::fake_cupti::pop_range();
  }
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "exit";
  if (how == "without-cuda") return 7;
  if (how == "refused") shard::fake_cupti::answer("cuptiSubscribe", CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  if (how == "two") {
    for (int rank = 0; rank < 2; ++rank) {
      if (::fork() == 0) {
        ::setenv("RANK", std::to_string(rank).c_str(), 1);
        ::execl("/proc/self/exe", argv[0], "exit", nullptr);
        ::_exit(98);
      }
    }
    while (::wait(nullptr) > 0) {
    }
    return 0;
  }
  initialise();
  if (how == "late") {
    // Until the recorder is told to begin.
    wait_until(is_recording);
  }
  allocate();
  if (how.starts_with("train ")) return train(how.c_str() + std::strlen("train "));
  if (how == "paused") return be_paused();
  work(how == "many" ? 40'000 : 100);
  if (how == "fork") return fork_and_exit();
  if (how == "_exit") ::_exit(5);
  if (how == "kill") ::raise(SIGKILL);
  if (how == "abort") std::abort();
  return 3;
}
