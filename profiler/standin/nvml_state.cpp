// NVML: what a card does. Kernels do nothing here, so it idles; its memory is taken by those who took it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "profiler/standin/card.h"
#include "profiler/standin/counters.h"
#include "profiler/standin/nvml.h"

using namespace shard::standin;
using namespace shard::standin::nvml;

// --- Memory and who has it ---

namespace {

struct Memory {
  unsigned long long total, free, used;
};
/// nvmlMemory_v2_t, whose version says its size.
struct Memory2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kVersionOfMemory2 = sizeof(Memory2) | 2u << 24;

struct Process {
  unsigned id;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
struct OldProcess {
  unsigned id;
  unsigned long long bytes;
};

Memory memory_of(const void* device) {
  const std::vector<Taken> all = taken_of(card_of(device));
  const auto used = std::accumulate(all.begin(), all.end(), std::uint64_t{0}, [](std::uint64_t sum, const Taken& each) {
    return sum + static_cast<std::uint64_t>(each.bytes);
  });
  const std::uint64_t total = card().bytes, taken = std::min(used, total);
  return {.total = total, .free = total - taken, .used = taken};
}

/// `count`: room in `to`, then how many there are.
template <class Entry, class Make>
int processes(const void* device, unsigned* count, Entry* to, const Make& make) {
  if (const int fault = checked(device); fault != kSuccess) return fault;
  if (count == nullptr) return kInvalidArgument;
  const std::vector<Taken> all = taken_of(card_of(device));
  const unsigned room = *count;
  *count = static_cast<unsigned>(all.size());
  if (all.size() > room || (to == nullptr && !all.empty())) return kInsufficientSize;
  std::ranges::transform(all, to, make);
  return kSuccess;
}

Process process_of(const Taken& each) {
  constexpr unsigned kNone = 0xffffffff;  // of a card that is not split
  return {static_cast<unsigned>(each.process), static_cast<unsigned long long>(each.bytes), kNone, kNone};
}
OldProcess old_process_of(const Taken& each) {
  return {static_cast<unsigned>(each.process), static_cast<unsigned long long>(each.bytes)};
}

}  // namespace

STANDIN int nvmlDeviceGetMemoryInfo(const void* device, Memory* to) {
  const int fault = checked(device);
  return fault == kSuccess ? give(device, to, memory_of(device)) : fault;
}
STANDIN int nvmlDeviceGetMemoryInfo_v2(const void* device, Memory2* to) {
  if (const int fault = checked(device); fault != kSuccess) return fault;
  if (to == nullptr) return kInvalidArgument;
  if (to->version != kVersionOfMemory2) return kVersionMismatch;
  const Memory memory = memory_of(device);
  *to = {kVersionOfMemory2, memory.total, 0, memory.free, memory.used};
  return kSuccess;
}
STANDIN int nvmlDeviceGetBAR1MemoryInfo(const void* device, Memory* to) {
  return give(device, to, Memory{.total = card().bytes, .free = card().bytes, .used = 0});
}
STANDIN int nvmlDeviceGetComputeRunningProcesses(const void* device, unsigned* count, OldProcess* to) {
  return processes(device, count, to, old_process_of);
}
STANDIN int nvmlDeviceGetComputeRunningProcesses_v2(const void* device, unsigned* count, Process* to) {
  return processes(device, count, to, process_of);
}
STANDIN int nvmlDeviceGetComputeRunningProcesses_v3(const void* device, unsigned* count, Process* to) {
  return processes(device, count, to, process_of);
}
STANDIN int nvmlDeviceGetGraphicsRunningProcesses(const void* device, unsigned* count, void*) {
  return give(device, count, 0u);
}
STANDIN int nvmlDeviceGetGraphicsRunningProcesses_v2(const void* device, unsigned* count, void*) {
  return give(device, count, 0u);
}
STANDIN int nvmlDeviceGetGraphicsRunningProcesses_v3(const void* device, unsigned* count, void*) {
  return give(device, count, 0u);
}

// --- Work, power, heat, clocks ---

namespace {

constexpr unsigned kClockMegahertz = 1500, kMemoryClockMegahertz = 2000;  // as cudaDeviceProp says (properties.cpp)
constexpr unsigned kMemoryClock = 2, kLastClock = 3;                      // nvmlClockType_t
constexpr unsigned kCelsius = 30, kMilliwatts = 1000;

int clock_of(const void* device, unsigned which, unsigned* megahertz) {
  if (which > kLastClock) return kInvalidArgument;
  return give(device, megahertz, which == kMemoryClock ? kMemoryClockMegahertz : kClockMegahertz);
}

struct Utilization {
  unsigned gpu, memory;
};

}  // namespace

STANDIN int nvmlDeviceGetUtilizationRates(const void* device, Utilization* to) {
  return give(device, to, Utilization{.gpu = 0, .memory = 0});
}
STANDIN int nvmlDeviceGetPowerUsage(const void* device, unsigned* milliwatts) {
  constexpr unsigned kShareIdle = 10;
  return give(device, milliwatts, facts().watts * kMilliwatts / kShareIdle);
}
STANDIN int nvmlDeviceGetPowerManagementMode(const void* device, int* on) {
  return give(device, on, 1);
}
STANDIN int nvmlDeviceGetPowerManagementLimit(const void* device, unsigned* milliwatts) {
  return give(device, milliwatts, facts().watts * kMilliwatts);
}
STANDIN int nvmlDeviceGetPowerManagementDefaultLimit(const void* device, unsigned* milliwatts) {
  return nvmlDeviceGetPowerManagementLimit(device, milliwatts);
}
STANDIN int nvmlDeviceGetEnforcedPowerLimit(const void* device, unsigned* milliwatts) {
  return nvmlDeviceGetPowerManagementLimit(device, milliwatts);
}
STANDIN int nvmlDeviceGetPowerManagementLimitConstraints(const void* device, unsigned* least, unsigned* most) {
  const int fault = give(device, least, facts().watts * kMilliwatts / 2);
  return fault == kSuccess ? nvmlDeviceGetPowerManagementLimit(device, most) : fault;
}
STANDIN int nvmlDeviceGetTotalEnergyConsumption(const void* device, unsigned long long* millijoules) {
  return give(device, millijoules, 0ull);
}
STANDIN int nvmlDeviceGetTemperature(const void* device, unsigned sensor, unsigned* celsius) {
  return sensor != 0 ? kInvalidArgument : give(device, celsius, kCelsius);
}
STANDIN int nvmlDeviceGetTemperatureThreshold(const void* device, unsigned which, unsigned* celsius) {
  constexpr unsigned kShutdown = 0, kSlowdown = 1;
  if (which > kSlowdown) return kNotSupported;
  return give(device, celsius, which == kShutdown ? 92u : 89u);
}
STANDIN int nvmlDeviceGetClockInfo(const void* device, unsigned which, unsigned* megahertz) {
  return clock_of(device, which, megahertz);
}
STANDIN int nvmlDeviceGetMaxClockInfo(const void* device, unsigned which, unsigned* megahertz) {
  return clock_of(device, which, megahertz);
}
STANDIN int nvmlDeviceGetApplicationsClock(const void* device, unsigned which, unsigned* megahertz) {
  return clock_of(device, which, megahertz);
}
STANDIN int nvmlDeviceGetDefaultApplicationsClock(const void* device, unsigned which, unsigned* megahertz) {
  return clock_of(device, which, megahertz);
}
STANDIN int nvmlDeviceGetClock(const void* device, unsigned which, unsigned, unsigned* megahertz) {
  return clock_of(device, which, megahertz);
}
STANDIN int nvmlDeviceGetCurrentClocksThrottleReasons(const void* device, unsigned long long* reasons) {
  return give(device, reasons, 1ull);  // it idles
}
STANDIN int nvmlDeviceGetCurrentClocksEventReasons(const void* device, unsigned long long* reasons) {
  return give(device, reasons, 1ull);
}
STANDIN int nvmlDeviceGetPerformanceState(const void* device, unsigned* state) {
  return give(device, state, 0u);
}

// --- Modes ---

STANDIN int nvmlDeviceGetPersistenceMode(const void* device, int* on) {
  return give(device, on, 1);
}
STANDIN int nvmlDeviceGetComputeMode(const void* device, int* mode) {
  return give(device, mode, 0);  // whoever wants
}
STANDIN int nvmlDeviceGetDisplayMode(const void* device, int* on) {
  return give(device, on, 0);
}
STANDIN int nvmlDeviceGetDisplayActive(const void* device, int* on) {
  return give(device, on, 0);
}
STANDIN int nvmlDeviceGetEccMode(const void* device, int* now, int* later) {
  const int fault = give(device, now, 1);
  return fault == kSuccess ? give(device, later, 1) : fault;
}
STANDIN int nvmlDeviceGetTotalEccErrors(const void* device, unsigned, unsigned, unsigned long long* count) {
  return give(device, count, 0ull);
}
STANDIN int nvmlDeviceGetMigMode(const void* device, unsigned* now, unsigned* later) {
  const int capability = card().compute_capability;
  if (capability != 80 && capability < 90) return kNotSupported;
  const int fault = give(device, now, 0u);
  return fault == kSuccess ? give(device, later, 0u) : fault;
}
STANDIN int nvmlDeviceIsMigDeviceHandle(const void* device, unsigned* is_one) {
  return give(device, is_one, 0u);
}
STANDIN int nvmlDeviceGetMaxMigDeviceCount(const void* device, unsigned* count) {
  return give(device, count, 0u);
}
STANDIN int nvmlDeviceGetMigDeviceHandleByIndex(const void* device, unsigned, void**) {
  const int fault = checked(device);
  return fault == kSuccess ? kNotFound : fault;
}

namespace {

/// nvmlFieldValue_t.
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  unsigned type;
  int answer;
  unsigned long long value;
};

}  // namespace

/// Each field has an answer of its own.
STANDIN int nvmlDeviceGetFieldValues(const void* device, int count, FieldValue* values) {
  if (const int fault = checked(device); fault != kSuccess) return fault;
  if (values == nullptr || count < 0) return kInvalidArgument;
  for (FieldValue* each = values; each != values + count; ++each) each->answer = kNotSupported;
  return kSuccess;
}
