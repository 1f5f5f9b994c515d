// What a card says of itself. The layouts are those of cudaDeviceProp of CUDA 12 and 13 (driver_types.h).
#include <cstddef>
#include <cstring>

#include "profiler/standin/card.h"
#include "profiler/standin/handles.h"
#include "profiler/standin/identity.h"

namespace shard::standin {
namespace {

constexpr int kThreadsPerBlock = 1024, kWarp = 32, kSharedPerBlock = 48 << 10, kRegisters = 64 << 10;
constexpr int kGridX = 2147483647, kGridYz = 65535, kTextureAlignment = 512, kConstantBytes = 64 << 10;
constexpr int kCuda13 = 13000;

/// Bytes of shared memory that a block may ask for, and of a multiprocessor, by compute capability (CUDA C++
/// Programming Guide, table of technical specifications).
struct Shared {
  int per_block, per_multiprocessor;
};
Shared shared() {
  switch (card().compute_capability) {
    case 70: return {96 << 10, 96 << 10};
    case 75: return {64 << 10, 64 << 10};
    case 80: return {163 << 10, 164 << 10};
    case 86:
    case 89:
    case 120: return {99 << 10, 100 << 10};
    default: return {227 << 10, 228 << 10};
  }
}

int blocks_per_multiprocessor() {
  switch (card().compute_capability) {
    case 75:
    case 86: return 16;
    case 89:
    case 120: return 24;
    default: return 32;
  }
}

int l2_bytes() {
  switch (card().compute_capability) {
    case 70:
    case 75: return 6 << 20;
    case 80: return 40 << 20;
    default: return 50 << 20;
  }
}

/// Writes fields one behind the other, aligned as a C compiler does.
class Struct {
 public:
  explicit Struct(void* at) : at_(static_cast<char*>(at)) {}
  template <class T>
  Struct& add(T value) {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    std::memcpy(at_ + offset_, &value, sizeof(T));
    offset_ += sizeof(T);
    return *this;
  }
  /// So many ints of no meaning here.
  Struct& ints(int count) {
    for (int i = 0; i < count; ++i) add(0);
    return *this;
  }
  Struct& text(const char* text, std::size_t room) {
    std::strncpy(at_ + offset_, text, room - 1);
    offset_ += room;
    return *this;
  }

 private:
  char* at_;
  std::size_t offset_ = 0;
};

constexpr std::size_t kBytesOfProperties12 = 1032, kBytesOfProperties13 = 1008;

/// The same for both versions but for fields that only 12 has.
void write_properties(void* to, bool is_12, int device) {
  std::memset(to, 0, is_12 ? kBytesOfProperties12 : kBytesOfProperties13);
  const Card& c = card();
  const auto size = [](long long bytes) { return static_cast<std::size_t>(bytes); };
  Struct out(to);
  const int card = card_of_device(device);
  out.text(c.name, 256);
  for (const unsigned char byte : uuid_of(card)) out.add(byte);
  out.text("", 8).add(0u);
  out.add(c.bytes).add(size(kSharedPerBlock)).add(kRegisters).add(kWarp).add(size(kGridX)).add(kThreadsPerBlock);
  out.add(kThreadsPerBlock).add(kThreadsPerBlock).add(64).add(kGridX).add(kGridYz).add(kGridYz);
  if (is_12) out.add(1'500'000);  // clockRate
  out.add(size(kConstantBytes)).add(c.compute_capability / 10).add(c.compute_capability % 10);
  out.add(size(kTextureAlignment)).add(size(32));
  if (is_12) out.add(1);  // deviceOverlap
  out.add(c.multiprocessors);
  if (is_12) out.add(0);  // kernelExecTimeoutEnabled
  out.add(0).add(1);      // integrated, canMapHostMemory
  if (is_12) out.add(0);  // computeMode
  out.ints(2);            // maxTexture1D, maxTexture1DMipmap
  if (is_12) out.add(0);  // maxTexture1DLinear
  out.ints(37);           // maxTexture2D to maxSurfaceCubemapLayered
  out.add(size(512));     // surfaceAlignment
  // concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, unifiedAddressing
  out.add(1).add(1).add(pci_bus_of(card)).add(0).add(0).add(0).add(3).add(1);
  if (is_12) out.add(2'000'000);  // memoryClockRate
  out.add(5120).add(l2_bytes()).add(0).add(c.threads_per_multiprocessor).ints(3);
  out.add(size(shared().per_multiprocessor)).add(kRegisters).add(1).ints(3);  // to hostNativeAtomicSupported
  if (is_12) out.add(2);                                                      // singleToDoublePrecisionPerfRatio
  out.ints(4).add(1);     // pageableMemoryAccess to cooperativeLaunch
  if (is_12) out.add(1);  // cooperativeMultiDeviceLaunch
  out.add(size(shared().per_block)).ints(2).add(blocks_per_multiprocessor()).add(0).add(size(1024));
}

/// Numbers of cudaDeviceAttr (driver_types.h), which both versions share.
int attribute(int which, int device) {
  const Card& c = card();
  switch (which) {
    case 1:
    case 2:
    case 3: return kThreadsPerBlock;
    case 4: return 64;
    case 5: return kGridX;
    case 6:
    case 7: return kGridYz;
    case 8: return kSharedPerBlock;
    case 9: return kConstantBytes;
    case 10: return kWarp;
    case 12: return kRegisters;
    case 14: return kTextureAlignment;
    case 16: return c.multiprocessors;
    case 31: return 1;                                   // concurrent kernels
    case 33: return pci_bus_of(card_of_device(device));  // of device 0 of domain 0
    case 38: return l2_bytes();
    case 39: return c.threads_per_multiprocessor;
    case 41: return 1;  // unified addressing
    case 75: return c.compute_capability / 10;
    case 76: return c.compute_capability % 10;
    case 81: return shared().per_multiprocessor;
    case 82: return kRegisters;
    case 95: return 1;  // cooperative launch
    case 97: return shared().per_block;
    case 102: return 1;  // virtual memory management
    case 103: return 1;  // file descriptors of memory
    case 106: return blocks_per_multiprocessor();
    case 111: return 1024;
    default: return 0;
  }
}

}  // namespace
}  // namespace shard::standin

using namespace shard::standin;

STANDIN int cudaGetDeviceProperties(void* properties, int device) {
  write_properties(properties, card().cuda_version < kCuda13, device);
  return kSuccess;
}
STANDIN int cudaGetDeviceProperties_v2(void* properties, int device) {
  write_properties(properties, true, device);
  return kSuccess;
}
STANDIN int cudaDeviceGetAttribute(int* value, int which, int device) {
  *value = attribute(which, device);
  return kSuccess;
}
STANDIN int cuDeviceGetAttribute(int* value, int which, int device) {
  *value = attribute(which, device);  // the driver's numbers are the runtime's
  return kSuccess;
}
