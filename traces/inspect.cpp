// Counts, time range, steps and peaks of a trace, as JSON and as text.
#include "traces/inspect.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "traces/base/numbers.h"
#include "traces/base/text_table.h"
#include "traces/lanes.h"
#include "traces/profile_report.h"

namespace shard {

using Json = nlohmann::ordered_json;

std::vector<StepTime> step_times(const Trace& trace) {
  std::map<std::pair<std::int32_t, Phase>, StepTime> steps;
  for (const MarkedStep& marked : marked_steps(trace)) {
    const auto [at, added] = steps.try_emplace({marked.step, Phase::steady_step});
    StepTime& step = at->second;
    if (added) step = {marked.step, Phase::steady_step, marked.begin_ns, marked.end_ns};
    step.begin_ns = std::min(step.begin_ns, marked.begin_ns);
    step.end_ns = std::max(step.end_ns, marked.end_ns);
  }
  if (!steps.empty()) {
    std::vector<StepTime> result;
    for (const auto& [key, step] : steps) result.push_back(step);
    return result;
  }
  StepTime* current = nullptr;
  const SpanTable& spans = trace.spans;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Phase phase = spans.phase[i];
    if (phase != Phase::first_step && phase != Phase::steady_step) continue;
    const std::int64_t begin = spans.begin_ns[i], end = begin + spans.duration_ns[i];
    if (current == nullptr || current->step != spans.step[i] || current->phase != phase) {
      const auto [at, added] = steps.try_emplace({spans.step[i], phase});
      if (added) at->second = {spans.step[i], phase, begin, end};
      current = &at->second;
    }
    current->begin_ns = std::min(current->begin_ns, begin);
    current->end_ns = std::max(current->end_ns, end);
  }
  std::vector<StepTime> result;
  for (const auto& [key, step] : steps) result.push_back(step);
  return result;
}

double median_step_seconds(const std::vector<StepTime>& steps) {
  std::vector<double> seconds;
  for (const Phase phase : {Phase::steady_step, Phase::first_step}) {
    for (const StepTime& step : steps) {
      if (step.phase == phase) seconds.push_back(static_cast<double>(step.end_ns - step.begin_ns) / 1e9);
    }
    if (!seconds.empty()) break;
  }
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  if (seconds.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(seconds.begin(), middle)) / 2;
}

CommunicationTime communication_time(const Trace& trace) {
  const SpanTable& spans = trace.spans;
  for (const Phase phase : {Phase::steady_step, Phase::first_step}) {
    CommunicationTime sum;
    std::set<std::pair<Rank, std::int32_t>> steps;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const Track& track = trace.track_of(spans.track[i]);
      if (spans.phase[i] != phase || track.kind != TrackKind::stream || track.stream != Stream::communication) continue;
      steps.emplace(track.rank, spans.step[i]);
      sum.transfer_seconds += static_cast<double>(spans.busy_ns(i)) / 1e9;
      sum.waiting_seconds += static_cast<double>(spans.waiting_ns[i]) / 1e9;
    }
    if (steps.empty()) continue;
    const auto count = static_cast<double>(steps.size());
    return {sum.transfer_seconds / count, sum.waiting_seconds / count};
  }
  return {};
}

TraceSummary summarize(const Trace& trace, std::optional<Rank> rank) {
  TraceSummary summary;
  summary.ranks = ranks_of(trace);
  summary.profile = profile(trace, rank);
  summary.idle = idle_time(trace, rank);
  summary.header = trace.header;
  summary.span_count = static_cast<std::int64_t>(trace.spans.size());
  summary.lane_count = assign_lanes(trace).count();
  summary.memory_event_count = static_cast<std::int64_t>(trace.memory.size());
  summary.counter_count = static_cast<std::int64_t>(trace.counters.size());
  summary.dropped_count = trace.dropped_count;
  summary.skipped_frame_count = trace.skipped_frame_count;
  summary.truncated = trace.truncated;
  summary.steps = step_times(trace);
  summary.communication = communication_time(trace);
  summary.arenas = trace.arenas;
  summary.collectives = trace.collectives;
  summary.peaks = memory_peaks(trace);

  bool any = false;
  const auto include = [&](std::int64_t begin, std::int64_t end) {
    summary.begin_ns = any ? std::min(summary.begin_ns, begin) : begin;
    summary.end_ns = any ? std::max(summary.end_ns, end) : end;
    any = true;
  };
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    include(trace.spans.begin_ns[i], trace.spans.begin_ns[i] + trace.spans.duration_ns[i]);
  }
  for (const std::int64_t time : trace.memory.time_ns) include(time, time);
  for (const Counter& counter : trace.counters) include(counter.time_ns, counter.time_ns);
  for (const ChunkState& state : trace.chunk_states) include(state.time_ns, state.time_ns);
  return summary;
}

