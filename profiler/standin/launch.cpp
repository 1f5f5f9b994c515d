// Launches of kernels, which do nothing. What a kernel would write to has no value any more: PyTorch's kernels have
// their output before their inputs, but for reductions, which have the input first.
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "profiler/standin/behind.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/expected.h"
#include "profiler/standin/handles.h"
#include "profiler/standin/work.h"

using namespace shard::standin;

namespace {

/// dim3 of the runtime's launch functions.
struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// cudaLaunchConfig_t, and CUlaunchConfig, as far as they are read.
struct RuntimeConfig {
  Dim3 grid, block;
  std::size_t shared_bytes;
  void* stream;
};
struct DriverConfig {
  Dim3 grid, block;
  unsigned shared_bytes;
  void* stream;
};

constexpr std::size_t kMostArguments = 16, kLongestArgument = 2048;

/// Which of the pointers among a kernel's arguments is its output, from one on; 0 where it is not known.
int output_by_name(const char* name) {
  constexpr struct {
    const char* part;
    int output;
  } kKernels[] = {{"3cub", 2},
                  {"index_elementwise", 0},
                  {"6thrust", 0},
                  {"compute_cuda_kernel", 3},  // of repeat_interleave
                  {"embedding_backward_feature_kernel", 3},
                  {"EmbeddingBag_updateOutputKernel", 4}};
  for (const auto& each : kKernels)
    if (std::strstr(name, each.part) != nullptr) return each.output;
  return 1;
}

/// Kernels whose output is not their first pointer, by the functions that stand for them; and the names of all, where
/// anybody wants to know what runs.
struct Kernels {
  std::mutex mutex;
  std::unordered_map<const void*, int> output;
  std::unordered_map<const void*, const char*> names;
};
Kernels& kernels() {
  static auto* const kernels = new Kernels;
  return *kernels;
}
bool wants_names() {
  static const bool wants = std::getenv("SHARDSCOPE_STANDIN_WORK") != nullptr;
  return wants;
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
  const void* last = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const void* const pointer = pointer_at(at[i]);
    if (!is_given(pointer)) continue;
    last = pointer;
    if (++pointers == wanted) return pointer;
  }
  // An empty tensor has no address, so that a sum of nothing has its output first.
  return last;
}

void keep_launch(const void* kernel, Dim3 grid, Dim3 block, const void* stream) {
  if (!keeps_work()) return;
  const char* name = "";
  {
    const std::lock_guard lock(kernels().mutex);
    if (const auto found = kernels().names.find(kernel); found != kernels().names.end()) name = found->second;
  }
  keep_work(Work::kernel, stream, {grid.x, grid.y, grid.z, block.x, block.y, block.z}, name);
}

int launch(const void* kernel, void* const* arguments) {
  behind().launch();
  int wanted = 1;
  {
    const std::lock_guard lock(kernels().mutex);
    if (const auto found = kernels().output.find(kernel); found != kernels().output.end()) wanted = found->second;
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
  if (output == 1 && !wants_names()) return;
  const std::lock_guard lock(kernels().mutex);
  if (output != 1) kernels().output[host] = output;
  if (wants_names()) kernels().names[host] = name;
}
STANDIN int cudaLaunchKernel(const void* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t, void* stream) {
  keep_launch(kernel, grid, block, stream);
  return launch(kernel, arguments);
}
STANDIN int __cudaLaunchKernel(const void* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t, void* stream) {
  keep_launch(kernel, grid, block, stream);
  return launch(kernel, arguments);
}
/// By the driver: kernels that were compiled at run time (NVRTC, Triton).
STANDIN int cuLaunchKernel(void* kernel, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                           unsigned block_z, unsigned, void* stream, void** arguments, void**) {
  keep_launch(kernel, {x, y, z}, {block_x, block_y, block_z}, stream);
  return launch(kernel, arguments);
}
STANDIN int cuLaunchKernelEx(const void* config, void* kernel, void** arguments, void**) {
  const auto& said = *static_cast<const DriverConfig*>(config);
  keep_launch(kernel, said.grid, said.block, said.stream);
  return launch(kernel, arguments);
}
STANDIN int cudaLaunchKernelExC(const void* config, const void* kernel, void** arguments) {
  const auto& said = *static_cast<const RuntimeConfig*>(config);
  keep_launch(kernel, said.grid, said.block, said.stream);
  return launch(kernel, arguments);
}

// --- What the compiler's stubs say between <<< and >>>, and take again ---

namespace {

struct Configuration {
  Dim3 grid, block;
  std::size_t shared_bytes = 0;
  void* stream = nullptr;
};
thread_local Configuration pushed{};

}  // namespace

STANDIN unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared_bytes, void* stream) {
  pushed = {.grid = grid, .block = block, .shared_bytes = shared_bytes, .stream = stream};
  return 0;
}
STANDIN int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared_bytes, void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared_bytes = pushed.shared_bytes;
  std::memcpy(stream, &pushed.stream, sizeof(pushed.stream));
  return kSuccess;
}

// --- Kernels that are compiled at run time, by name ---

STANDIN int cuModuleLoadData(void** module, const void*) {
  *module = fresh_handle();
  return kSuccess;
}
STANDIN int cuModuleGetFunction(void** function, void*, const char* name) {
  *function = fresh_handle();
  if (!wants_names()) return kSuccess;
  const char* const kept = ::strdup(name);  // as long as the process: there are few
  const std::lock_guard lock(kernels().mutex);
  kernels().names[*function] = kept;
  return kSuccess;
}
STANDIN int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return cuModuleGetFunction(kernel, library, name);
}
STANDIN int cuKernelGetFunction(void** function, void* kernel) {
  *function = kernel;
  return kSuccess;
}
