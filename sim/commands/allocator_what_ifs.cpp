// One replay a setting; garbage is collected as if the device had no more than was reserved in the recording.
#include "sim/commands/allocator_what_ifs.h"

#include <array>
#include <optional>
#include <sstream>

#include "sim/commands/allocator_options.h"
#include "sim/commands/snapshot_recording.h"
#include "sim/like/pytorch/replay.h"

namespace shard::commands {
namespace {

/// What PyTorch's notes on memory management advise against fragmentation (docs: CUDA semantics).
constexpr std::array kSettings = {"",
                                  "expandable_segments:True",
                                  "max_split_size_mb:128",
                                  "max_split_size_mb:512",
                                  "roundup_power2_divisions:4",
                                  "garbage_collection_threshold:0.8"};

}  // namespace

Result<AllocatorWhatIfs> allocator_what_ifs(const Snapshot& snapshot, std::int32_t device) {
  const std::string rows = recording_of(snapshot, device);
  AllocatorWhatIfs result;
  for (const char* settings : kSettings) {
    std::vector<std::string> notes;
    Result<CachingAllocatorOptions> options = allocator_of({.conf = settings}, std::nullopt, notes);
    if (!options) return options.error();
    // Without a limit nothing is collected.
    if (options->collect_from > 0) options->allowed = Bytes{result.recorded_peak_reserved_bytes};
    std::istringstream recording(rows);
    const Result<AllocatorReplay> replay = replay_allocator(recording, "the snapshot", *options, true);
    if (!replay && options->allowed && replay.error().code == Errc::does_not_fit) {
      result.replays.push_back({.settings = settings, .fits = false});
      continue;
    }
    if (!replay) return replay.error();
    result.recorded_peak_reserved_bytes = replay->peak_reserved_bytes.measured.count();
    result.replays.push_back({.settings = settings,
                              .peak_allocated_bytes = replay->peak_allocated_bytes.count(),
                              .peak_reserved_bytes = replay->peak_reserved_bytes.predicted.count()});
  }
  return result;
}

}  // namespace shard::commands
