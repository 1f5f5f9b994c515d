// Gemini's figures as JSON, in the keys of the peer's own recording, and as text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/like/simulate_gemini.h"
#include "traces/base/numbers.h"

namespace shard::like {

/// {"like", "model" (absent for a bare list), "world_size", "rank", "chunk_elements" (null: one chunk per tensor),
///  "shard_param_frac", "offload_optim_frac", "offload_param_frac", "fits", "verdict",
///  "outside_allocator_bytes", "device_capacity_bytes" (null: no limit),
///  "peak_device_bytes" (everything, creation included), "peak_op", "optimizer_state_bytes", "largest_holders":
///  [{"name", "category", "bytes"}], "num_chunks", "chunk_sizes", "utilized" (elements),
///  "offloaded_optim_chunks", "keep_gathered_chunk_mem", "true_total_chunk_mem", "rest_cuda", "rest_cpu" (bytes),
///  "iters": one object per step, calls and bytes: {"ag_fwd", "ag_total", "ag_bytes_full", "rs", "rs_bytes_full", "ar",
///  "ar_bytes", "h2d", "d2h", "peak_model_data_cuda", "peak_fwd", "cuda_after_fwd", "cuda_after_bwd",
///  "cpu_after_bwd"}; version 0.1.9 has "broadcast_fwd", "broadcast_total", "broadcast_bytes_full", "reduce" and
///  "reduce_bytes_full" besides}
[[nodiscard]] nlohmann::json to_json(const GeminiResult& result, std::size_t holders = 5);

/// What an answer's sizes are written in: MiB, of which chunks have some each.
[[nodiscard]] ShowBytes unit_of(const GeminiResult& result);

/// The verdict and what it rests on, one line.
[[nodiscard]] std::string verdict_text(const GeminiResult& result, ShowBytes show);

/// The first step and a steady one side by side, and the largest holders at the peak; lines ended by newlines.
[[nodiscard]] std::string details_text(const GeminiResult& result, ShowBytes show, std::size_t holders = 5);

}  // namespace shard::like
