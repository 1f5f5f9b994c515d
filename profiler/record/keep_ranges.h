// Leaves of a recording what was called in ranges that are wanted, and what that caused.
#pragma once

#include "profiler/ranges/wanted_ranges.h"
#include "profiler/spool/read_spool.h"

namespace shard::profiler {

/// Work stays whose call lies in such a range, whenever it ran. Allocations and pools stay all: what is in use does not
/// begin with a range. Where the recorder has said which ranges were wanted these are taken, else they are chosen here.
/// `wanted.any()`.
void keep_ranges(SpoolContent& content, const WantedRanges& wanted);

}  // namespace shard::profiler
