// Rule `gemini`: Colossal-AI's search_chunk_configuration (v0.1.9 update, v0.1.13, v0.2.8, v0.5.1, HEAD 4f9953be3).
#pragma once

#include <cstdint>
#include <span>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

struct GeminiOptions {
  std::int64_t world_size = 1;
  Elems range{32 << 20};      ///< length of the searched range, >= 0
  Elems interval{1024};       ///< distance of candidates, >= 1; need not divide the range
  Elems min_chunk{32 << 20};  ///< >= 0
  bool filter = true;         ///< leave extra-large parameters out of the score (outlier_filter.h)
};

struct GeminiAnswer {
  Elems chunk;           ///< aligned to the world size after the search, unless keep_gathered
  Elems reported_waste;  ///< the search's own score: of the candidate before alignment, kept parameters only
  bool keep_gathered = false;
  std::int64_t filtered_parameters = 0;
  std::int64_t candidates = 0;  ///< how many sizes the rule compares
};

/// Candidates of the rule, kept parameters in order.
struct GeminiRange {
  Elems first;  ///< max(min_chunk, largest kept parameter) rounded up to the interval
  Elems last;   ///< first + range; the last candidate is at most this
};

/// The peer's answer, quirks included: a model of fewer elements than min_chunk is one chunk of exactly its size, kept
/// gathered; otherwise the candidate with the least waste of next-fit over the kept parameters, the smallest on ties,
/// rounded up to the world size afterwards. Found by branch and bound over the candidates
/// (least_capacity.h).
/// sizes: at least one, each at least 1, their sum at most 2^60.
/// Errc::contradiction for a world size or interval below 1, a negative range or minimum, or one above 2^60.
[[nodiscard]] Result<GeminiAnswer> search_gemini(std::span<const std::int64_t> sizes, const GeminiOptions& options);

/// Where that search would look, also for models below the minimum.
[[nodiscard]] Result<GeminiRange> gemini_range(std::span<const std::int64_t> sizes, const GeminiOptions& options);

}  // namespace shard
