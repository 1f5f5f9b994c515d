// Fuzz target: no bytes make the trace reader, or what works on a loaded trace, crash, hang or break its promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "traces/compare.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"
#include "traces/frame.h"
#include "traces/inspect.h"
#include "traces/reader.h"

namespace {

using namespace shard;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Tag>
bool below(Id<Tag> id, std::size_t count) {
  return id.value >= 0 && static_cast<std::size_t>(id.value) < count;
}

/// What reader.h promises of every loaded trace.
void check(const Trace& trace) {
  const SpanTable& s = trace.spans;
  for (const std::size_t size : {s.track.size(), s.duration_ns.size(), s.op.size(), s.name.size(), s.phase.size(),
                                 s.step.size(), s.micro_step.size(), s.bytes.size(), s.unit.size()}) {
    require(size == s.size());
  }
  for (std::size_t i = 0; i < s.size(); ++i) {
    require(below(s.track[i], trace.tracks.size()) && trace.track_of(s.track[i]).rank.valid());
    require(!s.name[i].valid() || below(s.name[i], trace.names.size()));
    require(static_cast<int>(s.phase[i]) < kPhaseCount && s.duration_ns[i] >= 0);
    require(s.begin_ns[i] >= -sst::kMaxTime && s.begin_ns[i] + s.duration_ns[i] <= sst::kMaxTime);
  }
  const MemoryTable& m = trace.memory;
  for (const std::size_t size :
       {m.rank.size(), m.memory.size(), m.buffer.size(), m.offset_bytes.size(), m.category.size(), m.op.size(),
        m.time_ns.size(), m.phase.size(), m.step.size(), m.unit.size()}) {
    require(size == m.size());
  }
  for (std::size_t i = 0; i < m.size(); ++i) {
    require(m.rank[i].valid() && static_cast<int>(m.memory[i]) < kMemoryCount);
    require(static_cast<int>(m.category[i]) < kCategoryCount && static_cast<int>(m.phase[i]) < kPhaseCount);
  }
  for (const Flow& flow : trace.flows) {
    require(below(flow.from_track, trace.tracks.size()) && below(flow.to_track, trace.tracks.size()));
  }
}

void use(const std::vector<std::byte>& bytes) {
  const Result<Trace> trace = load(std::span<const std::byte>(bytes), "fuzz");
  if (!trace) {
    require(trace.error().code == Errc::malformed && trace.error().where.find("byte ") != std::string::npos);
    return;
  }
  check(*trace);
  const TraceSummary summary = summarize(*trace);
  (void)to_json(summary).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  (void)to_text(summary);
  const Result<Comparison> comparison = compare_traces(*trace, *trace);
  require(comparison.has_value() && comparison->unmatched_op_count == Pair<std::int64_t>{});
  (void)to_json(*comparison).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  (void)to_text(*comparison);
  require(export_chrome_json(*trace, "/dev/null").has_value());
  require(export_perfetto(*trace, "/dev/null").has_value());
}

/// Makes the checksums right again, so that mutations reach what lies behind them.
void seal(std::vector<std::byte>& bytes) {
  const std::span<std::byte> out(bytes);
  if (bytes.size() < sst::kFileHeaderBytes) return;
  sst::put(out, 60, sst::checksum(out.first(60)));
  for (std::size_t at = sst::kFileHeaderBytes; bytes.size() - at >= sst::kFrameHeaderBytes;) {
    const auto area = sst::area_bytes(sst::get<std::uint32_t>(out, at + 16), sst::get<std::uint32_t>(out, at + 20));
    if (area > bytes.size() - at - sst::kFrameHeaderBytes) return;
    sst::put(out, at + 48, sst::checksum(out.subspan(at + sst::kFrameHeaderBytes, area)));
    sst::put(out, at + 52, sst::checksum(out.subspan(at, 52)));
    at += sst::kFrameHeaderBytes + area;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);
  use(bytes);
  seal(bytes);
  use(bytes);
  return 0;
}
