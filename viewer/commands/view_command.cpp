// `shardscope view`: traces in a window, or one picture of them.
#include "sim/commands/printing.h"
#include "viewer/commands/commands.h"
#include "viewer/commands/live_view.h"
#include "viewer/commands/load_session.h"
#include "viewer/commands/loader.h"
#include "viewer/commands/notes_file.h"
#include "viewer/commands/screenshot.h"
#include "viewer/commands/view_options.h"
#include "viewer/sink/window.h"

namespace shard::view {
namespace {

constexpr const char* kViewDetails =
    R"(Opens traces (.sst) and recordings of other tools (Chrome and PyTorch profiler JSON, Perfetto, PyTorch memory
snapshots, nsys) in a window: lanes, memory stacked by category, which chunk is where, counters, tables. Of a memory
snapshot: every block under the line of your own code that asked for it (--memory-by), and the allocator's segments. Several traces
of one plan are lined up; different plans are refused unless --force. '?' in the window shows every key. A file that
grows (a run in progress) is read again, and the view stays at its end. Notes (M) are kept in TRACE.notes.json.

--screenshot needs no display. With --json it reports load_seconds (files read, indexed and compared),
first_picture_seconds (from then to the first whole picture), build_seconds and draw_seconds (medians of 20 frames),
resident_bytes (then) and peak_resident_bytes.

Exit codes: 0; 65 or 66 a file that cannot be read; 69 no display; 78 different plans, an unknown rank or op.

Examples:
  shardscope view predicted.sst measured.sst
  shardscope view measured.sst --range 10ms:20ms --rank 1 --screenshot picture.png
  shardscope view snapshot.pickle --pane memory --memory-by site --screenshot memory.png
  shardscope view --search result.json
)";

int open_window(const Sources& sources, const ViewOptions& options, bool log) {
  LiveView view(sources, options, log);
  Loader loader(sources, wake_window);
  WindowOptions window{"Shardscope", options.size.width, options.size.height, options.theme, options.scale};
  if (!sources.traces.empty()) window.title = sources.traces.front() + " - Shardscope";
  const Result<void> done = run_window(window, [&](const Frame& frame) -> AfterFrame {
    view.receive(loader.take());
    view.draw(frame, loader.progress());
    return {view.state().theme, view.loading(), false};
  });
  if (!done) return commands::failed(done.error());
  return view.error() ? commands::failed(*view.error()) : 0;
}

}  // namespace

int view_command(std::span<const std::string> arguments) {
  Sources sources;
  ViewOptions options;
  std::string screenshot;
  bool json = false;
  bool log = false;
  cli::Command command("shardscope", "view", "opens traces in a window, predicted and measured on one timeline",
                       kViewDetails);
  command.add_positional("TRACE", &sources.traces, "traces; the first one's clock is the time axis")
      .reads_file(trace_and_notes);
  cli::Group group = command.group("View");
  group.add("search", &sources.search, "RESULT.json", "show the result of 'shardscope search --json'").reads_file();
  group.add_flag("force", &sources.force, "line up traces of different plans");
  group.add("screenshot", &screenshot, "FILE.png", "write one picture instead of opening a window").writes_file();
  group.add_flag("json", &json, "with --screenshot: say what loading and drawing cost, as one JSON object on stdout");
  group.add_flag("log", &log, "one line on stderr whenever what is shown changes");
  group.add_flag("incomplete", &sources.incomplete, commands::kIncompleteHelp);
  add_view_options(command, options);
  if (const auto code = commands::parsed(command, arguments)) return *code;
  if (sources.traces.empty() && sources.search.empty())
    return commands::failed({Errc::usage, "nothing to open", "", "a trace, or --search RESULT.json"});
  if (json && screenshot.empty())
    return commands::failed({Errc::contradiction, "--json reports on a picture, and none is asked for", "options",
                             "--screenshot FILE.png"});
  // A window says what is missing of a file, and reads it again when it has grown.
  if (screenshot.empty()) sources.incomplete = true;
  return screenshot.empty() ? open_window(sources, options, log)
                            : take_screenshot(sources, options, screenshot, "view", json);
}

}  // namespace shard::view
