// A recording's rows, from a snapshot or a file, and what the model makes of them.
#include "sim/commands/replay_recording.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/commands/printing.h"
#include "sim/commands/snapshot_recording.h"
#include "sim/like/pytorch/replay.h"
#include "traces/base/read_file.h"
#include "traces/import/import.h"

namespace shard::commands {
namespace {

/// Forty bytes an event, and ten million of them.
constexpr Bytes kLargestRecording{512 << 20};

}  // namespace

int replay_recording(const std::string& path, const std::string& allocator, const AllocatorFlags& settings,
                     bool incomplete, cli::Format format) {
  if (const Result<CachingAllocatorOptions> known = caching_allocator_options(allocator); !known)
    return failed(known.error());
  std::vector<std::string> notes;
  const Result<CachingAllocatorOptions> options = allocator_of(settings, std::nullopt, notes);
  if (!options) return failed(options.error());
  print_notes(notes);
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
  const Result<AllocatorReplay> result = replay_allocator(rows, path, *options, !settings.conf.empty());
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

}  // namespace shard::commands
