// Rule `gemini-v0.1.9`: Colossal-AI's ChunkManager.search_chunk_size of v0.1.8 and v0.1.9.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

struct GeminiV019Options {
  Elems range{32 << 20};           ///< >= 1, a multiple of grids
  std::int64_t grids = 32;         ///< number of steps; there is one candidate more
  std::optional<Elems> min_chunk;  ///< smallest candidate; at least the largest kept parameter, which is the default
  bool filter = true;
};

struct GeminiV019Answer {
  Elems chunk;           ///< aligned to nothing: chunks of that version are not sharded
  Elems reported_waste;  ///< the search maximises kept / (chunk * chunks); this is chunk * chunks - kept
  std::int64_t filtered_parameters = 0;
  std::int64_t candidates = 0;
};

/// The peer's answer, quirks included: candidates lo, lo + range/grids, ..., lo + range without alignment or a floor
/// of 32Mi; the best utilisation of next-fit over the kept parameters, the smallest candidate on ties. (Its float
/// comparison agrees with the exact one for all capacities below 2^52 elements.)
/// Errc::contradiction where the peer asserts: grids below 1 or not dividing the range, min_chunk below the largest
/// kept parameter.
[[nodiscard]] Result<GeminiV019Answer> search_gemini_v019(std::span<const std::int64_t> sizes,
                                                          const GeminiV019Options& options);

}  // namespace shard
