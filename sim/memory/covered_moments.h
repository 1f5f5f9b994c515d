// Moments that a packing need not look at: another has all that lives in them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/memory/pack.h"

namespace shard::packing {

/// By moment (the end of a run of acquisitions): 1 where all that is live is so at another moment too, which is 0.
/// Whatever is ever live together is so at a moment with 0. Micro-steps acquire alike, and only the accumulated
/// gradients differ: compared is, with the moment at which most is live, each that the same item's acquisition ends.
/// Empty where no item is acquired last twice. Finds most such moments, not all. Time in proportion to the events.
[[nodiscard]] std::vector<std::uint8_t> covered_moments(std::span<const std::int64_t> sizes,
                                                        std::span<const PackEvent> events);

}  // namespace shard::packing
