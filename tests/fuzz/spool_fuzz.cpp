// Fuzz target: whatever a profiled process left, or something else wrote over it, its spool is read and becomes a
// trace.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "profiler/spool/layout.h"
#include "profiler/spool/read_spool.h"
#include "profiler/timeline/timeline.h"
#include "tests/fuzz/limits.h"

namespace {

using namespace shard;
using namespace shard::profiler;

void use(const SpoolContent& content) {
  const std::vector<Process> processes{{content, {}}, {content, Rank{1}}};
  const Timeline made = timeline_of(processes);
  const Trace& trace = made.loaded.trace;
  if (made.joined.with_op > made.joined.device_spans || trace.dropped_count < 0) std::abort();
  std::int64_t last = INT64_MIN;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const Span span = trace.spans[i];
    if (span.duration_ns < 0 || span.waiting_ns < 0 || span.waiting_ns > span.duration_ns) std::abort();
    last = std::max(last, span.begin_ns);
  }
}

}  // namespace

/// The input as the events of one block (64 bytes each, as many as the first byte says) and, behind them, names: whole
/// files are a quarter of a megabyte, most of which says nothing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> file(kSpoolHeaderBytes + kBlockBytes);
  const fuzz::Limits limits(file.size() + size);
  const auto* const bytes = reinterpret_cast<const std::byte*>(data);
  (void)read_spool(std::span(bytes, size), std::span(bytes, size));
  if (size < 2) return 0;
  const std::size_t events = std::min<std::size_t>(data[0], (size - 2) / sizeof(Event));
  SpoolHeader header{.process = 1, .clock_ns = 5, .wall_ns = 7, .limit = 1, .fresh = 1};
  std::memcpy(file.data(), &header, sizeof(header));
  BlockHeader block{.state = data[1] % 4u, .order = 1, .count = events};
  std::memcpy(file.data() + kSpoolHeaderBytes, &block, sizeof(block));
  std::memcpy(file.data() + kSpoolHeaderBytes + sizeof(Event), bytes + 2, events * sizeof(Event));
  const auto content =
      read_spool(file, std::span(bytes + 2 + events * sizeof(Event), size - 2 - events * sizeof(Event)));
  if (!content) std::abort();
  use(*content);
  return 0;
}
