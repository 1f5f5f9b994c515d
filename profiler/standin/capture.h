// Which streams are being captured into a graph.
#pragma once

namespace shard::standin {

/// The capture that what is given to the stream belongs to, from 1 on; 0: it runs.
[[nodiscard]] unsigned long long capture_of(const void* stream);

}  // namespace shard::standin
