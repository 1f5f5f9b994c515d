// Tables of the trace, then what only a recording knows: gaps, copies beside compute, memory over time.
#include "profiler/commands/profile_report.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "profiler/timeline/copy_overlap.h"
#include "profiler/timeline/memory_use.h"
#include "sim/cli/chart.h"
#include "traces/base/numbers.h"
#include "traces/base/printable.h"
#include "traces/base/text_table.h"
#include "traces/holders.h"
#include "traces/profile_report.h"

namespace shard::profiler {
namespace {

using Json = nlohmann::ordered_json;

/// As wide as the picture is.
constexpr std::size_t kParts = 72;

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

std::string time_text(std::int64_t ns) {
  return duration(Seconds{seconds(ns)}, 4);
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return show_fixed(100.0 * static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(1, whole)), 1) +
         " %";
}

/// The peak of device memory and who held it; none where nothing was allocated.
std::optional<Held> peak_of(const Trace& trace) {
  if (trace.memory.empty()) return std::nullopt;
  Result<Held> held = held_at(trace, {.by = HeldBy::site});
  return held ? std::optional<Held>(std::move(*held)) : std::nullopt;
}

Json to_json(const Idle& idle, std::int64_t begin_ns) {
  Json gaps = Json::array();
  for (const Gap& gap : idle.longest)
    gaps.push_back({{"begin_seconds", seconds(gap.begin_ns - begin_ns)},
                    {"seconds", seconds(gap.duration_ns)},
                    {"launch_bound_seconds", seconds(gap.launch_bound_ns)},
                    {"next", gap.next}});
  return {{"rank", idle.rank.value},
          {"device", idle.device},
          {"idle_seconds", seconds(idle.idle_ns)},
          {"launch_bound_seconds", seconds(idle.launch_bound_ns)},
          {"gaps", idle.gaps},
          {"launch_bound_gaps", idle.launch_bound_gaps},
          {"longest_gaps", std::move(gaps)}};
}

Json to_json(const CopyOverlap& overlap) {
  return {{"rank", overlap.place.rank.value},
          {"device", overlap.place.device.valid() ? Json(overlap.place.device.value) : Json()},
          {"copy_seconds", seconds(overlap.copy_ns)},
          {"hidden_seconds", seconds(overlap.hidden_ns)},
          {"exposed_seconds", seconds(overlap.exposed_ns())}};
}

/// A part of the recording is named by its middle.
Json to_json(const MemoryUse& use, std::size_t top) {
  Json j{{"rank", use.rank.value},
         {"peak_bytes", use.peak_bytes},
         {"peak_seconds", seconds(use.peak_ns - use.begin_ns)},
         {"at_end_bytes", use.at_end_bytes},
         {"series", Json::array()},
         {"held", Json::array()}};
  const double part = seconds(use.end_ns - use.begin_ns) / static_cast<double>(use.series.size());
  for (std::size_t i = 0; i < use.series.size(); ++i)
    j["series"].push_back({{"seconds", (static_cast<double>(i) + 0.5) * part}, {"bytes", use.series[i]}});
  for (std::size_t i = 0; i < std::min(top, use.held.size()); ++i)
    j["held"].push_back({{"call", use.held[i].call},
                         {"block_bytes", use.held[i].block_bytes},
                         {"blocks", use.held[i].blocks},
                         {"bytes", use.held[i].bytes()}});
  return j;
}

std::string gaps_text(const Timeline& timeline, std::int64_t begin_ns) {
  std::ostringstream text;
  TextTable table({"GPU", "rank", "idle for", "from", "not launched yet", "then"}, 1);
  bool any = false;
  for (const Idle& idle : timeline.idle) {
    if (idle.idle_ns <= 0) continue;
    any = true;
    text << "GPU " << idle.device << " had nothing to do for " << time_text(idle.idle_ns) << " in "
         << with_commas(idle.gaps) << " gaps between its first and last work, " << time_text(idle.launch_bound_ns)
         << " of it, in " << with_commas(idle.launch_bound_gaps) << ", while the host had not launched the next\n";
    for (const Gap& gap : idle.longest)
      table.add({std::to_string(idle.device), std::to_string(idle.rank.value), time_text(gap.duration_ns),
                 time_text(gap.begin_ns - begin_ns), time_text(gap.launch_bound_ns), printable_line(gap.next)});
  }
  if (any) text << table.str();
  return text.str();
}

std::string copies_text(const std::vector<CopyOverlap>& overlaps) {
  std::ostringstream text;
  for (const CopyOverlap& overlap : overlaps)
    text << (overlap.place.device.valid() ? "GPU " + std::to_string(overlap.place.device.value)
                                          : "rank " + std::to_string(overlap.place.rank.value))
         << " copied and filled for " << time_text(overlap.copy_ns) << ", " << time_text(overlap.hidden_ns)
         << " of it (" << percent(overlap.hidden_ns, overlap.copy_ns) << ") while it computed\n";
  return text.str();
}

cli::Styled memory_text(const MemoryUse& use, std::size_t top, const cli::Style& style) {
  const auto bytes = [](std::int64_t count) { return show_bytes(Bytes{count}); };
  std::ostringstream text;
  text << "device memory of rank " << use.rank.value << ": " << with_commas(use.peak_bytes) << " bytes ("
       << bytes(use.peak_bytes) << ") at the peak, " << time_text(use.peak_ns - use.begin_ns) << " after the begin; "
       << bytes(use.at_end_bytes) << " at the end\n";
  const std::array<cli::Layer, 1> layers{
      {{.name = "in use", .letter = '#', .values = {use.series.begin(), use.series.end()}}}};
  const auto show = [](double value) { return show_bytes(Bytes{static_cast<std::int64_t>(value)}); };
  const std::string length = time_text(use.end_ns - use.begin_ns);
  cli::Styled styled = text.str();
  styled.add(cli::stacked_area(
      layers, {.width = static_cast<int>(kParts), .height = 8, .show = show, .marks = {{0.0, "0"}, {0.9, length}}},
      style));
  TextTable table({"held at the peak by", "size", "blocks", "takes", "share"}, 1);
  for (std::size_t i = 0; i < std::min(top, use.held.size()); ++i) {
    const HeldBlocks& held = use.held[i];
    table.add({held.call.empty() ? "(its call is not in the recording)" : printable_line(held.call),
               bytes(held.block_bytes), with_commas(held.blocks), bytes(held.bytes()),
               percent(held.bytes(), use.peak_bytes)});
  }
  if (top > 0) styled.add(table.str());
  if (use.held.size() > top) styled.add("and " + std::to_string(use.held.size() - top) + " more sizes\n");
  return styled;
}

}  // namespace

