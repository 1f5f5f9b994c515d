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

void work(std::uint32_t kernels) {
  Records records;
  std::uint64_t t = now();
  CUpti_ActivityMemory4 memory{};
  memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  memory.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  memory.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  memory.address = 4096;
  memory.bytes = 1 << 20;
  memory.timestamp = t;
  records.add(memory);
  for (std::uint32_t i = 1; i <= kernels; ++i, t += 100'000) {
    CUpti_ActivityAPI call{};
    call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    call.cbid = 211;
    call.start = t, call.end = t + 10'000;
    call.correlationId = i;
    CUpti_ActivityKernel10 kernel{};
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel.start = t + 20'000, kernel.end = t + 70'000;
    kernel.correlationId = i;
    kernel.name = "multiply";
    records.add(call).add(kernel);
  }
  if (shard::fake_cupti::is_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) shard::fake_cupti::deliver(records);
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
    for (int i = 0; i < 600 && !shard::fake_cupti::is_enabled(CUPTI_ACTIVITY_KIND_MEMORY2); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  work(100);
  if (how == "_exit") ::_exit(5);
  if (how == "kill") ::raise(SIGKILL);
  if (how == "abort") std::abort();
  return 3;
}
