// The header as it is, then the events.
#include "traces/import/write_trace.h"

#include <string>

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
  append_events(trace, *writer);
  return writer->close();
}

}  // namespace shard
