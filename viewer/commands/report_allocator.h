// The part of a report that says what other settings of the recorded program's allocator would have reserved.
#pragma once

#include <optional>

#include "traces/base/ids.h"
#include "viewer/commands/report.h"

namespace shard::view {

/// A row a setting, after one of the recording. Nothing where the first trace is no whole snapshot, or one so long that
/// replays would keep a reader waiting; of one that the allocator's model does not know a row that says why.
[[nodiscard]] std::optional<ReportTable> allocator_table(const Session& session, Rank rank);

}  // namespace shard::view