namespace {

Json categories(const BytesByCategory& bytes) {
  Json object = Json::object();
  for (int c = 0; c < kCategoryCount; ++c) {
    const std::int64_t value = bytes[static_cast<std::size_t>(c)];
    if (value != 0) object[std::string(to_string(static_cast<Category>(c))) + "_bytes"] = value;
  }
  return object;
}

}  // namespace

Json tables_json(const Header& header) {
  Json json{{"strategy", Json::object()}, {"units", Json::array()}, {"capacities", Json::array()}};
  for (const StrategyField& field : header.strategy)
    json["strategy"][field.name] = field.value.empty() ? Json() : Json(field.value);
  for (std::size_t unit = 0; unit < header.units.size(); ++unit) {
    const UnitInfo& info = header.units[unit];
    json["units"].push_back(
        {{"unit", unit}, {"name", info.name}, {"elements", info.elements}, {"gathered_bytes", info.bytes}});
  }
  for (const MemoryCapacity& capacity : header.capacities) {
    json["capacities"].push_back({{"rank", capacity.rank.valid() ? Json(capacity.rank.value) : Json()},
                                  {"memory", to_string(capacity.memory)},
                                  {"sharing_ranks", capacity.sharers},
                                  {"capacity_bytes", capacity.bytes}});
  }
  return json;
}

nlohmann::ordered_json to_json(const TraceSummary& summary, std::size_t top) {
  const Header& header = summary.header;
  Json json{{"format", summary.format},
            {"kind", to_string(header.kind)},
            {"world_size", header.world_size},
            {"ranks", Json::array()},
            {"plan_hash", header.plan_hash},
            {"parent_plan_hash", header.parent_plan_hash},
            {"span_count", summary.span_count},
            {"lane_count", summary.lane_count},
            {"memory_event_count", summary.memory_event_count},
            {"counter_count", summary.counter_count},
            {"begin_ns", summary.begin_ns},
            {"end_ns", summary.end_ns},
            {"dropped_count", summary.dropped_count},
            {"skipped_frame_count", summary.skipped_frame_count},
            {"complete", summary.complete()},
            {"truncated", Json::array()},
            {"step_seconds", median_step_seconds(summary.steps)},
            {"steps", Json::array()},
            {"communication",
             {{"transfer_seconds", summary.communication.transfer_seconds},
              {"waiting_seconds", summary.communication.waiting_seconds}}},
            {"arenas", Json::array()},
            {"collectives", Json::array()},
            {"peaks", Json::array()},
            {"metadata", header.metadata}};
  json.update(tables_json(header));
  for (const Rank rank : summary.ranks) json["ranks"].push_back(rank.value);
  for (const Truncated& note : summary.truncated) {
    json["truncated"].push_back({{"offset_bytes", note.offset}, {"why", note.why}});
  }
  for (const StepTime& step : summary.steps) {
    json["steps"].push_back({{"step", step.step},
                             {"phase", to_string(step.phase)},
                             {"begin_ns", step.begin_ns},
                             {"end_ns", step.end_ns},
                             {"seconds", static_cast<double>(step.end_ns - step.begin_ns) / 1e9},
                             {"devices", step_json(summary.profile, step.step)}});
  }
  for (const ArenaSummary& arena : summary.arenas) {
    json["arenas"].push_back({{"rank", arena.rank.value},
                              {"memory", to_string(arena.memory)},
                              {"phase", to_string(arena.phase)},
                              {"peak_bytes", arena.peak_bytes},
                              {"live_peak_bytes", arena.live_peak_bytes},
                              {"capacity_bytes", arena.capacity_bytes}});
  }
  json["collectives"] = collectives_json(summary.collectives, summary.profile);
  json.update(to_json(summary.profile, top));
  json.update(to_json(summary.idle));
  for (const MemoryPeak& peak : summary.peaks) {
    json["peaks"].push_back({{"rank", peak.rank.value},
                             {"memory", to_string(peak.memory)},
                             {"phase", to_string(peak.phase)},
                             {"peak_bytes", peak.peak_bytes},
                             {"live_peak_bytes", peak.live_peak_bytes},
                             {"peak_time_ns", peak.peak_time_ns},
                             {"peak_op", peak.peak_op.value},
                             {"at_peak", categories(peak.at_peak_bytes)},
                             {"category_peaks", categories(peak.category_peak_bytes)}});
  }
  return json;
}

