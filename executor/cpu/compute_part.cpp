// Operators of ranks that share a model to kernels: which columns and rows are this rank's is decided here.
#include <algorithm>
#include <cassert>

#include "executor/cpu/backend.h"
#include "executor/cpu/kernels/linear.h"
#include "executor/cpu/kernels/loss.h"
#include "executor/cpu/kernels/split.h"

namespace shard::cpu {

using model::OperatorKind;

void Backend::compute_part(const plan::Op& op, const plan::Compute& c) {
  const model::Attributes& a = c.attributes;
  const bool forward = c.direction == plan::Direction::forward;
  const auto e = [&](std::size_t i) { return elements(op.operands[i]); };
  const auto f = [&](std::size_t i) { return floats(op.operands[i]); };
  const auto tokens = [&](std::size_t i) { return reinterpret_cast<const std::int32_t*>(at(op.operands[i])); };
  const std::int64_t own = position_.tensor;
  const std::int64_t first = own * a.columns;
  const VocabularyPart part{.rows = a.rows,
                            .columns = a.columns,
                            .first = first,
                            .padding = std::clamp<std::int64_t>(first + a.columns - a.vocabulary, 0, a.columns)};
  assert(!c.accumulate_input && "what is joined or taken has one use");
  if (c.kind == OperatorKind::join_columns) {
    const ColumnParts shape{.rows = a.rows, .columns = a.columns, .parts = a.parts};
    if (forward)
      join_columns(pool_, shape, e(0), e(1));
    else
      take_columns(pool_, shape, own, e(0), e(1));
  } else if (c.kind == OperatorKind::take_columns) {
    const ColumnParts shape{.rows = a.rows, .columns = a.columns / a.parts, .parts = a.parts};
    if (forward)
      take_columns(pool_, shape, own, e(0), e(1));
    else
      join_columns(pool_, shape, e(0), e(1));
  } else if (c.kind == OperatorKind::add_bias) {
    if (forward)
      add_bias(pool_, a.rows, a.columns, e(1), e(0));
    else
      bias_gradient(pool_, a.rows, a.columns, e(0), e(1), c.accumulate_weight ? Store::add : Store::write);
  } else if (c.kind == OperatorKind::vocabulary_statistics) {
    vocabulary_statistics(pool_, part, e(0), tokens(1), f(2));
  } else if (c.kind == OperatorKind::cross_entropy_part) {
    if (forward)
      cross_entropy_from_statistics(a.parts, a.rows, f(0), f(1), f(2));
    else
      cross_entropy_part_backward(pool_, part, e(0), tokens(2), f(1), c.scaled ? c.scale * *f(3) : c.scale, e(0));
  } else {
    assert(false && "no operator of ranks that share a model");
  }
}

}  // namespace shard::cpu
