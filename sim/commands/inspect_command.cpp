// `shardscope inspect`: what is in a trace, a model, or an allocator recording.
#include <sstream>

#include "sim/cli/sizes.h"
#include "sim/commands/commands.h"
#include "sim/commands/printing.h"
#include "sim/commands/snapshot_recording.h"
#include "sim/like/pytorch/replay.h"
#include "sim/model/read_model.h"
#include "traces/base/read_file.h"
#include "traces/import/import.h"

namespace shard::commands {
namespace {

constexpr const char* kInspectDetails =
    R"(Says what is in a trace: spans, memory, steps, peaks, collectives, and what of it is damaged. Besides .sst it
reads Chrome's and PyTorch's profiler JSON (.json, .json.gz), Perfetto's track events, PyTorch's memory snapshots
(.pickle, of which nothing is executed) and Nsight Systems' SQLite exports; the content tells which.
With --replay-allocator runs a recording of PyTorch's allocator (a memory snapshot, or CSV) through the model of that
allocator and counts where the two agree.

Examples:
  shardscope inspect measured.sst
  shardscope inspect profile.json.gz --json
  shardscope inspect snapshot.pickle --replay-allocator pytorch --json
)";

/// Forty bytes an event, and ten million of them.
constexpr Bytes kLargestRecording{512 << 20};

int replay(const std::string& path, const std::string& allocator, bool incomplete, cli::Format format) {
  const Result<CachingAllocatorOptions> options = caching_allocator_options(allocator);
  if (!options) return failed(options.error());
  // A memory snapshot is turned into the rows of a recording; anything else has to be one.
  std::stringstream rows;
  if (const Result<LoadedTrace> loaded = load_any(path); loaded && loaded->snapshot) {
    if (const Result<void> whole = check_whole(*loaded, path); !whole && !incomplete) return failed(whole.error());
    const Snapshot& snapshot = *loaded->snapshot;
    const std::int32_t device = busiest_device(snapshot);
    for (const Truncated& lost : loaded->trace.truncated)
      print_notes({path + ": from byte " + std::to_string(lost.offset) + " on: " + lost.why});
    for (const SnapshotEvent& event : snapshot.events) {
      if (event.device == device) continue;
      print_notes({path + ": only device " + std::to_string(device) + ", which has the most events, is replayed"});
      break;
    }
    rows.str(recording_of(snapshot, device));
  }
  const bool is_snapshot = !rows.view().empty();
  if (!is_snapshot) {
    const Result<std::string> text = read_file(path, "recording", kLargestRecording);
    if (!text) {
      Error error = text.error();
      error.help = "a memory snapshot, or a CSV file with the columns what,address,bytes,stream,pool,time_us";
      return failed(error);
    }
    rows.str(*text);
  }
  const Result<AllocatorReplay> result = replay_allocator(rows, path, *options);
  if (!result) return failed(result.error());
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("inspect");
    j["file"] = path;
    j["allocator_replay"] = to_json(*result);
    std::cout << cli::json_text(j);
  } else {
    cli::print(std::cout, to_text(*result));
  }
  return 0;
}

}  // namespace

int inspect_command(std::span<const std::string> arguments) {
  std::string path;
  std::string allocator;
  bool incomplete = false;
  cli::OutputOptions output;
  cli::Command command("shardscope", "inspect", "says what is in one trace or recording", kInspectDetails);
  command.add_positional("FILE", &path, "a trace, or with --replay-allocator a recording").required().reads_file();
  cli::Group group = command.group("Inspect");
  group.add("replay-allocator", &allocator, "NAME", "run a recording through this allocator's model: pytorch");
  group.add_flag("incomplete", &incomplete, kIncompleteHelp);
  cli::add_output_options(command, output);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = document_format(command, output);
  if (!format) return failed(format.error());
  if (!allocator.empty()) return replay(path, allocator, incomplete, *format);
  const Result<LoadedTrace> trace = load_any(path);
  if (!trace) return failed(trace.error());
  if (const Result<void> whole = check_whole(*trace, path); !whole && !incomplete) return failed(whole.error());
  if (*format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("inspect");
    j["file"] = path;
    j.update(to_json(*trace));
    std::cout << cli::json_text(j);
  } else {
    cli::print(std::cout, to_text(*trace));
  }
  return 0;
}

}  // namespace shard::commands
