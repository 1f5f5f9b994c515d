// Rows are printed one by one, in the order of the tables.
#include "traces/export/csv.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "traces/base/output_file.h"
#include "traces/base/printable.h"
#include "traces/export/timeline.h"

namespace shard {
namespace {

constexpr std::string_view kHeader =
    "kind,rank,track,name,begin_ns,end_ns,duration_ns,bytes,offset_bytes,category,buffer,op,phase,step,micro_step,unit,"
    "value,waiting_ns,part\n";

/// A row is one line.
std::string field(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return csv_field(line);
}

template <class Tag>
std::string id(Id<Tag> value) {
  return value.valid() ? std::to_string(value.value) : std::string();
}

class CsvExporter {
 public:
  CsvExporter(const Trace& trace, OutputFile& out) : trace_(trace), out_(out) {}

  void run() {
    out_.write(kHeader);
    for (std::size_t i = 0; i < trace_.spans.size(); ++i) span(trace_.spans[i]);
    for (std::size_t i = 0; i < trace_.memory.size(); ++i) memory(trace_.memory[i]);
    for (const Counter& counter : trace_.counters) sample(counter);
    for (const Flow& flow : trace_.flows) arrow(flow);
  }

 private:
  static std::string number(std::int64_t value) { return std::to_string(value) + ","; }

  void span(const Span& s) {
    const Track& track = trace_.track_of(s.track);
    out_.write("span," + number(track.rank.value) + field(lane_name(track, 0)) + "," + field(trace_.name_of(s.name)) +
               "," + number(s.begin_ns) + number(s.begin_ns + s.duration_ns) + number(s.duration_ns) + number(s.bytes) +
               ",,," + id(s.op) + "," + to_string(s.phase) + "," + number(s.step) + number(s.micro_step) + id(s.unit) +
               ",," + number(s.waiting_ns) + (s.part == Part::unknown ? "" : to_string(s.part)) + "\n");
  }

  void memory(const MemoryEvent& e) {
    out_.write("memory," + number(e.rank.value) + to_string(e.memory) + " memory,," + number(e.time_ns) +
               number(e.time_ns) + "0," + number(e.delta_bytes) + number(e.offset_bytes) + to_string(e.category) + "," +
               id(e.buffer) + "," + id(e.op) + "," + to_string(e.phase) + "," + number(e.step) + "," + id(e.unit) +
               ",,,\n");
  }

  void sample(const Counter& c) {
    const std::string value = std::isfinite(c.value) ? nlohmann::json(c.value).dump() : std::string();
    out_.write("counter," + number(c.rank.value) + "," + field(trace_.name_of(c.name)) + "," + number(c.time_ns) +
               number(c.time_ns) + "0,,,,,,,,,," + value + ",,\n");
  }

  void arrow(const Flow& f) {
    const Track &from = trace_.track_of(f.from_track), &to = trace_.track_of(f.to_track);
    out_.write("flow," + number(from.rank.value) + field(lane_name(from, 0)) + "," + field(lane_name(to, 0)) + "," +
               number(f.from_ns) + number(f.to_ns) + ",,,,,,,,,,,,\n");
  }

  const Trace& trace_;
  OutputFile& out_;
};

}  // namespace

Result<void> export_csv(const Trace& trace, const std::filesystem::path& path) {
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return out.error();
  CsvExporter(trace, *out).run();
  return out->finish();
}

}  // namespace shard
