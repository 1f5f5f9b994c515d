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
    trace.spans.track.push_back(TrackId{0});
    trace.spans.begin_ns.push_back(i * 1'000'000);
    trace.spans.duration_ns.push_back(800'000);
    trace.spans.op.push_back(OpId{i});
    trace.spans.name.push_back(NameId{0});
    trace.spans.phase.push_back(Phase::steady_step);
    trace.spans.step.push_back(i);
    trace.spans.micro_step.push_back(0);
    trace.spans.bytes.push_back(0);
    trace.spans.unit.push_back(UnitId{});
    trace.spans.waiting_ns.push_back(0);
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
