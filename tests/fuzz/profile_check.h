// What must hold of where the time of any trace went, whatever the file said. Aborts where it does not.
#pragma once

#include "tests/fuzz/trace_check.h"
#include "traces/profile.h"

namespace shard::fuzz {

inline void check(const DeviceTime& time) {
  require(time.busy_ns >= 0 && time.idle_ns >= 0 && time.busy_ns + time.idle_ns == time.window_ns);
  require(time.kernel_ns <= time.busy_ns && time.copy_ns <= time.busy_ns && time.communication_ns <= time.busy_ns);
  require(time.hidden_ns >= 0 && time.hidden_ns <= time.kernel_ns && time.exposed_ns >= 0);
  require(time.hidden_ns + time.exposed_ns == time.communication_ns);
  require(time.kernel_ns + time.copy_ns + time.communication_ns - time.hidden_ns >= time.busy_ns);
}

inline void check(const Profile& profile) {
  for (const DeviceUse& use : profile.devices) {
    check(use.time);
    require(use.idle_between_ns >= 0 && use.idle_between_ns <= use.time.idle_ns && use.streams > 0);
  }
  for (const DeviceStep& step : profile.steps) check(step.time);
  for (const CollectiveUse& use : profile.collectives)
    require(use.count > 0 && use.without_bytes <= use.count && use.hidden_ns >= 0 && use.hidden_ns <= use.total_ns);
  for (const std::vector<NamedTime>* names : {&profile.kernels, &profile.operations})
    for (const NamedTime& named : *names)
      require(named.count > 0 && named.self_ns >= 0 && named.self_ns <= named.total_ns);
}

}  // namespace shard::fuzz
