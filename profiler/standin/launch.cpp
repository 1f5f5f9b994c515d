// Launches of kernels, which do nothing. What a kernel would write to has no value any more: PyTorch's kernels have
// their output before their inputs, but for reductions, which have the input first.
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "profiler/standin/behind.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/expected.h"
#include "profiler/standin/handles.h"

using namespace shard::standin;

namespace {

/// dim3 of the runtime's launch functions.
struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

constexpr std::size_t kMostArguments = 16, kLongestArgument = 2048;

/// Which of the pointers among a kernel's arguments is its output, from one on; 0 where it is not known.
int output_by_name(const char* name) {
  constexpr struct {
    const char* part;
    int output;
  } kKernels[] = {{"3cub", 2}, {"index_elementwise", 0}, {"6thrust", 0}};
  for (const auto& each : kKernels)
    if (std::strstr(name, each.part) != nullptr) return each.output;
  return 1;
}

/// Those whose output is not their first pointer, by the functions that stand for them.
struct Others {
  std::mutex mutex;
  std::unordered_map<const void*, int> output;
};
Others& others() {
  static auto* const others = new Others;
  return *others;
}

/// The end of this thread's stack, where the compiler's stubs keep arguments.
std::uintptr_t stack_end() {
  thread_local std::uintptr_t end = 0;
  if (end != 0) return end;
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_destroy(&attributes);
  return end = reinterpret_cast<std::uintptr_t>(begin) + bytes;
}

const void* pointer_at(std::uintptr_t address) {
  const void* pointer = nullptr;
  std::memcpy(&pointer, reinterpret_cast<const void*>(address), sizeof(pointer));
  return pointer;
}

/// The only argument of a reduction holds input, output, and a second output or nothing, one behind the other, and then
/// nothing (ATen/native/cuda/Reduce.cuh). What is not used of the tables before them is whatever the stack held.
const void* output_of_reduction(std::uintptr_t begin, std::uintptr_t end) {
  for (std::uintptr_t word = (begin + 7) / 8 * 8; word + 32 <= end; word += 8) {
    const void* const second = pointer_at(word + 16);
    if (is_given(pointer_at(word)) && is_given(pointer_at(word + 8)) && (second == nullptr || is_given(second)) &&
        pointer_at(word + 24) == nullptr)
      return pointer_at(word + 8);
  }
  return nullptr;
}

/// Arguments are pointers to values on the stack, of a number that nobody says: up to the first that points elsewhere.
/// Of their sizes nobody says anything either, so each is looked at where it begins.
const void* nth_pointer(void* const* arguments, int wanted) {
  const auto begin = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), end = stack_end();
  std::uintptr_t at[kMostArguments];
  std::size_t count = 0;
  const auto on_stack = [&](std::uintptr_t address) {
    return address >= begin && address < end && end - address >= sizeof(void*);
  };
  while (count < kMostArguments && on_stack(reinterpret_cast<std::uintptr_t>(arguments + count))) {
    at[count] = reinterpret_cast<std::uintptr_t>(arguments[count]);
    if (!on_stack(at[count])) break;
    ++count;
  }
  if (count == 1) return output_of_reduction(at[0], std::min(at[0] + kLongestArgument, end));
  int pointers = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const void* const pointer = pointer_at(at[i]);
    if (is_given(pointer) && ++pointers == wanted) return pointer;
  }
  return nullptr;
}

int launch(const void* kernel, void* const* arguments) {
  behind().launch();
  int wanted = 1;
  {
    const std::lock_guard lock(others().mutex);
    if (const auto found = others().output.find(kernel); found != others().output.end()) wanted = found->second;
  }
  if (arguments == nullptr || wanted == 0) return kSuccess;
  if (const void* const output = nth_pointer(arguments, wanted); output != nullptr && !only_read(output))
    written_by_kernel(output);
  return kSuccess;
}

}  // namespace

STANDIN void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*, void*,
                                    int*) {
  const int output = output_by_name(name);
  if (output == 1) return;
  const std::lock_guard lock(others().mutex);
  others().output[host] = output;
}
STANDIN int cudaLaunchKernel(const void* kernel, Dim3, Dim3, void** arguments, std::size_t, void*) {
  return launch(kernel, arguments);
}
STANDIN int __cudaLaunchKernel(const void* kernel, Dim3, Dim3, void** arguments, std::size_t, void*) {
  return launch(kernel, arguments);
}
/// By the driver: kernels that were compiled at run time (NVRTC, Triton).
STANDIN int cuLaunchKernel(void* kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                           void** arguments, void**) {
  return launch(kernel, arguments);
}
STANDIN int cuLaunchKernelEx(const void*, void* kernel, void** arguments, void**) {
  return launch(kernel, arguments);
}
STANDIN int cudaLaunchKernelExC(const void*, const void* kernel, void** arguments) {
  return launch(kernel, arguments);
}
