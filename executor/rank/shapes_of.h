// An operator's attributes as the sizes that kernels are called with: the same on every device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "executor/kernels/shapes.h"
#include "sim/ir/op.h"
#include "sim/model/graph.h"

namespace shard::executor {

[[nodiscard]] inline NormShape norm_shape(const model::Attributes& a) {
  return {.rows = a.rows, .columns = a.columns, .weight_offset = a.weight_offset};
}
[[nodiscard]] inline LinearShape linear_shape(const model::Attributes& a) {
  return {.rows = a.rows, .in = a.columns, .out = a.out_columns, .weight_in_out = a.weight_in_out};
}
[[nodiscard]] inline RotaryShape rotary_shape(const model::Attributes& a) {
  return {.batch = a.batch,
          .sequence = a.sequence,
          .heads = a.heads,
          .head_dim = a.head_dim,
          .base = a.rotary_base,
          .turned = a.turn.columns,
          .passed = a.turn.passed_heads,
          .factor = a.turn.factor,
          .frequencies = a.turn.frequencies.empty() ? nullptr : a.turn.frequencies.data()};
}
[[nodiscard]] inline GroupShape group_shape(const model::Attributes& a) {
  return {.rows = a.rows, .heads = a.heads, .kv_heads = a.kv_heads, .head_dim = a.head_dim};
}
[[nodiscard]] inline CrossEntropyShape cross_entropy_shape(const model::Attributes& a) {
  return {.rows = a.rows, .vocabulary = a.columns};
}
/// Of a table of `elements`; of embedding_part the rank's rows.
[[nodiscard]] inline EmbeddingShape embedding_shape(model::OperatorKind kind, const model::Attributes& a,
                                                    std::int64_t elements, std::int64_t tensor_rank) {
  const std::int64_t rows = elements / a.out_columns;
  return {.tokens = a.rows,
          .vocabulary = rows,
          .columns = a.out_columns,
          .first = kind == model::OperatorKind::embedding ? 0 : tensor_rank * rows};
}
/// Of a table of `elements`.
[[nodiscard]] inline PositionShape position_shape(const model::Attributes& a, std::int64_t elements) {
  return {.batch = a.batch,
          .sequence = a.sequence,
          .positions = elements / a.columns,
          .columns = a.columns,
          .first = a.first_row};
}
[[nodiscard]] inline AttentionShape attention_shape(const model::Attributes& a) {
  return {.batch = a.batch, .sequence = a.sequence, .heads = a.heads, .kv_heads = a.kv_heads, .head_dim = a.head_dim};
}
/// Without its key: which heads of the whole model's the shape's are.
[[nodiscard]] inline AttentionDropout attention_dropout(const plan::Compute& c, std::int64_t tensor_rank) {
  const model::Attributes& a = *c.attributes;
  const bool some = a.parts > 0;  // heads [rank x heads, (rank + 1) x heads)
  return {.probability = c.drop_probability(),
          .key = {},
          .heads = some ? a.parts * a.heads : a.heads,
          .first_head = some ? tensor_rank * a.heads : 0};
}
/// Row strides and starts of q, k and v: three tensors, or one packed q|k|v.
template <class View, class Pointer>
void split_heads(const model::Attributes& a, std::span<const Pointer> tensors, View& q, View& k, View& v) {
  const std::int64_t qc = a.heads * a.head_dim;
  const std::int64_t kc = a.kv_heads * a.head_dim;
  if (tensors.size() == 1) {
    const std::int64_t stride = qc + 2 * kc;
    q = {tensors[0], stride};
    k = {tensors[0].from(qc), stride};
    v = {tensors[0].from(qc + kc), stride};
  } else {
    q = {tensors[0], qc};
    k = {tensors[1], kc};
    v = {tensors[2], kc};
  }
}

// Of ranks that share a model.
[[nodiscard]] inline ColumnParts column_parts(model::OperatorKind kind, const model::Attributes& a) {
  const bool joins = kind == model::OperatorKind::join_columns;
  return {.rows = a.rows, .columns = joins ? a.columns : a.columns / a.parts, .parts = a.parts};
}
[[nodiscard]] inline VocabularyPart vocabulary_part(const model::Attributes& a, std::int64_t tensor_rank) {
  const std::int64_t first = tensor_rank * a.columns;
  return {.rows = a.rows,
          .columns = a.columns,
          .first = first,
          .padding = std::clamp<std::int64_t>(first + a.columns - a.vocabulary, 0, a.columns)};
}

}  // namespace shard::executor
