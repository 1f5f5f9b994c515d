// What every loaded trace must keep, whatever the file was: the promises of reader.h. Aborts where one is broken, so
// that a fuzzer stops there.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "traces/base/wrapping.h"
#include "traces/frame.h"
#include "traces/holders.h"
#include "traces/reader.h"

namespace shard::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

template <class Tag>
bool below(Id<Tag> id, std::size_t count) {
  return id.value >= 0 && static_cast<std::size_t>(id.value) < count;
}

/// `sorted`: the spans of a track are all in one run, by begin; a .sst may have several.
inline void check_trace(const Trace& trace, bool sorted) {
  const SpanTable& s = trace.spans;
  for (const std::size_t size :
       {s.track.size(), s.duration_ns.size(), s.op.size(), s.name.size(), s.phase.size(), s.step.size(),
        s.micro_step.size(), s.bytes.size(), s.unit.size(), s.waiting_ns.size(), s.part.size()}) {
    require(size == s.size());
  }
  for (std::size_t i = 0; i < s.size(); ++i) {
    require(below(s.track[i], trace.tracks.size()) && trace.track_of(s.track[i]).rank.valid());
    require(!s.name[i].valid() || below(s.name[i], trace.names.size()));
    require(static_cast<int>(s.phase[i]) < kPhaseCount && s.duration_ns[i] >= 0);
    require(static_cast<int>(s.activity[i]) < kActivityCount);
    require(static_cast<int>(s.part[i]) < kPartCount && s.waiting_ns[i] >= 0 && s.waiting_ns[i] <= s.duration_ns[i]);
    require(s.begin_ns[i] >= -sst::kMaxTime && s.begin_ns[i] + s.duration_ns[i] <= sst::kMaxTime);
    const bool follows = sorted && i > 0 && s.track[i] == s.track[i - 1];
    require(!follows || s.begin_ns[i] >= s.begin_ns[i - 1]);
  }
  const MemoryTable& m = trace.memory;
  for (const std::size_t size :
       {m.rank.size(), m.memory.size(), m.buffer.size(), m.offset_bytes.size(), m.category.size(), m.op.size(),
        m.time_ns.size(), m.phase.size(), m.step.size(), m.unit.size(), m.requested_bytes.size(), m.stack.size()}) {
    require(size == m.size());
  }
  for (std::size_t i = 0; i < m.size(); ++i) {
    require(m.rank[i].valid() && static_cast<int>(m.memory[i]) < kMemoryCount);
    require(static_cast<int>(m.category[i]) < kCategoryCount && static_cast<int>(m.phase[i]) < kPhaseCount);
    require(m.time_ns[i] >= -sst::kMaxTime && m.time_ns[i] <= sst::kMaxTime);
    require(!m.stack[i].valid() || below(m.stack[i], trace.stacks.size()));
  }
  for (const StackFrame& frame : trace.frames) {
    require(!frame.function.valid() || below(frame.function, trace.names.size()));
    require((!frame.file.valid() || below(frame.file, trace.names.size())) && frame.line >= 0);
  }
  for (std::size_t i = 0; i < trace.stacks.size(); ++i) {
    const StackNode& node = trace.stacks[i];
    require(!node.frame.valid() || below(node.frame, trace.frames.size()));
    require(!node.caller.valid() || below(node.caller, i));
  }
  for (const HeldBy by : {HeldBy::site, HeldBy::stack}) {
    const Result<Held> held = held_at(trace, {.by = by});
    if (!held) continue;
    std::int64_t sum = 0;
    for (const Holder& holder : held->holders) sum = wrapping_sum(sum, holder.bytes);
    require(sum == held->allocated_bytes);
    std::int64_t of_categories = 0;
    for (const std::int64_t bytes : held->category_bytes) of_categories = wrapping_sum(of_categories, bytes);
    require(of_categories == held->allocated_bytes);
    (void)to_json(trace, *held, 5, 0).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    (void)to_text(trace, *held, 5, 0);
  }
  for (const Flow& flow : trace.flows) {
    require(below(flow.from_track, trace.tracks.size()) && below(flow.to_track, trace.tracks.size()));
  }
  for (const UnitInfo& unit : trace.header.units) require(unit.elements >= 0 && unit.bytes >= 0);
  for (const MemoryCapacity& capacity : trace.header.capacities) {
    require(static_cast<int>(capacity.memory) < kMemoryCount && capacity.sharers > 0 && capacity.bytes >= 0);
  }
  for (const Counter& counter : trace.counters) {
    require(counter.rank.valid() && (!counter.name.valid() || below(counter.name, trace.names.size())));
  }
}

}  // namespace shard::fuzz
