// The driver, which libraries ask for its functions by name.
#include <cstring>

#include "profiler/standin/card.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/handles.h"

using namespace shard::standin;

namespace {

constexpr int kOutOfMemory = 2;

}  // namespace

STANDIN int cudaGetDevice(int* device);  // runtime.cpp

STANDIN int cuInit(unsigned) {
  return kSuccess;
}
STANDIN int cuDriverGetVersion(int* version) {
  *version = card().cuda_version;
  return kSuccess;
}
STANDIN int cuDeviceGetCount(int* count) {
  *count = visible_cards();
  return kSuccess;
}
STANDIN int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
STANDIN int cuDeviceGetName(char* name, int length, int) {
  std::strncpy(name, card().name, static_cast<std::size_t>(length));
  return kSuccess;
}
STANDIN int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = card().bytes;
  return kSuccess;
}
STANDIN int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}
STANDIN int cuCtxGetCurrent(void** context) {
  static char current;
  *context = &current;
  return kSuccess;
}
STANDIN int cuGetErrorString(int error, const char** text) {
  *text = error == kOutOfMemory ? "out of memory" : error == kSuccess ? "no error" : "invalid argument";
  return kSuccess;
}

// What compilers of kernels ask before they load what they made (Triton's driver.c).
STANDIN int cuFuncGetAttribute(int* value, int which, void*) {
  // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK and _NUM_REGS; what a kernel has of local and shared memory nobody knows.
  constexpr int kMaxThreads = 0, kRegisters = 4, kThreadsPerBlock = 1024, kSomeRegisters = 32;
  *value = which == kMaxThreads ? kThreadsPerBlock : which == kRegisters ? kSomeRegisters : 0;
  return kSuccess;
}
STANDIN int cuDevicePrimaryCtxRetain(void** context, int) {
  return cuCtxGetCurrent(context);
}
STANDIN int cuCtxGetDevice(int* device) {
  return cudaGetDevice(device);
}
STANDIN int cuPointerGetAttribute(void* value, int which, unsigned long long address) {
  constexpr int kDevicePointer = 3;  // CU_POINTER_ATTRIBUTE_DEVICE_POINTER; of numbers, others are ints
  if (which == kDevicePointer) {
    std::memcpy(value, &address, sizeof(address));
  } else {
    const int device = device_of(reinterpret_cast<const void*>(address));
    std::memcpy(value, &device, sizeof(device));
  }
  return kSuccess;
}
STANDIN int cuOccupancyMaxActiveClusters(int* clusters, void*, const void*) {
  *clusters = card().multiprocessors;
  return kSuccess;
}
