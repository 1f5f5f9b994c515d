// A step's time as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/like/simulate_like.h"

namespace shard::like {

/// "step: 412 ms (360 to 480), 19,880 tokens/s per GPU (17,100 to 22,800), 45 % of the peak" and what of it goes where;
/// or why it is not known. Lines ended by newlines.
[[nodiscard]] std::string step_text(const LikeResult& result);

/// {"seconds", "low", "high", "coverage" (the share of the time that has a law), "tokens_per_second",
/// "tokens_per_second_low", "tokens_per_second_high" (of one GPU), "model_flops_share", "parts": [{"name",
/// "seconds"}]}, or null; and "no_step": null, or why.
void add_step(nlohmann::json& j, const LikeResult& result);

}  // namespace shard::like
