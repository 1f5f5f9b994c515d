// The small trace.
#include "tests/viewer/sample_trace.h"

#include <cmath>

namespace shard::view {

Session sample_session() {
  Trace trace;
  trace.header.kind = TraceKind::measured;
  trace.tracks.push_back({Rank{0}, TrackKind::stream, Stream::compute, Memory::device, ""});
  trace.names = {"forward", "loss", "resident_bytes"};
  for (int i = 0; i < 10; ++i) {
    trace.spans.push_back({.track = TrackId{0},
                           .begin_ns = i * 1'000'000,
                           .duration_ns = 800'000,
                           .op = OpId{i},
                           .name = NameId{0},
                           .step = i});
  }
  for (int i = 0; i < 100; ++i) {
    trace.counters.push_back({Rank{0}, NameId{1}, i * 100'000, 2.5 * std::exp(-0.03 * i) + 0.1 * std::sin(i)});
    trace.counters.push_back({Rank{0}, NameId{2}, i * 100'000, (1 << 28) + i % 7 * 5e7});
  }
  Session session;
  session.documents.push_back(Document::build(std::move(trace), "sample.sst"));
  return session;
}

}  // namespace shard::view
