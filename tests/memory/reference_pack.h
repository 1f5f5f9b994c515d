// The packing that pack() must equal offset for offset, on the graph of the items that meet.
#pragma once

#include <span>

#include "sim/memory/pack.h"

namespace shard {

/// The contract of pack(), `steps` aside.
[[nodiscard]] Result<Packing> reference_pack(std::span<const Bytes> items, std::span<const PackEvent> events,
                                             const PackOptions& options = {});

}  // namespace shard
