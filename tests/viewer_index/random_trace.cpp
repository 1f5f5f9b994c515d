// Small numbers on purpose: coincidences of begins and ends are where exactness is hard.
#include "tests/viewer_index/random_trace.h"

#include <algorithm>
#include <string>

namespace shard::view::testing {

std::int64_t pick(Random& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

void add_span(Trace& trace, const Span& span) {
  trace.spans.push_back(span);
}

void add_event(Trace& trace, const MemoryEvent& event) {
  trace.memory.push_back(event);
}

namespace {

void add_spans(Trace& trace, Random& random, const TraceShape& shape) {
  const std::vector<std::string> words{"h.0 forward", "h.0 backward", "gather chunk 0", "reduce chunk 0", "Step", ""};
  trace.names = words;
  for (int t = 0; t < shape.tracks; ++t) {
    Track track;
    track.rank = Rank{t / 2};
    track.kind = t % 3 == 2 ? TrackKind::other : TrackKind::stream;
    track.stream = static_cast<Stream>(t % kStreamCount);
    trace.tracks.push_back(track);
  }
  std::vector<Span> spans;
  for (int i = 0; i < shape.spans; ++i) {
    Span span;
    span.track = TrackId{static_cast<std::int32_t>(pick(random, 0, shape.tracks - 1))};
    span.begin_ns = pick(random, 0, shape.length_ns - 1);
    const std::int64_t sizes[]{0, 1, 7, shape.longest_ns / 8, shape.longest_ns};
    span.duration_ns = pick(random, 0, sizes[pick(random, 0, 4)]);
    span.name = NameId{static_cast<std::int32_t>(pick(random, -1, static_cast<std::int64_t>(words.size()) - 1))};
    span.op = OpId{static_cast<std::int32_t>(pick(random, -1, 40))};
    span.step = static_cast<std::int32_t>(span.begin_ns * 4 / shape.length_ns);
    span.phase = span.step == 0 ? Phase::first_step : Phase::steady_step;
    span.bytes = pick(random, 0, 100);
    spans.push_back(span);
  }
  if (shape.sorted) {
    std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return a.track != b.track ? a.track < b.track : a.begin_ns < b.begin_ns;
    });
  }
  for (const Span& span : spans) add_span(trace, span);
}

void add_memory(Trace& trace, Random& random, const TraceShape& shape) {
  struct Live {
    std::int32_t buffer;
    std::int64_t bytes;
    Category category;
  };
  std::vector<Live> live;
  std::int64_t time = 0;
  for (int i = 0; i < shape.memory_events; ++i) {
    MemoryEvent event;
    event.rank = Rank{0};
    // Plan order is not time order: times fall back now and then.
    time += pick(random, 0, 2 * shape.length_ns / std::max(1, shape.memory_events));
    event.time_ns = time - (pick(random, 0, 9) == 0 ? pick(random, 0, 50) : 0);
    event.unit = UnitId{static_cast<std::int32_t>(pick(random, -1, 5))};
    if (live.empty() || pick(random, 0, 99) < 52) {
      const auto buffer = static_cast<std::int32_t>(pick(random, 0, 1) == 0 ? i : 1'000'000'000 + i);
      live.push_back({buffer, pick(random, 1, 1000), static_cast<Category>(pick(random, 0, kCategoryCount - 1))});
      event.buffer = BufferId{buffer};
      event.delta_bytes = live.back().bytes;
      event.category = live.back().category;
    } else {
      const auto at = live.begin() + pick(random, 0, static_cast<std::int64_t>(live.size()) - 1);
      event.buffer = BufferId{at->buffer};
      event.delta_bytes = -at->bytes;
      event.category = at->category;
      live.erase(at);
    }
    add_event(trace, event);
  }
}

}  // namespace

Trace random_trace(Random& random, const TraceShape& shape) {
  Trace trace;
  add_spans(trace, random, shape);
  add_memory(trace, random, shape);
  for (int i = 0; i < shape.counters; ++i) {
    trace.counters.push_back(
        {Rank{0}, NameId{4}, pick(random, 0, shape.length_ns), static_cast<double>(pick(random, -50, 50))});
  }
  for (int i = 0; i < shape.chunk_states; ++i) {
    trace.chunk_states.push_back({Rank{static_cast<std::int32_t>(pick(random, 0, 1))},
                                  UnitId{static_cast<std::int32_t>(pick(random, 0, 20))},
                                  pick(random, 0, shape.length_ns), static_cast<Memory>(pick(random, 0, 2)),
                                  static_cast<UnitState>(pick(random, 0, 4))});
  }
  return trace;
}

PixelRange random_view(Random& random, std::int64_t length_ns, std::int32_t widest) {
  const std::int64_t begin = pick(random, -length_ns / 4, length_ns);
  const std::int64_t longest[]{3, 40, length_ns / 10, 2 * length_ns};
  const std::int64_t length = pick(random, 1, longest[pick(random, 0, 3)]);
  return {{begin, begin + length}, static_cast<std::int32_t>(pick(random, 1, widest))};
}

}  // namespace shard::view::testing
