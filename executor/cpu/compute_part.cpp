// Operators of ranks that share a model to kernels: which columns and rows are this rank's is decided here.
#include <algorithm>
#include <cassert>

#include "executor/cpu/call.h"
#include "executor/cpu/kernels/linear.h"
#include "executor/cpu/kernels/loss.h"
#include "executor/cpu/kernels/split.h"

namespace shard::cpu {

using model::OperatorKind;

void compute_part(const Call& o) {
  const model::Attributes& a = o.attributes();
  const std::int64_t own = o.tensor_rank;
  const std::int64_t first = own * a.columns;
  const VocabularyPart part{.rows = a.rows,
                            .columns = a.columns,
                            .first = first,
                            .padding = std::clamp<std::int64_t>(first + a.columns - a.vocabulary, 0, a.columns)};
  assert(!o.op.accumulate_input && "what is joined or taken has one use");
  if (o.op.kind == OperatorKind::join_columns) {
    const ColumnParts shape{.rows = a.rows, .columns = a.columns, .parts = a.parts};
    if (o.forward())
      join_columns(o.pool, shape, o(Role::x), o(Role::y));
    else
      take_columns(o.pool, shape, own, o(Role::dy), o(Role::dx));
  } else if (o.op.kind == OperatorKind::take_columns) {
    const ColumnParts shape{.rows = a.rows, .columns = a.columns / a.parts, .parts = a.parts};
    if (o.forward())
      take_columns(o.pool, shape, own, o(Role::x), o(Role::y));
    else
      join_columns(o.pool, shape, o(Role::dy), o(Role::dx));
  } else if (o.op.kind == OperatorKind::add_bias) {
    if (o.forward())
      add_bias(o.pool, a.rows, a.columns, o(Role::p), o(Role::y));
    else
      bias_gradient(o.pool, a.rows, a.columns, o(Role::dy), o(Role::dp), o.into_weight());
  } else if (o.op.kind == OperatorKind::vocabulary_statistics) {
    vocabulary_statistics(o.pool, part, o(Role::x), o.indices(Role::x, 1), o.floats(Role::y));
  } else if (o.op.kind == OperatorKind::cross_entropy_part) {
    if (o.forward())
      cross_entropy_from_statistics(a.parts, a.rows, o.floats(Role::x, 2), o.floats(Role::y),
                                    o.floats(Role::statistic));
    else
      cross_entropy_part_backward(o.pool, part, o(Role::x), o.indices(Role::x, 1), o.floats(Role::statistic), o.scale(),
                                  o(Role::dx));
  } else {
    assert(false && "no operator of ranks that share a model");
  }
}

}  // namespace shard::cpu
