// Random traces for the viewer's tests: nested, crossing, touching and empty spans; memory, counters, chunk states.
#pragma once

#include <cstdint>
#include <random>

#include "traces/reader.h"
#include "viewer/index/viewport.h"

namespace shard::view::testing {

using Random = std::mt19937_64;

/// Uniform in [least, most].
std::int64_t pick(Random& random, std::int64_t least, std::int64_t most);

struct TraceShape {
  int tracks = 3;
  int spans = 600;
  std::int64_t length_ns = 5000;  ///< begins lie in [0, length)
  std::int64_t longest_ns = 400;
  int memory_events = 0, counters = 0, chunk_states = 0;
  bool sorted = true;  ///< spans of a track by begin
};
[[nodiscard]] Trace random_trace(Random& random, const TraceShape& shape);

void add_span(Trace& trace, const Span& span);
void add_event(Trace& trace, const MemoryEvent& event);

/// A range within, around or beside [0, length), and 1 to `widest` columns.
[[nodiscard]] PixelRange random_view(Random& random, std::int64_t length_ns, std::int32_t widest);

}  // namespace shard::view::testing
