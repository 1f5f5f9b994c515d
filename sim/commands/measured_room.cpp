// One pass over the memory events.
#include "sim/commands/measured_room.h"

#include <algorithm>
#include <map>

#include "sim/compile/placement/automatic.h"
#include "traces/reader.h"

namespace shard::commands {
Result<MeasuredRoom> read_measured_room(const std::string& path) {
  const Result<Trace> trace = load(path);
  if (!trace) return trace.error();
  const auto unusable = [&](std::string what) {
    return Error{.code = Errc::malformed,
                 .what = std::move(what),
                 .where = path,
                 .help = "a whole trace: shardscope train ... --trace FILE"};
  };
  if (!trace->complete()) return unusable("the trace is incomplete, so its peaks are not known");
  std::map<Rank, std::int64_t> live;
  std::int64_t most = 0;
  bool any = false;
  for (std::size_t i = 0; i < trace->memory.size(); ++i) {
    const MemoryEvent event = trace->memory[i];
    if (event.memory != Memory::device) continue;
    any = true;
    if (plan::is_model_data(event.category)) continue;
    std::int64_t& bytes = live[event.rank];
    if (__builtin_add_overflow(bytes, event.delta_bytes, &bytes)) return unusable("the trace's sizes are too large");
    most = std::max(most, bytes);
  }
  if (!any) return unusable("the trace says nothing of device memory");
  return MeasuredRoom{.non_model_peak = Bytes{most}, .plan_hash = trace->header.plan_hash};
}

}  // namespace shard::commands
