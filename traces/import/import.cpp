// Which tool wrote a file is told by its first bytes.
#include "traces/import/import.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "traces/base/numbers.h"
#include "traces/base/text_table.h"
#include "traces/import/byte_source.h"
#include "traces/import/chrome_json.h"
#include "traces/import/nsys.h"
#include "traces/import/perfetto.h"
#include "traces/import/pytorch_snapshot.h"

namespace shard {
namespace {

enum class Kind { sst, sqlite, pickle, json, protobuf, unknown };

Kind kind_of(std::string_view first) {
  if (first.starts_with('\x89')) return Kind::sst;
  if (first.starts_with("SQLite format 3")) return Kind::sqlite;
  if (first.size() >= 2 && first[0] == '\x80' && first[1] >= 0 && first[1] <= 9) return Kind::pickle;
  std::string_view text = first;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  if (at != std::string_view::npos && (text[at] == '{' || text[at] == '[')) {
    // "\n{" could also be a packet of 123 bytes: what follows in JSON tells.
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + 1);
    if (at == 0 || next == std::string_view::npos ||
        std::string_view("\"{}[]").find(text[next]) != std::string_view::npos) {
      return Kind::json;
    }
  }
  if (first.starts_with('\n')) return Kind::protobuf;  // field 1, length-delimited
  return Kind::unknown;
}

LoadedTrace own(Trace trace) {
  LoadedTrace loaded;
  loaded.trace = std::move(trace);
  loaded.memory_event_count = static_cast<std::int64_t>(loaded.trace.memory.size());
  return loaded;
}

/// What is told by content alone; nothing for the kinds that read the whole file by themselves.
Result<LoadedTrace> load_stream(import::ByteSource& source, Kind kind) {
  switch (kind) {
    case Kind::pickle: return import::import_pytorch_snapshot(source);
    case Kind::protobuf: return import::import_perfetto(source);
    case Kind::json:
      if (source.peek(3) == "\xef\xbb\xbf") source.consume(3);
      return import::import_chrome_json(source);
    case Kind::sst:
    case Kind::sqlite:
    case Kind::unknown: break;
  }
  return Error{.code = Errc::malformed,
               .what = source.compressed() && kind != Kind::unknown
                           ? "is a compressed file of a kind that is read uncompressed"
                       : source.fault().empty() ? "is no trace of a kind that is known"
                                                : source.fault(),
               .where = source.label() + ": byte 0",
               .help = "a trace (.sst), Chrome or Kineto JSON, Perfetto, a PyTorch memory snapshot, or an nsys export"};
}

constexpr std::size_t kFirstBytes = 4096;

/// The kinds whose readers want all bytes at once.
Result<LoadedTrace> load_whole(std::span<const std::byte> bytes, std::string_view label, Kind kind) {
  if (kind == Kind::sqlite) return import::import_nsys(bytes, label);
  Result<Trace> trace = load(bytes, label);
  if (!trace) return trace.error();
  return own(std::move(*trace));
}

}  // namespace

Result<LoadedTrace> load_any(const std::filesystem::path& path) {
  Result<import::ByteSource> source = import::ByteSource::open(path);
  if (!source) return source.error();
  Kind kind = kind_of(source->peek(kFirstBytes));
  // Of a file that no reader knows, the one that its name asks for says why.
  if (kind == Kind::unknown && path.extension() == ".sst") kind = Kind::sst;
  if (source->compressed() || (kind != Kind::sst && kind != Kind::sqlite)) return load_stream(*source, kind);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {  // a pipe gives its bytes once
    std::string all;
    (void)source->append(all, std::numeric_limits<std::uint64_t>::max());
    return load_whole(std::as_bytes(std::span<const char>(all)), path.string(), kind);
  }
  if (kind == Kind::sqlite) return import::import_nsys(path);
  Result<Trace> trace = load(path);
  if (!trace) return trace.error();
  return own(std::move(*trace));
}

