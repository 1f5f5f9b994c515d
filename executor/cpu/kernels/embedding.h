// Token and position embeddings, forward and backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/shapes.h"
#include "executor/kernels/store.h"

namespace shard::cpu {

/// y [T,C] = table [V,C] at tokens [T] - first. A whole table has a row for every token (the data loader checks).
void embedding_forward(ThreadPool& pool, const EmbeddingShape& shape, const std::int32_t* tokens, ConstElements table,
                       Elements y);

/// dtable [V,C] at tokens[t] += dy [T,C], in order of t. Store::write zeroes dtable first; Store::add is for a tied
/// table whose other gradient is already there.
/// workspace: plan::embedding_backward_workspace() bytes, 8-byte aligned; none in fp32.
void embedding_backward(ThreadPool& pool, const EmbeddingShape& shape, ConstElements dy, const std::int32_t* tokens,
                        Elements dtable, Store store, std::span<std::byte> workspace = {});

/// y [B,S,C] = x + table [P,C] at s. y may be x.
void add_position_forward(ThreadPool& pool, const PositionShape& shape, ConstElements x, ConstElements table,
                          Elements y);

/// dtable [P,C] at s = (or +=) the sum over b, in order, of dy [B,S,C]; rows from S on are zero (or left alone).
/// The gradient of x is dy itself.
void add_position_backward(ThreadPool& pool, const PositionShape& shape, ConstElements dy, Elements dtable,
                           Store store = Store::write);

}  // namespace shard::cpu
