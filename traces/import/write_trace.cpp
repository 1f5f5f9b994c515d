// Tables are handed to the Writer row by row.
#include "traces/import/write_trace.h"

#include <string>
#include <vector>

#include "traces/writer.h"

namespace shard {

Result<void> write_trace(const Trace& trace, const std::filesystem::path& path) {
  Header header = trace.header;
  if (!trace.complete()) {
    const Truncated& first = trace.truncated.front();
    header.metadata["incomplete"] = "from byte " + std::to_string(first.offset) + " on: " + first.why;
  }
  Result<Writer> writer = Writer::create(path, header, Appears::whole);
  if (!writer) return writer.error();
  std::vector<TrackId> tracks;
  for (const Track& track : trace.tracks) tracks.push_back(writer->track(track));
  std::vector<NameId> names;
  for (const std::string& name : trace.names) names.push_back(writer->name(name));
  const auto track_of = [&](TrackId id) { return tracks[static_cast<std::size_t>(id.value)]; };
  const auto name_of = [&](NameId id) { return id.valid() ? names[static_cast<std::size_t>(id.value)] : id; };
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    Span span = trace.spans[i];
    span.track = track_of(span.track);
    span.name = name_of(span.name);
    writer->add(span);
  }
  for (std::size_t i = 0; i < trace.memory.size(); ++i) writer->add(trace.memory[i]);
  for (Counter counter : trace.counters) {
    counter.name = name_of(counter.name);
    writer->add(counter);
  }
  for (const ChunkState& state : trace.chunk_states) writer->add(state);
  for (Flow flow : trace.flows) {
    flow.from_track = track_of(flow.from_track);
    flow.to_track = track_of(flow.to_track);
    writer->add(flow);
  }
  for (const ArenaSummary& arena : trace.arenas) writer->add(arena);
  for (const CollectiveTotal& total : trace.collectives) writer->add(total);
  if (trace.dropped_count > 0) writer->add_dropped(trace.dropped_count);
  return writer->close();
}

}  // namespace shard
