// One walk over the work in order of begin.
#include "profiler/timeline/idle.h"

#include <algorithm>
#include <map>

namespace shard::profiler {

std::vector<Idle> idle_of(const ProcessEvents& events) {
  struct Device {
    Idle idle;
    std::int64_t busy_until_ns = 0;
    bool any = false;
  };
  std::map<std::uint32_t, Device> devices;
  for (const Event& event : events.events()) {
    if (event.kind != EventKind::kernel && event.kind != EventKind::copy && event.kind != EventKind::fill) continue;
    Device& device = devices[event.device];
    device.idle.device = event.device;
    if (device.any && event.begin_ns > device.busy_until_ns) {
      device.idle.idle_ns += event.begin_ns - device.busy_until_ns;
      ++device.idle.gaps;
      if (const Event* const call = events.call_of(event); call != nullptr && call->end_ns > device.busy_until_ns) {
        device.idle.launch_bound_ns += std::min(event.begin_ns, call->end_ns) - device.busy_until_ns;
        ++device.idle.launch_bound_gaps;
      }
    }
    device.busy_until_ns = device.any ? std::max(device.busy_until_ns, event.end_ns) : event.end_ns;
    device.any = true;
  }
  std::vector<Idle> result;
  for (const auto& [number, device] : devices) result.push_back(device.idle);
  return result;
}

}  // namespace shard::profiler
