// Category names are those of libkineto and torch.profiler.
#include "traces/import/kineto.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "traces/base/wrapping.h"
#include "traces/import/kineto_calls.h"

namespace shard::import {

bool is_gpu_category(std::string_view category) {
  const Activity activity = activity_of(category, "");
  return activity == Activity::kernel || activity == Activity::copy || activity == Activity::fill ||
         activity == Activity::wait || activity == Activity::mark;
}

bool is_kineto_category(std::string_view category) {
  return is_gpu_category(category) || category == "cpu_op" || category == "cuda_runtime" || category == "cuda_driver" ||
         category == "user_annotation" || category == "python_function" || category == "ac2g" || category == "fwdbwd" ||
         category == "cpu_instant_event";
}

void place_memories(std::deque<KinetoMemory>& memories, Builder& builder) {
  std::stable_sort(memories.begin(), memories.end(),
                   [](const KinetoMemory& a, const KinetoMemory& b) { return a.time_ns < b.time_ns; });
  std::map<std::pair<std::int32_t, Memory>, std::uint64_t> lowest;
  for (const KinetoMemory& m : memories) {
    const auto [at, added] = lowest.try_emplace({m.process, m.memory}, m.address);
    at->second = std::min(at->second, m.address);
  }
  std::set<std::pair<std::int32_t, Memory>> begun;
  LiveBuffers live;
  std::map<std::pair<std::int32_t, Memory>, std::int64_t> live_bytes;
  for (const KinetoMemory& m : memories) {
    MemoryEvent event{
        .rank = Rank{m.process}, .memory = m.memory, .category = Category::not_known, .time_ns = m.time_ns};
    std::int64_t& taken = live_bytes[{m.process, m.memory}];
    if (begun.insert({m.process, m.memory}).second && m.allocated && *m.allocated > m.bytes) {
      event.buffer = live.fresh();
      taken = event.delta_bytes = *m.allocated - m.bytes;
      builder.memory(event, false);
    }
    taken = std::max<std::int64_t>(0, wrapping_sum(taken, m.bytes));
    // Segments lie far apart: of a device nothing lies beyond what is reserved, of a host nobody knows.
    const std::uint64_t address = m.address - lowest[{m.process, m.memory}];
    const std::int64_t room = m.memory == Memory::device && m.reserved ? std::max(*m.reserved, taken) : taken;
    event.offset_bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(
        address, static_cast<std::uint64_t>(std::max<std::int64_t>(0, m.bytes > 0 ? room - m.bytes : room))));
    event.delta_bytes = m.bytes;
    event.buffer = m.bytes >= 0 ? live.add(event.rank, m.memory, m.address, m.bytes)
                                : live.remove(event.rank, m.memory, m.address).buffer;
    if (!event.buffer.valid()) event.buffer = live.fresh();
    builder.memory(event);
    if (m.reserved && m.memory == Memory::device) {
      builder.counter({event.rank, builder.name("reserved_bytes"), m.time_ns, static_cast<double>(*m.reserved)});
    }
  }
}

void number_steps(std::vector<StepRange>& steps, Trace& trace) {
  if (steps.empty()) return;
  const auto key = [](const StepRange& range) { return std::pair(range.rank, range.begin_ns); };
  std::ranges::stable_sort(steps, {}, key);
  const auto place = [&](Rank rank, std::int64_t time, Phase& phase, std::int32_t& step) {
    const auto after = std::ranges::upper_bound(steps, std::pair(rank, time), {}, key);
    const bool inside = after != steps.begin() && std::prev(after)->rank == rank;
    phase = inside ? Phase::steady_step : Phase::creation;
    step = inside ? std::prev(after)->step : -1;
  };
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    place(trace.track_of(trace.spans.track[i]).rank, trace.spans.begin_ns[i], trace.spans.phase[i],
          trace.spans.step[i]);
  }
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    place(trace.memory.rank[i], trace.memory.time_ns[i], trace.memory.phase[i], trace.memory.step[i]);
  }
}

void tell_clock(Trace& trace) {
  constexpr std::int64_t kUnix = 1'000'000'000'000'000'000;  // September 2001
  std::int64_t least = INT64_MAX;
  for (const std::int64_t time : trace.spans.begin_ns) least = std::min(least, time);
  for (const std::int64_t time : trace.memory.time_ns) least = std::min(least, time);
  if (least == INT64_MAX || least < kUnix) return;
  trace.header.clock_ns = trace.header.wall_ns = least;
}

}  // namespace shard::import
