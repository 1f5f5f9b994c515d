// NVML: how cards hang together, and which of the host's processors are near.
#include <sched.h>

#include <cstring>

#include "profiler/standin/card.h"
#include "profiler/standin/nvml.h"

using namespace shard::standin;
using namespace shard::standin::nvml;

namespace {

constexpr unsigned kMostLinks = 18;

/// Of a link that there may be: cards without have none.
int checked_link(const void* device, unsigned link) {
  if (const int fault = checked(device); fault != kSuccess) return fault;
  if (link >= kMostLinks) return kInvalidArgument;
  return link < facts().links ? kSuccess : kNotSupported;
}

template <class T>
int give_of_link(const void* device, unsigned link, T* to, T value) {
  const int fault = checked_link(device, link);
  return fault == kSuccess ? give(device, to, value) : fault;
}

/// nvmlPciInfo_t.
struct Pci {
  char short_id[16];
  unsigned domain, bus, device, vendor, subsystem;
  char id[32];
};

}  // namespace

// --- NVLink: all links of all cards lead to one switch ---

STANDIN int nvmlDeviceGetNvLinkState(const void* device, unsigned link, int* active) {
  return give_of_link(device, link, active, 1);
}
STANDIN int nvmlDeviceGetNvLinkVersion(const void* device, unsigned link, unsigned* version) {
  return give_of_link(device, link, version, facts().version_of_links);
}
STANDIN int nvmlDeviceGetNvLinkCapability(const void* device, unsigned link, unsigned, unsigned* has) {
  return give_of_link(device, link, has, 1u);
}
STANDIN int nvmlDeviceGetNvLinkErrorCounter(const void* device, unsigned link, unsigned, unsigned long long* count) {
  return give_of_link(device, link, count, 0ull);
}
STANDIN int nvmlDeviceGetNvLinkRemoteDeviceType(const void* device, unsigned link, int* type) {
  return give_of_link(device, link, type, 2);  // NVML_NVLINK_DEVICE_TYPE_SWITCH
}
STANDIN int nvmlDeviceGetNvLinkRemotePciInfo_v2(const void* device, unsigned link, Pci* to) {
  constexpr unsigned kBus = 5, kVendorNvidia = 0x10de;
  Pci info{};
  info.bus = kBus;
  info.vendor = kVendorNvidia;
  std::strncpy(info.short_id, "0000:05:00.0", sizeof(info.short_id) - 1);
  std::strncpy(info.id, "00000000:05:00.0", sizeof(info.id) - 1);
  return give_of_link(device, link, to, info);
}

// --- Between cards ---

STANDIN int nvmlDeviceGetP2PStatus(const void* device, const void* other, int what, int* status) {
  constexpr int kNvLink = 2, kLast = 4, kNotThere = 5;
  const int fault = checked(other);
  if (fault != kSuccess) return fault;
  if (what < 0 || what > kLast) return kInvalidArgument;
  return give(device, status, what == kNvLink && facts().links == 0 ? kNotThere : 0);
}
STANDIN int nvmlDeviceGetTopologyCommonAncestor(const void* device, const void* other, int* level) {
  constexpr int kItself = 0, kNode = 40;
  const int fault = checked(other);
  return fault == kSuccess ? give(device, level, device == other ? kItself : kNode) : fault;
}
STANDIN int nvmlDeviceOnSameBoard(const void* device, const void* other, int* same) {
  const int fault = checked(other);
  return fault == kSuccess ? give(device, same, device == other ? 1 : 0) : fault;
}
/// nvmlGpuFabricInfoV_t: its version, which says its size, then what a card in no fabric leaves empty.
STANDIN int nvmlDeviceGetGpuFabricInfoV(const void* device, void* to) {
  constexpr unsigned kSize = 0xffffff, kLeast = 36, kMost = 256;
  if (const int fault = checked(device); fault != kSuccess) return fault;
  if (to == nullptr) return kInvalidArgument;
  unsigned version;
  std::memcpy(&version, to, sizeof(version));
  if ((version & kSize) < kLeast || (version & kSize) > kMost) return kVersionMismatch;
  std::memset(static_cast<char*>(to) + sizeof(version), 0, (version & kSize) - sizeof(version));
  return kSuccess;
}

// --- The bus ---

STANDIN int nvmlDeviceGetCurrPcieLinkGeneration(const void* device, unsigned* generation) {
  const int capability = card().compute_capability;
  return give(device, generation, capability >= 90 ? 5u : capability >= 80 ? 4u : 3u);
}
STANDIN int nvmlDeviceGetMaxPcieLinkGeneration(const void* device, unsigned* generation) {
  return nvmlDeviceGetCurrPcieLinkGeneration(device, generation);
}
STANDIN int nvmlDeviceGetCurrPcieLinkWidth(const void* device, unsigned* lanes) {
  return give(device, lanes, 16u);
}
STANDIN int nvmlDeviceGetMaxPcieLinkWidth(const void* device, unsigned* lanes) {
  return give(device, lanes, 16u);
}
STANDIN int nvmlDeviceGetPcieThroughput(const void* device, unsigned, unsigned* kilobytes_per_second) {
  return give(device, kilobytes_per_second, 0u);
}

// --- Processors near a card: those that the process may run on. A program that wants to be near one stays there. ---

STANDIN int nvmlDeviceGetCpuAffinity(const void* device, unsigned words, unsigned long* set) {
  if (const int fault = checked(device); fault != kSuccess) return fault;
  if (set == nullptr || words == 0) return kInvalidArgument;
  cpu_set_t may;
  CPU_ZERO(&may);
  if (::sched_getaffinity(0, sizeof(may), &may) != 0) return kNotSupported;
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  std::memset(set, 0, words * sizeof(unsigned long));
  for (unsigned i = 0; i < words * kBits && i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &may)) set[i / kBits] |= 1ul << i % kBits;
  return kSuccess;
}
STANDIN int nvmlDeviceGetCpuAffinityWithinScope(const void* device, unsigned words, unsigned long* set, unsigned) {
  return nvmlDeviceGetCpuAffinity(device, words, set);
}
STANDIN int nvmlDeviceGetMemoryAffinity(const void* device, unsigned words, unsigned long* set, unsigned) {
  if (const int fault = checked(device); fault != kSuccess) return fault;
  if (set == nullptr || words == 0) return kInvalidArgument;
  std::memset(set, 0, words * sizeof(unsigned long));
  set[0] = 1;
  return kSuccess;
}
STANDIN int nvmlDeviceGetNumaNodeId(const void* device, unsigned* node) {
  return give(device, node, 0u);
}
STANDIN int nvmlDeviceSetCpuAffinity(const void* device) {
  return checked(device);
}
STANDIN int nvmlDeviceClearCpuAffinity(const void* device) {
  return checked(device);
}