Result<LoadedTrace> load_any(std::span<const std::byte> bytes, std::string_view label) {
  import::ByteSource source = import::ByteSource::memory(bytes, label);
  const Kind kind = kind_of(source.peek(kFirstBytes));
  if (source.compressed() || (kind != Kind::sst && kind != Kind::sqlite)) return load_stream(source, kind);
  return load_whole(bytes, label, kind);
}

Result<void> check_whole(const LoadedTrace& loaded, std::string_view label) {
  if (loaded.format == TraceFormat::sst || loaded.trace.complete()) return {};
  const Truncated& lost = loaded.trace.truncated.front();
  return Error{.code = Errc::malformed,
               .what = std::string("the ") + to_string(loaded.format) + " recording is broken off: " + lost.why,
               .where = std::string(label) + ": byte " + std::to_string(lost.offset),
               .help = "record or copy it again; or --incomplete, which uses what comes before"};
}

TraceSummary summarize(const LoadedTrace& loaded, std::optional<Rank> rank) {
  TraceSummary summary = summarize(loaded.trace, rank);
  summary.format = to_string(loaded.format);
  if (loaded.format == TraceFormat::sst) return summary;
  summary.lane_count = loaded.lane_count;
  summary.memory_event_count = loaded.memory_event_count;
  // Without a word about steps all spans are in the first.
  if (summary.steps.size() == 1 && summary.steps.front().step == 0 && marked_steps(loaded.trace).empty())
    summary.steps.clear();
  return summary;
}

nlohmann::ordered_json to_json(const LoadedTrace& loaded, const TraceSummary& summary, std::size_t top) {
  nlohmann::ordered_json json = to_json(summary, top);
  json["flow_count"] = loaded.trace.flows.size();
  for (const CombinedPart& part : loaded.parts) {
    nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
    for (const Rank rank : part.ranks) ranks.push_back(rank.value);
    json["parts"].push_back({{"file", part.name},
                             {"format", to_string(part.format)},
                             {"ranks", std::move(ranks)},
                             {"aligned_by", to_string(part.by)},
                             {"shift_ns", part.shift_ns},
                             {"bound_ns", part.bound_ns ? nlohmann::ordered_json(*part.bound_ns) : nullptr},
                             {"says", part.says}});
  }
  if (loaded.format == TraceFormat::sst) return json;
  json["flow_event_count"] = loaded.flow_event_count;
  json["instant_count"] = loaded.instants.size();
  json["notes"] = loaded.notes;
  if (loaded.snapshot) json["snapshot"] = to_json(*loaded.snapshot);
  return json;
}

std::string to_text(const LoadedTrace& loaded, const TraceSummary& summary, std::size_t top) {
  std::string text = to_text(summary, top);
  if (loaded.format == TraceFormat::sst) return text;
  const std::string says = verdict(summary.idle);
  text.insert(says.empty() ? 0 : says.size() + 1, std::string("format ") + to_string(loaded.format) + "\n");
  if (loaded.snapshot) {
    const Snapshot& snapshot = *loaded.snapshot;
    const Snapshot::Start& start = snapshot.at_start;
    TextTable table({"memory", "at the start", "at the end"}, 1);
    table.add({"reserved", show_bytes(Bytes{start.reserved_bytes}), show_bytes(Bytes{snapshot.reserved_bytes()})});
    table.add({"allocated", show_bytes(Bytes{start.allocated_bytes}), show_bytes(Bytes{snapshot.allocated_bytes()})});
    text += "\n" + std::to_string(snapshot.segments.size()) + " segments of " + std::to_string(snapshot.block_count()) +
            " blocks at the end\n" + table.str();
  }
  for (const CombinedPart& part : loaded.parts) text += "aligned: " + to_text(part) + "\n";
  for (const std::string& note : loaded.notes) text += "passed over: " + note + "\n";
  return text;
}

}  // namespace shard
