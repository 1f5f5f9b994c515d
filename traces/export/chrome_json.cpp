// Events are printed one by one: a trace of millions never is a JSON document in memory.
#include "traces/export/chrome_json.h"

#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/base/output_file.h"
#include "traces/export/timeline.h"
#include "traces/inspect.h"

namespace shard {
namespace {

using Json = nlohmann::ordered_json;

/// A quoted JSON string.
std::string json_string(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

class Exporter {
 public:
  Exporter(const Trace& trace, OutputFile& out) : trace_(trace), out_(out), origin_(time_origin(trace)) {}

  void run() {
    Json other{{"format", "sst"},
               {"kind", to_string(trace_.header.kind)},
               {"world_size", trace_.header.world_size},
               {"plan_hash", trace_.header.plan_hash},
               {"dropped_count", trace_.dropped_count},
               {"complete", trace_.complete()},
               {"origin_ns", origin_},
               {"metadata", trace_.header.metadata}};
    other.update(tables_json(trace_.header));
    // By id: what reads it again keeps values of objects, not of lists.
    Json units = Json::object();
    for (const Json& unit : other["units"]) units[std::to_string(unit["unit"].get<std::int64_t>())] = unit;
    other["units"] = std::move(units);
    out_.write("{\"displayTimeUnit\":\"ns\",\"otherData\":" +
               other.dump(-1, ' ', false, Json::error_handler_t::replace) + ",\"traceEvents\":[");
    names();
    spans();
    memory();
    counters();
    flows();
    out_.write("\n]}\n");
  }

 private:
  /// The thread that a lane is shown as; ids are free within a process, so they are unique over all.
  [[nodiscard]] std::int64_t thread(TrackId track, std::int32_t lane) const {
    return first_thread_[static_cast<std::size_t>(track.value)] + lane;
  }

  /// "12.345": nanoseconds as microseconds, exactly.
  std::string micros(std::int64_t time) const {
    const auto since = static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(origin_);
    return duration(since);
  }
  static std::string duration(std::uint64_t nanoseconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%" PRIu64 ".%03u", nanoseconds / 1000,
                  static_cast<unsigned>(nanoseconds % 1000));
    return text.data();
  }

  void event(const std::string& body) {
    out_.write(first_ ? "\n{" : ",\n{");
    out_.write(body);
    out_.write("}");
    first_ = false;
  }

  static std::string at(Rank rank, std::int64_t thread_id) {
    return "\"pid\":" + std::to_string(rank.value) + ",\"tid\":" + std::to_string(thread_id);
  }

  void names() {
    std::set<Rank> ranks;
    std::int64_t next = 1;
    for (std::size_t t = 0; t < trace_.tracks.size(); ++t) {
      const Track& track = trace_.tracks[t];
      first_thread_.push_back(next);
      next += lanes_.lanes_of_track[t];
      for (std::int32_t lane = 0; lane < lanes_.lanes_of_track[t]; ++lane) {
        const std::string thread_id = at(track.rank, first_thread_[t] + lane);
        event("\"ph\":\"M\",\"name\":\"thread_name\"," + thread_id +
              ",\"args\":{\"name\":" + json_string(lane_name(track, lane)) + "}");
        event("\"ph\":\"M\",\"name\":\"thread_sort_index\"," + thread_id +
              ",\"args\":{\"sort_index\":" + std::to_string(first_thread_[t] + lane) + "}");
      }
      if (track.rank.valid()) ranks.insert(track.rank);
    }
    for (const Counter& counter : trace_.counters) ranks.insert(counter.rank);
    for (const Rank rank : ranks) {
      event("\"ph\":\"M\",\"name\":\"process_name\"," + at(rank, 0) + ",\"args\":{\"name\":\"rank " +
            std::to_string(rank.value) + "\"}");
      event("\"ph\":\"M\",\"name\":\"process_sort_index\"," + at(rank, 0) +
            ",\"args\":{\"sort_index\":" + std::to_string(rank.value) + "}");
    }
    for (const std::string& name : trace_.names) quoted_names_.push_back(json_string(name));
  }

  void spans() {
    for (const std::uint32_t i : lanes_.order) {
      const Span span = trace_.spans[i];
      const Track& track = trace_.track_of(span.track);
      std::string body = "\"ph\":\"X\",\"name\":";
      body += span.name.valid() ? quoted_names_[static_cast<std::size_t>(span.name.value)] : "\"\"";
      body += std::string(",\"cat\":\"") + (track.kind == TrackKind::stream ? to_string(track.stream) : "other");
      body += "\"," + at(track.rank, thread(span.track, lanes_.lane[i]));
      body += ",\"ts\":" + micros(span.begin_ns) + ",\"dur\":" + duration(static_cast<std::uint64_t>(span.duration_ns));
      body += ",\"args\":{\"op\":" + std::to_string(span.op.value) + ",\"phase\":\"" + to_string(span.phase);
      body += "\",\"step\":" + std::to_string(span.step) + ",\"micro_step\":" + std::to_string(span.micro_step);
      if (span.waiting_ns != 0) body += ",\"waiting_ns\":" + std::to_string(span.waiting_ns);
      if (span.part != Part::unknown) body += std::string(",\"part\":\"") + to_string(span.part) + "\"";
      if (span.activity != Activity::unknown) body += std::string(",\"activity\":\"") + to_string(span.activity) + "\"";
      if (span.bytes != 0) body += ",\"bytes\":" + std::to_string(span.bytes);
      if (span.unit.valid()) body += ",\"unit\":" + std::to_string(span.unit.value);
      event(body + "}");
    }
  }

  void memory() {
    for (const MemoryCurve& curve : memory_curves(trace_)) {
      BytesByCategory now{};
      for (std::size_t i = 0; i < curve.samples.size(); ++i) {
        const MemorySample& sample = curve.samples[i];
        now[static_cast<std::size_t>(sample.category)] = sample.category_bytes;
        std::string body = std::string("\"ph\":\"C\",\"name\":\"") + to_string(curve.memory) + " memory\"," +
                           at(curve.rank, 0) + ",\"ts\":" + micros(sample.time_ns) + ",\"args\":{";
        for (const Category category : curve.categories) {
          if (category != curve.categories.front()) body += ",";
          body +=
              std::string("\"") + to_string(category) + "\":" + std::to_string(now[static_cast<std::size_t>(category)]);
        }
        event(body + "}");
      }
    }
  }

  void counters() {
    for (const Counter& counter : trace_.counters) {
      if (!std::isfinite(counter.value)) continue;  // JSON has no such numbers
      event("\"ph\":\"C\",\"name\":" + json_string(trace_.name_of(counter.name)) + "," + at(counter.rank, 0) +
            ",\"ts\":" + micros(counter.time_ns) + ",\"args\":{\"value\":" + Json(counter.value).dump() + "}");
    }
  }

  void flows() {
    std::int64_t id = 0;
    for (const Flow& flow : trace_.flows) {
      const auto end = [&](const char* phase, TrackId track, std::int64_t time) {
        event(std::string("\"ph\":\"") + phase + "\",\"name\":\"flow\",\"cat\":\"flow\",\"id\":" + std::to_string(id) +
              "," + at(trace_.track_of(track).rank, thread(track, 0)) + ",\"ts\":" + micros(time));
      };
      end("s", flow.from_track, flow.from_ns);
      end("f\",\"bp\":\"e", flow.to_track, flow.to_ns);
      ++id;
    }
  }

  const Trace& trace_;
  OutputFile& out_;
  const std::int64_t origin_;
  const Lanes lanes_ = assign_lanes(trace_);
  std::vector<std::int64_t> first_thread_;  // by track
  std::vector<std::string> quoted_names_;   // by name
  bool first_ = true;
};

}  // namespace

Result<void> export_chrome_json(const Trace& trace, const std::filesystem::path& path) {
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return out.error();
  Exporter(trace, *out).run();
  return out->finish();
}

}  // namespace shard
