// Snapshots relate clocks to each other: each says what several of them show at one moment.
#include "traces/import/perfetto_clocks.h"

#include <vector>

#include "traces/base/protobuf.h"

namespace shard::import {

PerfettoClocks::Clock& PerfettoClocks::clock(std::uint32_t id, std::uint64_t sequence_id) {
  const auto [at, added] = clocks_.try_emplace({id >= 64 && id < 128 ? sequence_id : 0, id});
  if (added) builder_.charge(96);
  return at->second;
}

std::int64_t PerfettoClocks::to_trace_time(std::uint64_t timestamp, std::uint32_t id, std::uint64_t sequence_id) {
  if (id == trace_clock_) return static_cast<std::int64_t>(timestamp);
  Clock& of = clock(id, sequence_id);
  std::int64_t time = wrapping_product(static_cast<std::int64_t>(timestamp), of.unit_ns);
  if (of.incremental) time = of.last_ns = wrapping_sum(of.last_ns, time);
  return wrapping_sum(time, of.to_trace_ns.value_or(0));
}

bool PerfettoClocks::take(std::string_view message, std::uint64_t sequence_id) {
  ProtoReader reader(message);
  ProtoField field;
  std::vector<std::uint32_t> ids;
  while (reader.next(field)) {
    if (field.number == 2) trace_clock_ = static_cast<std::uint32_t>(field.value);
    if (field.number != 1 || !field.delimited) continue;
    ProtoReader entry(field.bytes);
    std::uint32_t id = 0;
    std::uint64_t timestamp = 0, unit = 1;
    bool incremental = false;
    ProtoField member;
    while (entry.next(member)) {
      if (member.number == 1) id = static_cast<std::uint32_t>(member.value);
      if (member.number == 2) timestamp = member.value;
      if (member.number == 3) incremental = member.value != 0;
      if (member.number == 4 && member.value != 0) unit = member.value;
    }
    if (!entry.ok()) return false;
    Clock& of = clock(id, sequence_id);
    of.unit_ns = static_cast<std::int64_t>(unit);
    of.incremental = incremental;
    of.last_ns = wrapping_product(static_cast<std::int64_t>(timestamp), of.unit_ns);
    ids.push_back(id);
  }
  // Through the trace's own clock, or else any whose relation to it is known.
  std::optional<std::int64_t> now;
  for (const std::uint32_t id : ids) {
    const Clock& of = clock(id, sequence_id);
    if (id == trace_clock_) {
      now = of.last_ns;
      break;
    }
    if (!now && of.to_trace_ns) now = wrapping_sum(of.last_ns, *of.to_trace_ns);
  }
  for (const std::uint32_t id : ids) {
    Clock& of = clock(id, sequence_id);
    if (now && id != trace_clock_) of.to_trace_ns = *now - of.last_ns;
    constexpr std::uint32_t kRealTime = 1;
    if (now && id == kRealTime && builder_.loaded.trace.header.wall_ns == 0) {
      builder_.loaded.trace.header.clock_ns = *now;
      builder_.loaded.trace.header.wall_ns = of.last_ns;
    }
  }
  return reader.ok();
}

}  // namespace shard::import
