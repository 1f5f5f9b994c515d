// Where the elements of a rank's part of a parameter lie in the whole parameter.
#pragma once

#include <cstdint>

#include "sim/ir/plan.h"
#include "sim/model/split.h"

namespace shard::cpu {

/// run(local, whole, n): the longest stretches of a range's elements, numbered as the rank has them, that lie together
/// in the whole parameter. Ranks that share a model have the elements that one rank alone would have there.
template <class Run>
void for_each_whole_run(const plan::Plan& plan, const plan::Position& position, const plan::ParamRange& range,
                        const Run& run) {
  const model::TensorSplit& split = plan.model->split;
  if (split.degree == 1) return run(range.first.count(), range.first.count(), range.elems.count());
  model::for_each_run(split.parameters[static_cast<std::size_t>(range.param.value)], split.degree, position.tensor,
                      range.first.count(), range.elems.count(), run);
}

}  // namespace shard::cpu
