// Fuzz target: no bytes make the trace reader, or what works on a loaded trace, crash, hang or break its promises.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "tests/fuzz/limits.h"
#include "tests/fuzz/trace_check.h"
#include "traces/compare.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"
#include "traces/frame.h"
#include "traces/inspect.h"
#include "traces/reader.h"

namespace {

using namespace shard;
using namespace shard::fuzz;

/// Of the file, frames decompressed.
std::size_t decompressed_bytes(std::span<const std::byte> bytes) {
  std::size_t total = bytes.size();
  for (std::size_t at = sst::kFileHeaderBytes; at < bytes.size() && bytes.size() - at >= sst::kFrameHeaderBytes;) {
    sst::FrameHeader header;
    if (!sst::unpack(bytes.subspan(at).first<sst::kFrameHeaderBytes>(), header)) {
      at += sst::kAlignment;
      continue;
    }
    const std::uint64_t area = sst::area_bytes(header.raw_bytes, header.stored_bytes);
    if (area > bytes.size() - at - sst::kFrameHeaderBytes) break;
    total += header.raw_bytes;
    at += sst::kFrameHeaderBytes + area;
  }
  return total;
}

void use(const std::vector<std::byte>& bytes) {
  std::optional<Limits> limits(decompressed_bytes(bytes));
  const Result<Trace> trace = load(std::span<const std::byte>(bytes), "fuzz");
  limits.reset();
  if (!trace) {
    require(trace.error().code == Errc::malformed && trace.error().where.find("byte ") != std::string::npos);
    return;
  }
  check_trace(*trace, false);
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
