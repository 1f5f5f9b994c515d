// From a step's operators to the plan of one rank under Gemini: each version's rules as one function.
#pragma once

#include <vector>

#include "sim/chunk/layout.h"
#include "sim/ir/plan.h"
#include "sim/like/gemini_options.h"
#include "sim/like/gemini_step.h"
#include "sim/like/passes.h"

namespace shard::like {

/// Phases creation, first_step and steady_step; the memory a steady step ends with is that it began with. Marks in both
/// steps: "after forward", "after backward", "after step".
struct GeminiPlan {
  plan::Plan plan;
  std::vector<Mark> marks;
  ChunkLayout layout;
  std::int64_t offloaded_chunks = 0;  ///< whose gradients, masters and optimizer state rest in host memory
  double keep_gathered_bytes = 0;     ///< split: what may stay gathered, by the peer's own count
  bool order_matters = false;         ///< split: which chunks are offloaded depends on the order of a Python set
};

/// Next-fit over the parameters in order; parameters larger than a chunk get one of their own: rounded up to the world
/// size (split), exactly as large (whole). Without a chunk size one chunk per tensor.
[[nodiscard]] ChunkLayout gemini_layout(GeminiRules rules, const ParameterList& parameters,
                                        const GeminiOptions& options);

/// Chunk, ChunkManager, GeminiManager, StaticPlacementPolicy and the hooks of Colossal-AI 4f9953be3, without prefetch,
/// pinned memory or accumulation. The options have passed check_gemini().
/// Sources: colossalai/zero/gemini/{chunk/chunk,chunk/manager,gemini_mgr,gemini_hook,placement_policy,gemini_ddp}.py.
/// - T, what fractions are of, sums over parameters the bytes of the chunk that holds each, so it is too large by the
///   mean number of tensors per chunk.
/// - Before an op: evictable (gathered, no tensor in use or waiting for its reduction) chunks in order of creation are
///   released until what is left of them is at most T (1 - shard_param_frac), then moved to the host until at most
///   T (1 - offload_param_frac), which is 0 unless both other fractions are 1.
/// - Chunks are marked for the host until T offload_optim_frac is reached; the peer walks a set of objects, whose order
///   differs between runs: here the order of creation.
/// - A 16-bit shard on the host is stale after the step: its next access copies the fp32 shard and casts on the device.
[[nodiscard]] GeminiPlan split_chunks(GeminiStep step, const ChunkLayout& layout, const GeminiOptions& options);

/// Chunk, ChunkManager, GeminiManager, its policies cuda and cpu, and ZeROHookV2 of Colossal-AI v0.1.9.
/// Sources: colossalai/gemini/{chunk,chunk_mgr,gemini_mgr,placement_policy}.py, colossalai/zero/utils/zero_hook_v2.py,
/// ZeroDDP in colossalai/nn/parallel/data_parallel.py, colossalai/zero/zero_optimizer.py.
/// - Chunk i rests on rank i mod N; one chunk per tensor: on the rank with the fewest elements, the first of equals.
/// - Access is a broadcast by the owner, even where the owner is alone. Release comes with the next op's pre_op (and
/// the
///   end of forward and backward), when all tensors of a chunk are HOLD; after the op in backward they are not.
/// - Policy cpu moves every chunk on the device that is not in use to the host before each op.
/// - The gradient is reduced to the owner when a chunk's last tensor has one, and moved to the host under policy cpu.
/// - Without distributed storage every rank owns all chunks: no broadcast, all-reduce.
[[nodiscard]] GeminiPlan whole_chunks(GeminiStep step, const ChunkLayout& layout, const GeminiOptions& options);

}  // namespace shard::like
