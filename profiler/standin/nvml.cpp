// NVML, the library beside the driver that tools ask about cards: who there is. It counts all cards, whatever
// CUDA_VISIBLE_DEVICES leaves.
#include "profiler/standin/nvml.h"

#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "profiler/standin/card.h"
#include "profiler/standin/counters.h"
#include "profiler/standin/identity.h"

namespace shard::standin::nvml {
namespace {

std::atomic<int> users{0};
/// Handles point to these.
std::array<char, kMostCards> cards{};

}  // namespace

void* handle_of(int card) {
  return card >= 0 && card < shard::standin::card().count && card < kMostCards ? &cards[static_cast<std::size_t>(card)]
                                                                               : nullptr;
}

int card_of(const void* device) {
  return static_cast<int>(static_cast<const char*>(device) - cards.data());
}

int state() {
  return users.load() > 0 ? kSuccess : kUninitialized;
}

int checked(const void* device) {
  if (const int fault = state(); fault != kSuccess) return fault;
  const auto number = reinterpret_cast<std::uintptr_t>(device) - reinterpret_cast<std::uintptr_t>(cards.data());
  return number < cards.size() && static_cast<int>(number) < card().count ? kSuccess : kInvalidArgument;
}

int give_text(std::string_view text, char* to, unsigned length) {
  if (to == nullptr) return kInvalidArgument;
  if (text.size() >= length) return kInsufficientSize;
  std::memcpy(to, text.data(), text.size());
  to[text.size()] = '\0';
  return kSuccess;
}

Facts facts() {
  switch (card().compute_capability) {
    case 70: return {.watts = 300, .links = 6, .version_of_links = 2};
    case 75: return {.watts = 70, .links = 0, .version_of_links = 0};
    case 80: return {.watts = 400, .links = 12, .version_of_links = 3};
    case 86:
    case 89: return {.watts = 300, .links = 0, .version_of_links = 0};
    case 90: return {.watts = 700, .links = 18, .version_of_links = 4};
    case 100:
    case 103: return {.watts = 1000, .links = 18, .version_of_links = 5};
    default: return {.watts = 600, .links = 0, .version_of_links = 0};
  }
}

namespace {

int hand_out(void** device, const std::optional<int>& card) {
  if (const int fault = state(); fault != kSuccess) return fault;
  if (device == nullptr) return kInvalidArgument;
  *device = card ? handle_of(*card) : nullptr;
  return *device == nullptr ? kNotFound : kSuccess;
}

int architecture() {
  constexpr int kVolta = 5, kTuring = 6, kAmpere = 7, kAda = 8, kHopper = 9, kBlackwell = 10;
  const int capability = card().compute_capability;
  if (capability >= 100) return kBlackwell;
  if (capability >= 90) return kHopper;
  if (capability == 89) return kAda;
  if (capability >= 80) return kAmpere;
  return capability == 75 ? kTuring : kVolta;
}

}  // namespace
}  // namespace shard::standin::nvml

using namespace shard::standin;
using namespace shard::standin::nvml;

// --- The library and the driver ---

STANDIN int nvmlInit_v2() {
  ++users;
  return kSuccess;
}
STANDIN int nvmlInit() {
  return nvmlInit_v2();
}
STANDIN int nvmlInitWithFlags(unsigned) {
  return nvmlInit_v2();
}
STANDIN int nvmlShutdown() {
  int count = users.load();
  while (count > 0 && !users.compare_exchange_weak(count, count - 1)) {
  }
  return count > 0 ? kSuccess : kUninitialized;
}
STANDIN const char* nvmlErrorString(int error) {
  switch (error) {
    case kSuccess: return "Success";
    case kUninitialized: return "Uninitialized";
    case kInvalidArgument: return "Invalid Argument";
    case kNotSupported: return "Not Supported";
    case kNotFound: return "Not Found";
    case kInsufficientSize: return "Insufficient Size";
    case kVersionMismatch: return "Argument version mismatch";
    default: return "Unknown Error";
  }
}
STANDIN int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return state() == kSuccess ? give_text(driver_version(), text, length) : kUninitialized;
}
STANDIN int nvmlSystemGetNVMLVersion(char* text, unsigned length) {
  const std::string version = std::to_string(card().cuda_version / 1000) + "." + driver_version();
  return state() == kSuccess ? give_text(version, text, length) : kUninitialized;
}
STANDIN int nvmlSystemGetCudaDriverVersion(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = card().cuda_version;
  return kSuccess;
}
STANDIN int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}
STANDIN int nvmlSystemGetProcessName(unsigned process, char* text, unsigned length) {
  if (state() != kSuccess) return kUninitialized;
  std::ifstream words("/proc/" + std::to_string(process) + "/cmdline");
  std::string name;
  if (!std::getline(words, name, '\0')) return kNotFound;
  if (text == nullptr || length == 0) return kInvalidArgument;
  return give_text(std::string_view(name).substr(0, length - 1), text, length);
}
STANDIN int nvmlUnitGetCount(unsigned* count) {
  if (count == nullptr) return kInvalidArgument;
  *count = 0;
  return state();
}

