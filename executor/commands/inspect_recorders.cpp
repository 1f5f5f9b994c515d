// Recorders of ranks that a launcher of others started do not say who died: whom others wait for is told as at fault.
#include "executor/commands/inspect_recorders.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "executor/flight/verdict.h"
#include "sim/cli/command_line.h"
#include "sim/cli/output.h"
#include "sim/commands/printing.h"
#include "sim/strategy/topology.h"
#include "traces/base/text_table.h"

namespace shard::commands {
namespace {

constexpr const char* kRecordersDetails =
    R"(Says where each rank of a run that broke was, and who waited for whom: of the file or the folder that --recorder of
`shardscope train` named. Times are seconds before the last event of any rank.

Examples:
  shardscope inspect broken.recorder
  shardscope inspect recorders/ --json
)";

using flight::Event;
using flight::EventKind;
using flight::Recording;

bool is_of_collective(EventKind kind) {
  return kind == EventKind::started || kind == EventKind::waiting || kind == EventKind::landed;
}

std::string what_of(const Recording& recording, const Event& event) {
  if (is_of_collective(event.kind)) return flight::collective_text(recording, event);
  if (event.op < 0) return "";
  const auto name = recording.op_names.find(event.op);
  return (name == recording.op_names.end() ? std::string() : name->second + " ") + "%" + std::to_string(event.op);
}

std::string seconds_text(std::int64_t ns) {
  char text[48];
  std::snprintf(text, sizeof text, "%.6f", static_cast<double>(ns) * 1e-9);
  return text;
}

/// Of all ranks; recorders of one machine have one clock.
std::int64_t last_time(std::span<const Recording> recordings) {
  std::int64_t last = INT64_MIN;
  for (const Recording& each : recordings)
    if (!each.entries.empty()) last = std::max(last, each.entries.back().event.time_ns);
  return last;
}

std::int64_t before(std::int64_t last, const Event& event) {
  std::int64_t difference = 0;
  return __builtin_sub_overflow(event.time_ns, last, &difference) ? 0 : difference;
}

std::span<const flight::Entry> tail_of(const Recording& recording, std::int64_t most) {
  const std::span<const flight::Entry> all(recording.entries);
  return all.last(std::min(all.size(), static_cast<std::size_t>(most)));
}

std::string recorders_text(std::span<const Recording> recordings, std::int64_t most) {
  const std::string said = flight::verdict(recordings, {});
  std::string text = said.empty() ? "" : said + "\n";
  const std::int64_t last = last_time(recordings);
  for (const Recording& each : recordings) {
    const std::string own = flight::own_words(each);
    text += (text.empty() ? "" : "\n") +
            (own.empty() ? "rank " + std::to_string(each.rank) + ": nothing is recorded" : own) + " (process " +
            std::to_string(each.process) + ", " + std::to_string(each.entries.size()) + " events" +
            (each.torn > 0 ? ", " + std::to_string(each.torn) + " torn" : "") + ")\n";
    TextTable table({"event", "time", "step", "phase", "what happened", "of", "bytes"},
                    std::vector<bool>{false, false, false, true, true, true, false});
    for (const flight::Entry& entry : tail_of(each, most)) {
      const Event& event = entry.event;
      table.add({std::to_string(entry.number), seconds_text(before(last, event)),
                 std::to_string(std::int64_t{event.step} + 1), to_string(event.phase), to_string(event.kind),
                 what_of(each, event), event.kind == EventKind::started ? std::to_string(event.bytes) : ""});
    }
    if (!table.empty()) text += table.str();
  }
  return text;
}

nlohmann::ordered_json json_of_event(const Recording& recording, const flight::Entry& entry) {
  const Event& event = entry.event;
  nlohmann::ordered_json j{{"number", entry.number},
                           {"time_ns", event.time_ns},
                           {"event", to_string(event.kind)},
                           {"phase", to_string(event.phase)},
                           {"step", std::int64_t{event.step} + 1}};
  if (event.op >= 0) {
    j["op"] = event.op;
    j["part"] = to_string(event.part);
    if (const auto name = recording.op_names.find(event.op); name != recording.op_names.end()) j["name"] = name->second;
  }
  if (event.block >= 0) j["block"] = event.block;
  if (!is_of_collective(event.kind)) return j;
  j["collective"] = event.call;
  j["kind"] = to_string(event.collective);
  j["group"] = event.group <= static_cast<std::uint8_t>(plan::Group::world)
                   ? nlohmann::ordered_json(to_string(static_cast<plan::Group>(event.group)))
                   : nlohmann::ordered_json();
  if (const auto unit = recording.unit_names.find(event.unit); unit != recording.unit_names.end())
    j["unit"] = unit->second;
  if (event.kind == EventKind::started) j["bytes"] = event.bytes;
  return j;
}

nlohmann::ordered_json recorders_json(const std::string& path, std::span<const Recording> recordings,
                                      std::int64_t most) {
  nlohmann::ordered_json j = cli::json_document("inspect");
  j["file"] = path;
  j["verdict"] = flight::verdict(recordings, {});
  j["ranks"] = nlohmann::ordered_json::array();
  for (const Recording& each : recordings) {
    nlohmann::ordered_json rank{
        {"rank", each.rank},           {"world_size", each.world},        {"process", each.process},
        {"plan_hash", each.plan_hash}, {"says", flight::own_words(each)}, {"event_count", each.entries.size()},
        {"torn_count", each.torn}};
    rank["events"] = nlohmann::ordered_json::array();
    for (const flight::Entry& entry : tail_of(each, most)) rank["events"].push_back(json_of_event(each, entry));
    j["ranks"].push_back(std::move(rank));
  }
  return j;
}

}  // namespace

int inspect_recorders_command(std::span<const std::string> arguments) {
  std::string path;
  std::int64_t most = 20;
  cli::OutputOptions output;
  cli::Command command("shardscope", "inspect", "says where the ranks of a run that broke were", kRecordersDetails);
  cli::Group group = command.group("Inspect");
  group.add("recorder", &path, "PATH", "a file or folder that --recorder of train named").required();
  group.add("events", &most, "N", "how many of each rank's last events are shown").least(0).most(flight::kRingRecords);
  cli::add_output_options(command, output);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = document_format(command, output);
  if (!format) return failed(format.error());
  const Result<std::vector<Recording>> recordings = flight::read_recordings(std::filesystem::path(path));
  if (!recordings) return failed(recordings.error());
  if (*format == cli::Format::json)
    std::cout << cli::json_text(recorders_json(path, *recordings, most));
  else
    cli::print(std::cout, recorders_text(*recordings, most));
  return 0;
}

}  // namespace shard::commands
