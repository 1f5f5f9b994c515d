// A rank's part of the watch over its run, on the thread that takes signals (traces/base/stop.h).
#pragma once

#include <chrono>
#include <memory>

#include "executor/launch/parent_line.h"
#include "traces/base/ids.h"
#include "traces/base/stop.h"

namespace shard {

/// A rank of ours: beats to the parent, which decides; ends when the parent is gone; hears what the parent asks
/// (stop::ask). `line` lives longer than the registration.
[[nodiscard]] stop::Registration watch_for_parent(ParentLine& line);

/// A rank that a foreign launcher started: ends with code 75 when a call that has no deadline of its own (BlockingCall)
/// takes longer than this one.
[[nodiscard]] stop::Registration watch_blocking_calls(Rank rank, std::chrono::milliseconds deadline);

}  // namespace shard