Json to_json(const Recorded& recorded, std::size_t top) {
  Json j = cli::json_document("profile");
  j["exit_code"] = recorded.ended.exit_code;
  j["signal"] = recorded.ended.signal;
  j["timed_out"] = recorded.ended.timed_out;
  j["recorded"] = recorded.timeline.has_value();
  j["processes"] = recorded.processes;
  if (!recorded.timeline) {
    j["why_not"] = recorded.why_not;
    return j;
  }
  const Timeline& timeline = *recorded.timeline;
  const Trace& trace = timeline.loaded.trace;
  const TraceSummary summary = summarize(timeline.loaded);
  j["dropped_events"] = trace.dropped_count;
  j["clock_bound_seconds"] = seconds(timeline.joined.clock_bound_ns);
  j["device_spans"] = timeline.joined.device_spans;
  j["device_spans_with_op"] = timeline.joined.with_op;
  j["device_spans_without_call"] = timeline.joined.without_call;
  j["idle"] = Json::array();
  for (const Idle& idle : timeline.idle) j["idle"].push_back(to_json(idle, summary.begin_ns));
  j["copies"] = Json::array();
  for (const CopyOverlap& overlap : copy_overlap(trace)) j["copies"].push_back(to_json(overlap));
  if (const std::optional<MemoryUse> use = memory_use(trace, kParts)) j["memory"] = to_json(*use, top);
  if (const std::optional<Held> held = peak_of(trace)) j["peak"] = shard::to_json(trace, *held, top, summary.begin_ns);
  j["trace"] = shard::to_json(timeline.loaded, summary, top);
  return j;
}

cli::Styled to_text(const Recorded& recorded, std::size_t top, const cli::Style& style) {
  if (!recorded.timeline) return "nothing was recorded: " + recorded.why_not + "\n";
  const Timeline& timeline = *recorded.timeline;
  const Trace& trace = timeline.loaded.trace;
  const TraceSummary summary = summarize(timeline.loaded);
  cli::Styled text = shard::to_text(timeline.loaded, summary, top);
  const auto add = [&](const cli::Styled& part) {
    if (!part.str().empty()) text.add("\n").add(part);
  };
  add(copies_text(copy_overlap(trace)));
  add(gaps_text(timeline, summary.begin_ns));
  if (const std::optional<MemoryUse> use = memory_use(trace, kParts)) add(memory_text(*use, top, style));
  return text.add("device times are on the host's clock to " + with_commas(timeline.joined.clock_bound_ns) + " ns\n");
}

}  // namespace shard::profiler
