// Spans of one track by begin, then longest first; of those that are equal the earlier in the file is first.
#pragma once

#include <cstdint>
#include <span>

#include "traces/reader.h"

namespace shard {

/// Sorts span indices, given in the order of the file. Runs that are in order are found and merged (on several threads
/// where there are many spans), so that what is in order costs one look.
void sort_spans(const SpanTable& spans, std::span<std::uint32_t> order);

}  // namespace shard
