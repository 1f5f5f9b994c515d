// The CUDA runtime, as far as PyTorch and its libraries call it: kernels do nothing, all that was asked has happened.
#include <cstdlib>
#include <cstring>

#include "profiler/standin/behind.h"
#include "profiler/standin/card.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/handles.h"
#include "profiler/standin/host_memory.h"
#include "profiler/standin/work.h"

using namespace shard::standin;

namespace {

constexpr int kOutOfMemory = 2, kInvalidValue = 1, kNoDevice = 100, kInvalidDevice = 101;
/// Of a PyTorch that is not built for the card.
constexpr int kInvalidFunction = 98, kNoImage = 209;
constexpr int kMemoryOfDevice = 2, kMemoryOfHost = 1, kMemoryUnregistered = 0;
constexpr int kThreadsPerBlock = 1024;

thread_local int current_device = 0;
thread_local int last_error = kSuccess;

int failed(int error) {
  return last_error = error;
}

int moved(void* to, const void* from, std::size_t bytes, const void* stream) {
  keep_work(Work::copy, stream, {static_cast<std::int64_t>(bytes), is_device(from) ? 0 : 1, is_device(to) ? 0 : 1});
  copy(to, from, bytes);
  return kSuccess;
}
int filled(void* to, int value, std::size_t bytes, const void* stream) {
  keep_work(Work::fill, stream, {static_cast<std::int64_t>(bytes)});
  fill(to, value, bytes);
  return kSuccess;
}

int hand_out(void** handle) {
  *handle = fresh_handle();
  return kSuccess;
}

}  // namespace

// --- Memory ---

STANDIN int cudaMalloc(void** pointer, std::size_t bytes) {
  *pointer = bytes == 0 ? nullptr : allocate(bytes, current_device);
  return *pointer == nullptr && bytes > 0 ? failed(kOutOfMemory) : kSuccess;
}
STANDIN int cudaMallocAsync(void** pointer, std::size_t bytes, void*) {
  return cudaMalloc(pointer, bytes);
}
STANDIN int cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
  return cudaMalloc(pointer, bytes);
}
STANDIN int cudaFree(void* pointer) {
  return pointer == nullptr || release(pointer) ? kSuccess : failed(kInvalidValue);
}
STANDIN int cudaFreeAsync(void* pointer, void*) {
  return cudaFree(pointer);
}
STANDIN int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = card().bytes;
  *free = card().bytes - used_bytes(current_device);
  return kSuccess;
}
STANDIN int cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  *pointer = allocate_pinned(bytes);
  return *pointer == nullptr ? failed(kOutOfMemory) : kSuccess;
}
STANDIN int cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}
STANDIN int cudaFreeHost(void* pointer) {
  return pointer == nullptr || release_pinned(pointer) ? kSuccess : failed(kInvalidValue);
}
STANDIN int cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  pin(pointer, bytes);
  return kSuccess;
}
STANDIN int cudaHostUnregister(void* pointer) {
  return unpin(pointer) ? kSuccess : failed(kInvalidValue);
}
STANDIN int cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return kSuccess;
}
STANDIN int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void* stream) {
  return moved(to, from, bytes, stream);
}
STANDIN int cudaMemcpy(void* to, const void* from, std::size_t bytes, int) {
  behind().wait();
  const int done = moved(to, from, bytes, nullptr);
  keep_work(Work::host_wait, nullptr, {1, 0});
  return done;
}
STANDIN int cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, void* stream) {
  return moved(to, from, bytes, stream);
}
STANDIN int cudaMemset(void* to, int value, std::size_t bytes) {
  return filled(to, value, bytes, nullptr);
}
STANDIN int cudaMemsetAsync(void* to, int value, std::size_t bytes, void* stream) {
  return filled(to, value, bytes, stream);
}
STANDIN int cudaPointerGetAttributes(void* attributes, const void* pointer) {
  const bool on_device = is_device(pointer), pinned = !on_device && is_pinned(pointer);
  struct {
    int type, device;
    const void *device_pointer, *host_pointer;
  } const found{on_device ? kMemoryOfDevice
                : pinned  ? kMemoryOfHost
                          : kMemoryUnregistered,
                on_device ? device_of(pointer) : current_device, on_device || pinned ? pointer : nullptr,
                on_device ? nullptr : pointer};
  std::memcpy(attributes, &found, sizeof(found));
  return kSuccess;
}

// --- Devices ---

