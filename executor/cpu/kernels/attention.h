// Causal attention with grouped key and value heads, forward and backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/cpu/kernels/init.h"
#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/shapes.h"

namespace shard::cpu {

// lse is fp32, whatever the type of the rest. In 16 bits q, k, v, dy are widened and y, dq, dk, dv summed up in fp32 by
// tiles in the workspace; the result is that of the fp32 kernel, rounded, wherever the matrix library computes alike
// for the strides of the operands and of the widened tiles.

/// y = drop(softmax(causal(q k^T / sqrt(D)))) v; lse [B,H,S] = log of the sum of exponentials of each row of scores.
/// workspace: at least plan::attention_forward_workspace() bytes for this pool's threads, 64-byte aligned.
void attention_forward(ThreadPool& pool, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v, HeadsOut y,
                       float* lse, std::span<std::byte> workspace, const AttentionDropout& dropout = {});

/// Recomputes the probabilities from q, k and lse (y is not needed), draws their mask again, and writes dq, dk, dv,
/// which overlap no input.
/// Gradients of a shared key head sum over its query heads in order of h, and over query tiles in order of rows.
/// workspace: at least plan::attention_backward_workspace() bytes for this pool's threads, 64-byte aligned.
void attention_backward(ThreadPool& pool, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v,
                        const float* lse, HeadsView dy, HeadsOut dq, HeadsOut dk, HeadsOut dv,
                        std::span<std::byte> workspace, const AttentionDropout& dropout = {});

}  // namespace shard::cpu
