// One walk over the work in order of begin.
#include "profiler/timeline/idle.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shard::profiler {

namespace {

bool is_among(const std::vector<Gap>& longest, const Gap& gap) {
  return longest.size() < kLongestGaps || gap.duration_ns > longest.back().duration_ns;
}

void add(std::vector<Gap>& longest, Gap gap) {
  longest.insert(std::ranges::upper_bound(longest, gap.duration_ns, std::ranges::greater{}, &Gap::duration_ns),
                 std::move(gap));
  if (longest.size() > kLongestGaps) longest.pop_back();
}

}  // namespace

std::vector<Idle> idle_of(const ProcessEvents& events, const SpoolContent& content, std::int64_t shift_ns) {
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
      Gap gap{.begin_ns = device.busy_until_ns + shift_ns, .duration_ns = event.begin_ns - device.busy_until_ns};
      if (const Event* const call = events.call_of(event); call != nullptr && call->end_ns > device.busy_until_ns) {
        gap.launch_bound_ns = std::min(event.begin_ns, call->end_ns) - device.busy_until_ns;
        device.idle.launch_bound_ns += gap.launch_bound_ns;
        ++device.idle.launch_bound_gaps;
      }
      if (is_among(device.idle.longest, gap)) {
        gap.next = std::string(content.name_of(event.name));
        if (gap.next.empty()) gap.next = event.kind == EventKind::kernel ? "kernel" : "copy or fill";
        add(device.idle.longest, std::move(gap));
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
