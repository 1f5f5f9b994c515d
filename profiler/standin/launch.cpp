// Launches of kernels, which do nothing. What a kernel would write to has no value any more.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "profiler/standin/behind.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/expected.h"
#include "profiler/standin/handles.h"
#include "profiler/standin/kernel_output.h"
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

/// Kernels whose output is not their first pointer, by the functions that stand for them (output_by_name); and the
/// names of all, where anybody wants to know what runs.
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
  int which = kFirstPointer;
  {
    const std::lock_guard lock(kernels().mutex);
    if (const auto found = kernels().output.find(kernel); found != kernels().output.end()) which = found->second;
  }
  if (const Written written = output_of(arguments, which); written.begin != nullptr && !only_read(written.begin))
    written_by_kernel(written.begin, written.bytes);
  return kSuccess;
}

}  // namespace

STANDIN void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*, void*,
                                    int*) {
  const int output = output_by_name(name);
  if (output == kFirstPointer && !wants_names()) return;
  const std::lock_guard lock(kernels().mutex);
  if (output != kFirstPointer) kernels().output[host] = output;
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
