// What a Perfetto TrackEvent says, with the names and defaults of its sequence filled in.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/event.h"
#include "traces/import/builder.h"

namespace shard::import {

/// What interning, defaults and clocks have come to on one sequence of packets.
struct PerfettoSequence {
  bool state_valid = false;
  std::unordered_map<std::uint64_t, NameId> names, categories, annotations;
  std::uint64_t default_track = 0;
  std::uint32_t default_clock = 0;
  std::vector<std::uint64_t> default_counters;
  std::int64_t thread_us = 0;  // of the older, per-thread time stamps
};

/// The fields of a TrackEvent that are used.
struct TrackEvent {
  std::int64_t type = 0;
  std::optional<std::uint64_t> track;
  NameId name{};
  std::string_view category;
  NameId category_id{};
  std::optional<double> value;
  std::optional<std::int64_t> integer_value;
  std::vector<std::uint64_t> flows, terminating_flows, counters;
  std::vector<std::int64_t> counter_values;
  std::optional<std::int64_t> delta_us, absolute_us;
  std::string_view legacy;
  Span described;
};

/// Names of a table of the sequence; none where it has no such entry.
[[nodiscard]] inline NameId interned(const std::unordered_map<std::uint64_t, NameId>& table, std::uint64_t iid) {
  const auto at = table.find(iid);
  return at == table.end() ? NameId{} : at->second;
}

// Messages out of a packet; false where one is malformed. What they keep is charged to the builder.
[[nodiscard]] bool take_defaults(std::string_view message, PerfettoSequence& sequence, Builder& builder);
[[nodiscard]] bool take_names(std::string_view message, PerfettoSequence& sequence, Builder& builder);
[[nodiscard]] bool parse_event(std::string_view message, const PerfettoSequence& sequence, Builder& builder,
                               TrackEvent& event);

}  // namespace shard::import
