// A picture of traces, and what it cost.
#include "viewer/commands/screenshot.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "sim/commands/printing.h"
#include "viewer/commands/notes_file.h"
#include "viewer/commands/pictures.h"

namespace shard::view {
namespace {

constexpr int kMeasuredFrames = 20;

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0;
  std::int64_t resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

nlohmann::ordered_json comparison_json(const std::string& file, const CompareView& view, const ViewState& state) {
  const LargestMemoryDifference& memory = view.comparison.memory_by_op;
  nlohmann::ordered_json json{
      {"file", file},     {"align", to_string(state.align)}, {"largest_memory_difference_bytes", nullptr},
      {"at_op", nullptr}, {"first_difference_op", nullptr},  {"first_difference_bytes", nullptr}};
  if (!memory.compared) return json;
  json["largest_memory_difference_bytes"] = memory.bytes;
  if (memory.bytes == 0) return json;
  json["at_op"] = memory.at.op;
  json["first_difference_op"] = memory.begin.op;
  json["first_difference_bytes"] = view.swapped ? -memory.begin_bytes : memory.begin_bytes;
  return json;
}

}  // namespace

int take_screenshot(const Sources& sources, const ViewOptions& options, const std::string& path,
                    const std::string& command, bool json) {
  const auto start = std::chrono::steady_clock::now();
  const Result<Session> session = load_session(sources);
  if (!session) return commands::failed(session.error());
  const double load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Derived derived;
  Result<ViewState> state = first_state(*session, options);
  if (!state) return commands::failed(state.error());
  if (!sources.traces.empty()) {
    Result<std::vector<Note>> notes = NotesFile(sources.traces.front()).load();
    if (!notes) return commands::failed(notes.error());
    state->notes = std::move(*notes);
  }
  const float scale = options.scale > 0 ? static_cast<float>(options.scale) : 1;
  PictureCosts costs;
  const Picture picture =
      picture_of(*session, *state, options.size.width, options.size.height, scale, json ? kMeasuredFrames : 0, &costs);
  const Result<void> written = write_png(picture, path, json ? PngEffort::fast : PngEffort::small);
  if (!written) return commands::failed(written.error());
  for (const Problem& problem : session->problems)
    commands::print_notes({problem.file + ": " + problem.what + "; " + problem.kept});
  if (!json) return 0;
  nlohmann::ordered_json result = cli::json_document(command);
  result["screenshot"] = path;
  result["width"] = picture.width;
  result["height"] = picture.height;
  result["load_seconds"] = load_seconds;
  result["first_picture_seconds"] = costs.first_seconds;
  result["build_seconds"] = costs.build_seconds;
  result["draw_seconds"] = costs.draw_seconds;
  result["resident_bytes"] = resident_bytes();
  result["peak_resident_bytes"] = peak_resident_bytes();
  nlohmann::ordered_json& traces = result["traces"] = nlohmann::ordered_json::array();
  for (const Document& document : session->documents) {
    traces.push_back({{"file", document.label()},
                      {"span_count", document.trace().spans.size()},
                      {"memory_event_count", document.trace().memory.size()},
                      {"complete", document.trace().complete()}});
  }
  result["comparisons"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < session->compared.size(); ++i)
    result["comparisons"].push_back(comparison_json(session->documents[i + 1].label(), session->compared[i], *state));
  std::cout << cli::json_text(result);
  return 0;
}

}  // namespace shard::view
