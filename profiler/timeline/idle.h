// Why a device had nothing to do: because the host had not yet said what, or for another reason.
#pragma once

#include <vector>

#include "profiler/timeline/process_events.h"
#include "profiler/timeline/timeline.h"

namespace shard::profiler {

/// By device. Of work without a call nothing is known, which counts as another reason.
/// Ranks are left to the caller. `shift_ns` takes moments to the trace's clock.
[[nodiscard]] std::vector<Idle> idle_of(const ProcessEvents& events, const SpoolContent& content,
                                        std::int64_t shift_ns);

}  // namespace shard::profiler
