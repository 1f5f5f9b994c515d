// Imports Perfetto's protobuf traces: the part of them that is track events.
#pragma once

#include "traces/base/result.h"
#include "traces/import/byte_source.h"
#include "traces/import/import.h"

namespace shard::import {

/// Reads slices, instants, counters, flows, track, process and thread descriptors, interned names, clock snapshots
/// (sequence-scoped and incremental clocks too), defaults, the legacy phases X B E I, and packets compressed by
/// deflate; other data sources are passed over. A packet that is damaged is passed over with a note. Our own exports
/// give the tracks, spans and memory that were exported, their times from zero. Fails with Errc::malformed naming the
/// byte where no packet could be read.
[[nodiscard]] Result<LoadedTrace> import_perfetto(ByteSource& source);

}  // namespace shard::import
