// The driver's functions that do what the runtime's do.
#include <cstddef>
#include <cstdint>

#include "profiler/standin/device_memory.h"
#include "profiler/standin/handles.h"
#include "profiler/standin/host_memory.h"
#include "profiler/standin/work.h"

using namespace shard::standin;

// runtime.cpp, behind.cpp and capture.cpp
STANDIN int cudaMalloc(void** pointer, std::size_t bytes);
STANDIN int cudaFree(void* pointer);
STANDIN int cudaMemGetInfo(std::size_t* free, std::size_t* total);
STANDIN int cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags);
STANDIN int cudaFreeHost(void* pointer);
STANDIN int cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags);
STANDIN int cudaHostUnregister(void* pointer);
STANDIN int cudaEventElapsedTime(float* milliseconds, void* begin, void* end);
STANDIN int cudaEventQuery(void* event);
STANDIN int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind);
STANDIN int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream);
STANDIN int cudaMemsetAsync(void* to, int value, std::size_t bytes, void* stream);
STANDIN int cudaDeviceSynchronize();
STANDIN int cudaStreamSynchronize(void* stream);
STANDIN int cudaEventSynchronize(void* event);
STANDIN int cudaEventDestroy(void* event);
STANDIN int cudaEventRecord(void* event, void* stream);
STANDIN int cudaStreamWaitEvent(void* stream, void* event, unsigned flags);
STANDIN int cudaLaunchHostFunc(void* stream, void (*call)(void*), void* data);

namespace {

constexpr int kInvalidValue = 1;
constexpr int kDefault = 4;  // cudaMemcpyDefault: by the addresses

/// CUdeviceptr.
using Address = std::uintptr_t;

void* pointer(Address address) {
  return reinterpret_cast<void*>(address);
}

int take(Address* address, std::size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  void* taken = nullptr;
  const int fault = cudaMalloc(&taken, bytes);
  *address = reinterpret_cast<Address>(taken);
  return fault;
}

int moved(void* to, const void* from, std::size_t bytes, void* stream) {
  return cudaMemcpyAsync(to, from, bytes, kDefault, stream);
}
int moved_and_waited(void* to, const void* from, std::size_t bytes) {
  return cudaMemcpy(to, from, bytes, kDefault);
}

int filled(Address to, int value, std::size_t bytes, void* stream = nullptr) {
  return cudaMemsetAsync(pointer(to), value, bytes, stream);
}
/// Words of more than one value nobody keeps, zeros apart.
int filled_with_words(Address to, unsigned value, std::size_t bytes, void* stream = nullptr) {
  if (value == 0) return filled(to, 0, bytes, stream);
  keep_work(Work::fill, stream, {static_cast<std::int64_t>(bytes)});
  if (is_device(pointer(to))) forget_values(pointer(to), bytes);
  return kSuccess;
}

int handed_out(void** handle) {
  *handle = fresh_handle();
  return kSuccess;
}

}  // namespace

// --- Memory ---

STANDIN int cuMemAlloc_v2(Address* address, std::size_t bytes) {
  return take(address, bytes);
}
STANDIN int cuMemAllocAsync(Address* address, std::size_t bytes, void*) {
  return take(address, bytes);
}
STANDIN int cuMemAllocManaged(Address* address, std::size_t bytes, unsigned) {
  return take(address, bytes);
}
STANDIN int cuMemFree_v2(Address address) {
  return cudaFree(pointer(address));
}
STANDIN int cuMemFreeAsync(Address address, void*) {
  return cudaFree(pointer(address));
}
STANDIN int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return cudaMemGetInfo(free, total);
}
STANDIN int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(memory, bytes, flags);
}
STANDIN int cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  return cudaHostAlloc(memory, bytes, 0);
}
STANDIN int cuMemFreeHost(void* memory) {
  return cudaFreeHost(memory);
}
STANDIN int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
  return cudaHostRegister(memory, bytes, flags);
}
STANDIN int cuMemHostUnregister(void* memory) {
  return cudaHostUnregister(memory);
}
STANDIN int cuMemHostGetDevicePointer_v2(Address* address, void* memory, unsigned) {
  *address = reinterpret_cast<Address>(memory);
  return kSuccess;
}

// --- Copies ---

STANDIN int cuMemcpy(Address to, Address from, std::size_t bytes) {
  return moved_and_waited(pointer(to), pointer(from), bytes);
}
STANDIN int cuMemcpyAsync(Address to, Address from, std::size_t bytes, void* stream) {
  return moved(pointer(to), pointer(from), bytes, stream);
}
STANDIN int cuMemcpyHtoD_v2(Address to, const void* from, std::size_t bytes) {
  return moved_and_waited(pointer(to), from, bytes);
}
STANDIN int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, void* stream) {
  return moved(pointer(to), from, bytes, stream);
}
STANDIN int cuMemcpyDtoH_v2(void* to, Address from, std::size_t bytes) {
  return moved_and_waited(to, pointer(from), bytes);
}
STANDIN int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, void* stream) {
  return moved(to, pointer(from), bytes, stream);
}
STANDIN int cuMemcpyDtoD_v2(Address to, Address from, std::size_t bytes) {
  return moved_and_waited(pointer(to), pointer(from), bytes);
}
STANDIN int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, void* stream) {
  return moved(pointer(to), pointer(from), bytes, stream);
}
STANDIN int cuMemsetD8_v2(Address to, unsigned char value, std::size_t count) {
  return filled(to, value, count);
}
STANDIN int cuMemsetD8Async(Address to, unsigned char value, std::size_t count, void* stream) {
  return filled(to, value, count, stream);
}
STANDIN int cuMemsetD32_v2(Address to, unsigned value, std::size_t count) {
  return filled_with_words(to, value, count * sizeof(unsigned));
}
STANDIN int cuMemsetD32Async(Address to, unsigned value, std::size_t count, void* stream) {
  return filled_with_words(to, value, count * sizeof(unsigned), stream);
}

// --- Streams and events ---

STANDIN int cuCtxSynchronize() {
  return cudaDeviceSynchronize();
}
STANDIN int cuStreamCreate(void** stream, unsigned) {
  return handed_out(stream);
}
STANDIN int cuStreamCreateWithPriority(void** stream, unsigned, int) {
  return handed_out(stream);
}
STANDIN int cuStreamSynchronize(void* stream) {
  return cudaStreamSynchronize(stream);
}
STANDIN int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return cudaStreamWaitEvent(stream, event, flags);
}
STANDIN int cuLaunchHostFunc(void* stream, void (*call)(void*), void* data) {
  return cudaLaunchHostFunc(stream, call, data);
}
STANDIN int cuEventCreate(void** event, unsigned) {
  return handed_out(event);
}
STANDIN int cuEventRecord(void* event, void* stream) {
  return cudaEventRecord(event, stream);
}
STANDIN int cuEventQuery(void* event) {
  return cudaEventQuery(event);
}
STANDIN int cuEventSynchronize(void* event) {
  return cudaEventSynchronize(event);
}
STANDIN int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  return cudaEventElapsedTime(milliseconds, begin, end);
}
STANDIN int cuEventDestroy_v2(void* event) {
  return cudaEventDestroy(event);
}
