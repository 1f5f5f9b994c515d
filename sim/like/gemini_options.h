// What a run of Colossal-AI's Gemini is told: the chunk size and the fractions of its static placement policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/parameters.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::like {

/// Which chunk manager.
enum class GeminiRules : std::uint8_t {
  whole,  ///< v0.1.9: a chunk rests whole on one rank; broadcast, reduce, lazy release
  split,  ///< v0.4.7 to v0.5.1 (HEAD 4f9953be3): every chunk is cut into equal shards; placement policy `static`
};

/// Names as the peer's arguments; fp16 chunks with fp32 masters throughout.
struct GeminiOptions {
  std::int32_t world_size = 1;
  std::optional<Elems> chunk;       ///< none: one chunk per tensor (whole only)
  bool keep_gathered = false;       ///< split: what its search says of a model below the minimum chunk size
  double shard_param_frac = 1.0;    ///< whole: 1 is enable_distributed_storage, 0 is without
  double offload_optim_frac = 0.0;  ///< whole: both 0 is policy cuda, both 1 is policy cpu
  double offload_param_frac = 0.0;
  std::int32_t rank = 0;  ///< whose memory is asked for; with split all ranks are alike
};

/// "colossalai-gemini@0.5.1", "colossalai-gemini@0.1.9".
[[nodiscard]] std::string name_of(GeminiRules rules);

/// The rules of "colossalai-gemini" (the newest) or "colossalai-gemini@VERSION", VERSION 0.1.9 or 0.4.7 to 0.5.1;
/// nothing for other names.
[[nodiscard]] std::optional<GeminiRules> gemini_rules(std::string_view name_at_version);

/// `parameters`: at least one. Errc::usage for a size, fraction or rank out of range. Errc::contradiction for a chunk
/// size that the world size does not divide, one chunk per tensor with split, fractions between 0 and 1 with whole,
/// chunks of more than 2^44 elements together.
[[nodiscard]] Result<void> check_gemini(GeminiRules rules, const ParameterList& parameters,
                                        const GeminiOptions& options);

}  // namespace shard::like
