// A chunk search's result for a reader at a terminal.
#pragma once

#include <string>

#include "sim/search/chunk_search.h"

namespace shard {

/// The answer, what each rule would choose, a picture of the waste over the chunk size, the curve's best points, and
/// why. Sizes in elements and in MiB at result.bytes_per_element. Ends with a newline; no colours.
[[nodiscard]] std::string to_text(const ChunkSearchResult& result);

}  // namespace shard