namespace {

/// Names from files, on one line of a terminal.
std::string one_line(std::string text) {
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

/// "8 ranks" where all are there, else which: "rank 1 of 128".
std::string ranks_text(const TraceSummary& summary) {
  const std::int32_t world = summary.header.world_size;
  const auto there = static_cast<std::int64_t>(summary.ranks.size());
  if (there == 0 || there >= world) return std::to_string(world) + (world == 1 ? " rank" : " ranks");
  constexpr std::size_t kNamed = 8;
  std::string text = there == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(kNamed, summary.ranks.size()); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(summary.ranks[i].value);
  if (summary.ranks.size() > kNamed) text += " and " + std::to_string(summary.ranks.size() - kNamed) + " more";
  return text + " of " + std::to_string(world);
}

/// Metadata and tables, a line each.
std::string facts_text(const Header& header) {
  std::string text;
  for (const auto& [key, value] : header.metadata) text += key + ": " + one_line(value) + "\n";
  std::string strategy;
  for (const StrategyField& field : header.strategy) {
    if (field.telling && !field.value.empty())
      strategy += (strategy.empty() ? "" : ", ") + one_line(field.name) + ' ' + one_line(field.value);
  }
  if (!strategy.empty()) text += "strategy: " + strategy + "\n";
  if (!header.units.empty()) {
    const auto largest = std::ranges::max_element(header.units, {}, &UnitInfo::bytes);
    text += "units: " + std::to_string(header.units.size()) + ", the largest " + one_line(largest->name) + " of " +
            std::to_string(largest->elements) + " elements, " + show_bytes(Bytes{largest->bytes}) + "\n";
  }
  for (const MemoryCapacity& capacity : header.capacities) {
    text += std::string("capacity of ") + to_string(capacity.memory) + " memory";
    if (capacity.rank.valid()) text += " of rank " + std::to_string(capacity.rank.value);
    text += ": " + show_bytes(Bytes{capacity.bytes});
    if (capacity.sharers > 1) text += " for " + std::to_string(capacity.sharers) + " ranks";
    text += "\n";
  }
  return text;
}

}  // namespace

std::string to_text(const TraceSummary& summary, std::size_t top) {
  const Header& header = summary.header;
  std::string text = verdict(summary.idle);
  if (!text.empty()) text += "\n";
  text += std::string(to_string(header.kind)) + " trace, " + ranks_text(summary);
  if (!header.plan_hash.empty()) text += ", plan " + header.plan_hash.substr(0, 16);
  text += "\n" + std::to_string(summary.span_count) + " spans on " + std::to_string(summary.lane_count) + " lanes, " +
          std::to_string(summary.memory_event_count) + " memory events, " +
          duration(Seconds{(static_cast<double>(summary.end_ns) - static_cast<double>(summary.begin_ns)) / 1e9}, 4) +
          "\n";
  if (!summary.steps.empty()) {
    text += std::to_string(summary.steps.size()) + (summary.steps.size() == 1 ? " step, " : " steps, median ") +
            duration(Seconds{median_step_seconds(summary.steps)}, 4) + "\n";
  }
  const CommunicationTime& communication = summary.communication;
  if (communication.transfer_seconds > 0 || communication.waiting_seconds > 0) {
    text += "collectives of a step and rank: transfer " + duration(Seconds{communication.transfer_seconds}, 4) +
            ", waiting " + duration(Seconds{communication.waiting_seconds}, 4) + "\n";
  }
  if (summary.dropped_count > 0) text += std::to_string(summary.dropped_count) + " events lost by the producer\n";
  if (summary.skipped_frame_count > 0) {
    text += std::to_string(summary.skipped_frame_count) + " frames of a newer format skipped\n";
  }
  for (const Truncated& note : summary.truncated) {
    text += "incomplete at byte " + std::to_string(note.offset) + ": " + note.why + "\n";
  }
  TextTable arenas({"rank", "memory", "phase", "peak", "live peak"}, 3);
  for (const ArenaSummary& arena : summary.arenas) {
    arenas.add({std::to_string(arena.rank.value), to_string(arena.memory), to_string(arena.phase),
                show_bytes(Bytes{arena.peak_bytes}), show_bytes(Bytes{arena.live_peak_bytes})});
  }
  if (arenas.empty()) {
    for (const MemoryPeak& peak : summary.peaks) {
      arenas.add({std::to_string(peak.rank.value), to_string(peak.memory), to_string(peak.phase),
                  show_bytes(Bytes{peak.peak_bytes}), show_bytes(Bytes{peak.live_peak_bytes})});
    }
  }
  if (!arenas.empty()) text += "\n" + arenas.str();
  text += to_text(summary.profile, summary.collectives, top);
  const std::string facts = facts_text(header);
  if (!facts.empty()) text += "\n" + facts;
  return text;
}

}  // namespace shard