STANDIN int cudaGetDeviceCount(int* count) {
  *count = visible_cards();
  return *count == 0 ? failed(kNoDevice) : kSuccess;
}
STANDIN int cudaGetDevice(int* device) {
  *device = current_device;
  return kSuccess;
}
STANDIN int cudaSetDevice(int device) {
  if (device < 0 || device >= visible_cards()) return failed(kInvalidDevice);
  current_device = device;
  return kSuccess;
}
STANDIN int cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return kSuccess;
}
STANDIN int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
STANDIN int cudaDriverGetVersion(int* version) {
  *version = card().cuda_version;
  return kSuccess;
}
STANDIN int cudaRuntimeGetVersion(int* version) {
  *version = card().cuda_version;
  return kSuccess;
}

// --- Streams and events: everything has happened when it is asked about ---

STANDIN int cudaStreamCreate(void** stream) {
  return hand_out(stream);
}
STANDIN int cudaStreamCreateWithFlags(void** stream, unsigned) {
  return hand_out(stream);
}
STANDIN int cudaStreamCreateWithPriority(void** stream, unsigned, int) {
  return hand_out(stream);
}
STANDIN int cudaStreamGetPriority(void*, int* priority) {
  *priority = 0;
  return kSuccess;
}
STANDIN int cudaStreamAddCallback(void* stream, void (*call)(void*, int, void*), void* data, unsigned) {
  call(stream, kSuccess, data);
  return kSuccess;
}
STANDIN int cudaLaunchHostFunc(void*, void (*call)(void*), void* data) {
  call(data);
  return kSuccess;
}
STANDIN int cudaEventCreate(void** event) {
  return hand_out(event);
}
STANDIN int cudaEventCreateWithFlags(void** event, unsigned) {
  return hand_out(event);
}
STANDIN int cudaEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 1;  // programs divide by it
  return kSuccess;
}
STANDIN int cudaEventElapsedTime_v2(float* milliseconds, void* begin, void* end) {
  return cudaEventElapsedTime(milliseconds, begin, end);
}

// --- Kernels ---

STANDIN void** __cudaRegisterFatBinary(void*) {
  static void* module = nullptr;
  return &module;
}
STANDIN int __cudaGetKernel(void** kernel, const void* function) {
  *kernel = const_cast<void*>(function);
  return kSuccess;
}
STANDIN int cudaFuncGetAttributes(void* attributes, const void*) {
  // Cards of 8.7 and 8.9 run code for 8.6, which is what PyTorch is built for.
  const int capability = card().compute_capability;
  const int built = capability == 87 || capability == 89 ? 86 : capability;
  struct {
    std::size_t shared_bytes, constant_bytes, local_bytes;
    int max_threads, registers, ptx, binary, cache_mode, max_dynamic_shared, rest[23];
  } found{};
  constexpr std::size_t kBytes = 3 * sizeof(std::size_t) + 29 * sizeof(int);  // of cudaFuncAttributes, without padding
  found.max_threads = kThreadsPerBlock;
  found.registers = 32;  // nobody here knows: what depends on occupancy (CUB's scratch) is a guess
  found.ptx = found.binary = built;
  found.max_dynamic_shared = 48 << 10;
  std::memcpy(attributes, &found, kBytes);
  return kSuccess;
}
STANDIN int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int block, std::size_t) {
  const int fit = block > 0 ? card().threads_per_multiprocessor / block : 1;
  *blocks = fit > 32 ? 32 : fit;
  return kSuccess;
}
STANDIN int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block,
                                                                   std::size_t shared_bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block, shared_bytes);
}
STANDIN int cudaGetSymbolAddress(void** address, const void*) {
  static char word[4096];
  *address = word;
  return kSuccess;
}

// --- Errors ---

STANDIN int cudaGetLastError() {
  const int error = last_error;
  last_error = kSuccess;
  return error;
}
STANDIN int cudaPeekAtLastError() {
  return last_error;
}
STANDIN const char* cudaGetErrorString(int error) {
  switch (error) {
    case kSuccess: return "no error";
    case kInvalidValue: return "invalid argument";
    case kOutOfMemory: return "out of memory";
    case kInvalidFunction: return "invalid device function";
    case kNoImage: return "no kernel image is available for execution on the device";
    case kNoDevice: return "no CUDA-capable device is detected";
    case kInvalidDevice: return "invalid device ordinal";
    default: return "unknown error";
  }
}
STANDIN const char* cudaGetErrorName(int error) {
  switch (error) {
    case kSuccess: return "cudaSuccess";
    case kInvalidValue: return "cudaErrorInvalidValue";
    case kOutOfMemory: return "cudaErrorMemoryAllocation";
    case kInvalidFunction: return "cudaErrorInvalidDeviceFunction";
    case kNoImage: return "cudaErrorNoKernelImageForDevice";
    case kNoDevice: return "cudaErrorNoDevice";
    case kInvalidDevice: return "cudaErrorInvalidDevice";
    default: return "cudaErrorUnknown";
  }
}
