// Operators of ranks that share a model to kernels: which columns and rows are this rank's is decided here.
#include <cassert>

#include "executor/cpu/call.h"
#include "executor/cpu/kernels/linear.h"
#include "executor/cpu/kernels/loss.h"
#include "executor/cpu/kernels/split.h"
#include "executor/rank/shapes_of.h"

namespace shard::cpu {

using model::OperatorKind;

void compute_part(const Call& o) {
  const model::Attributes& a = o.attributes();
  const std::int64_t own = o.tensor_rank;
  const VocabularyPart part = executor::vocabulary_part(a, own);
  const auto columns = [&] { return executor::column_parts(o.op.kind, a); };
  assert(!o.op.accumulate_input && "what is joined or taken has one use");
  if (o.op.kind == OperatorKind::join_columns) {
    const ColumnParts shape = columns();
    if (o.forward())
      join_columns(o.pool, shape, o(Role::x), o(Role::y));
    else
      take_columns(o.pool, shape, own, o(Role::dy), o(Role::dx));
  } else if (o.op.kind == OperatorKind::take_columns) {
    const ColumnParts shape = columns();
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
