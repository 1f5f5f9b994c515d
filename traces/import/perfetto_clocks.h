// Perfetto's clocks: time stamps of any of them become nanoseconds of the trace's own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "traces/base/wrapping.h"
#include "traces/import/builder.h"

namespace shard::import {

class PerfettoClocks {
 public:
  /// Charges the builder for what it keeps, and gives its header the wall clock.
  explicit PerfettoClocks(Builder& builder) : builder_(builder) {}

  /// The time of a packet; an incremental clock advances.
  [[nodiscard]] std::int64_t to_trace_time(std::uint64_t timestamp, std::uint32_t id, std::uint64_t sequence_id);
  /// A ClockSnapshot; false where it is malformed.
  [[nodiscard]] bool take(std::string_view message, std::uint64_t sequence_id);

  static constexpr std::uint32_t kBootTime = 6;

 private:
  struct Clock {
    std::int64_t unit_ns = 1;
    bool incremental = false;
    std::int64_t last_ns = 0;
    std::optional<std::int64_t> to_trace_ns;
  };
  /// Sequence-scoped clocks by their sequence, the others for all.
  Clock& clock(std::uint32_t id, std::uint64_t sequence_id);

  Builder& builder_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Clock> clocks_;
  std::uint32_t trace_clock_ = kBootTime;
};

}  // namespace shard::import
