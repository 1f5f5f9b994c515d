// Why a chunk search's answer wins, in words.
#pragma once

#include <cstdint>
#include <string>

#include "sim/search/chunk_search.h"
#include "traces/base/numbers.h"
#include "traces/base/units.h"

namespace shard {

/// One to three sentences: the objective, what was compared, and what the most telling other rule would have cost.
[[nodiscard]] std::string explain(const ChunkSearchResult& result);

/// "238.11 MiB": elements at `bytes_per_element` each.
[[nodiscard]] std::string in_mib(Elems elems, Bytes bytes_per_element);
/// "0.32 %" of `whole`.
[[nodiscard]] std::string percent(Elems part, Elems whole);

}  // namespace shard