// --- Cards by their names ---

STANDIN int nvmlDeviceGetCount_v2(unsigned* count) {
  if (const int fault = state(); fault != kSuccess) return fault;
  if (count == nullptr) return kInvalidArgument;
  *count = static_cast<unsigned>(card().count < kMostCards ? card().count : kMostCards);
  return kSuccess;
}
STANDIN int nvmlDeviceGetCount(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}
STANDIN int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  const int found = hand_out(device, static_cast<int>(index));
  return found == kNotFound ? kInvalidArgument : found;
}
STANDIN int nvmlDeviceGetHandleByIndex(unsigned index, void** device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}
STANDIN int nvmlDeviceGetHandleByUUID(const char* text, void** device) {
  return text == nullptr ? kInvalidArgument : hand_out(device, card_with_uuid(text));
}
STANDIN int nvmlDeviceGetHandleByPciBusId_v2(const char* text, void** device) {
  return text == nullptr ? kInvalidArgument : hand_out(device, card_with_pci(text));
}
STANDIN int nvmlDeviceGetHandleByPciBusId(const char* text, void** device) {
  return nvmlDeviceGetHandleByPciBusId_v2(text, device);
}

// --- Who a card is ---

STANDIN int nvmlDeviceGetName(const void* device, char* text, unsigned length) {
  const int fault = checked(device);
  return fault == kSuccess ? give_text(card().name, text, length) : fault;
}
STANDIN int nvmlDeviceGetUUID(const void* device, char* text, unsigned length) {
  const int fault = checked(device);
  return fault == kSuccess ? give_text(uuid_text(card_of(device)), text, length) : fault;
}
STANDIN int nvmlDeviceGetIndex(const void* device, unsigned* index) {
  return give(device, index, static_cast<unsigned>(card_of(device)));
}
STANDIN int nvmlDeviceGetMinorNumber(const void* device, unsigned* number) {
  return nvmlDeviceGetIndex(device, number);
}
STANDIN int nvmlDeviceGetCudaComputeCapability(const void* device, int* major, int* minor) {
  const int fault = give(device, major, card().compute_capability / 10);
  return fault == kSuccess ? give(device, minor, card().compute_capability % 10) : fault;
}
STANDIN int nvmlDeviceGetArchitecture(const void* device, unsigned* number) {
  return give(device, number, static_cast<unsigned>(architecture()));
}
STANDIN int nvmlDeviceGetBrand(const void* device, int* brand) {
  return give(device, brand, 14);  // NVML_BRAND_NVIDIA
}
STANDIN int nvmlDeviceGetNumGpuCores(const void* device, unsigned* cores) {
  const bool of_64 = card().compute_capability < 86;
  return give(device, cores, static_cast<unsigned>(card().multiprocessors) * (of_64 ? 64u : 128u));
}

namespace {

constexpr unsigned kVendorNvidia = 0x10de;

/// nvmlPciInfo_t; the older one ends before the second text.
struct Pci {
  char short_id[16];
  unsigned domain, bus, device, vendor, subsystem;
  char id[32];
};
struct OldPci {
  char id[16];
  unsigned domain, bus, device, vendor, subsystem, reserved[4];
};

template <class Info>
Info pci_of(const void* device) {
  Info info{};
  info.bus = static_cast<unsigned>(pci_bus_of(card_of(device)));
  info.vendor = kVendorNvidia;
  return info;
}

}  // namespace

STANDIN int nvmlDeviceGetPciInfo_v3(const void* device, Pci* to) {
  Pci info = pci_of<Pci>(device);
  std::strncpy(info.short_id, pci_text(card_of(device), 4).c_str(), sizeof(info.short_id) - 1);
  std::strncpy(info.id, pci_text(card_of(device), 8).c_str(), sizeof(info.id) - 1);
  return give(device, to, info);
}
STANDIN int nvmlDeviceGetPciInfo_v2(const void* device, OldPci* to) {
  OldPci info = pci_of<OldPci>(device);
  std::strncpy(info.id, pci_text(card_of(device), 4).c_str(), sizeof(info.id) - 1);
  return give(device, to, info);
}
STANDIN int nvmlDeviceGetPciInfo(const void* device, OldPci* to) {
  return nvmlDeviceGetPciInfo_v2(device, to);
}
