// Token and position embeddings, forward and backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/cpu/kernels/elements.h"
#include "executor/cpu/kernels/store.h"
#include "executor/cpu/kernels/threads.h"

namespace shard::cpu {

struct EmbeddingShape {
  std::int64_t tokens = 0;      ///< T
  std::int64_t vocabulary = 0;  ///< V: rows of the table
  std::int64_t columns = 0;     ///< C
  std::int64_t first = 0;       ///< the token of the table's first row; tokens without a row there are zero and skipped
};

/// y [T,C] = table [V,C] at tokens [T] - first. A whole table has a row for every token (the data loader checks).
void embedding_forward(ThreadPool& pool, const EmbeddingShape& shape, const std::int32_t* tokens, ConstElements table,
                       Elements y);

/// dtable [V,C] at tokens[t] += dy [T,C], in order of t. Store::write zeroes dtable first; Store::add is for a tied
/// table whose other gradient is already there.
/// workspace: plan::embedding_backward_workspace() bytes, 8-byte aligned; none in fp32.
void embedding_backward(ThreadPool& pool, const EmbeddingShape& shape, ConstElements dy, const std::int32_t* tokens,
                        Elements dtable, Store store, std::span<std::byte> workspace = {});

struct PositionShape {
  std::int64_t batch = 0;      ///< B
  std::int64_t sequence = 0;   ///< S
  std::int64_t positions = 0;  ///< P >= S: rows of the table
  std::int64_t columns = 0;    ///< C
};

/// y [B,S,C] = x + table [P,C] at s. y may be x.
void add_position_forward(ThreadPool& pool, const PositionShape& shape, ConstElements x, ConstElements table,
                          Elements y);

/// dtable [P,C] at s = (or +=) the sum over b, in order, of dy [B,S,C]; rows from S on are zero (or left alone).
/// The gradient of x is dy itself.
void add_position_backward(ThreadPool& pool, const PositionShape& shape, ConstElements dy, Elements dtable,
                           Store store = Store::write);

}  // namespace shard::cpu
