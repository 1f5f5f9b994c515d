// A PyTorch memory snapshot as a program: what was taken and given back, in order, by the lines that asked for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/like/program/program.h"
#include "traces/base/units.h"
#include "traces/reader.h"
#include "traces/snapshot.h"

namespace shard::like {

struct SnapshotProgram {
  Program program;
  /// Blocks that were there before the first event that was kept: the program begins with them, one behind the other,
  /// which is not how they lay.
  std::int64_t there_before = 0;
  bool other_devices = false;  ///< have events, which are left out
};

/// Of the device with the most events, the lowest of several. `names` has the snapshot's names and stacks, and its
/// memory events, if any, say what categories blocks are of. Operators are the innermost lines of the user's own code
/// (traces/sites.h); the origin's settings are those that the snapshot says, its framework and ranks are left to the
/// caller.
///
/// Segments given back become empty_cache(), but for those that the allocator gives back by itself before it asks once
/// more for what it was refused: told by `capacity` of the device. Without it all become
/// empty_cache(), unless the program then ran out of memory.
[[nodiscard]] SnapshotProgram program_of_snapshot(const Snapshot& snapshot, const Trace& names,
                                                  std::optional<Bytes> capacity);

/// What of `label`'s recording is not in the program as it was, for people; a line each.
[[nodiscard]] std::vector<std::string> notes(const SnapshotProgram& made, std::string_view label);

}  // namespace shard::like
