// A small trace made in memory, with what the recorded ones lack: counters, crossing spans, no memory.
#pragma once

#include "viewer/ui/session.h"

namespace shard::view {

[[nodiscard]] Session sample_session();

}  // namespace shard::view
