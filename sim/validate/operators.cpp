// Lists of operators over memory.
#include "sim/validate/operators.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace shard::validate {
namespace {

/// The last operator that reads each value.
std::vector<std::size_t> last_readers(const std::vector<Operator>& list) {
  std::vector<std::size_t> last(list.size() + 1, 0);
  for (std::size_t i = 0; i < list.size(); ++i)
    for (const int v : list[i].inputs) last[static_cast<std::size_t>(v)] = i;
  last.back() = list.size();
  return last;
}

/// Runs forward; `values` may already have outputs that were kept.
Held forward(MemoryStream& memory, const std::vector<Operator>& list, Held input, Keep keep, Kept& kept) {
  const std::vector<std::size_t> last = last_readers(list);
  std::vector<Held> values(list.size() + 1, 0);
  memory.hold(input);
  values[0] = input;
  kept.first_saved.assign(list.size() + 1, 0);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Operator& op = list[i];
    const Held workspace = memory.take(op.forward_workspace);
    if (!kept.values.empty() && kept.values[i + 1] != 0) {
      values[i + 1] = std::exchange(kept.values[i + 1], 0);
    } else if (op.output == 0) {
      values[i + 1] = values[static_cast<std::size_t>(op.inputs[0])];
      memory.hold(values[i + 1]);
    } else {
      values[i + 1] = memory.take(op.output);
    }
    kept.first_saved[i] = kept.saved.size();
    if (keep == Keep::all) {
      if (op.statistics > 0) kept.saved.push_back(memory.take(op.statistics));
      for (const int v : op.saved) {
        memory.hold(values[static_cast<std::size_t>(v)]);
        kept.saved.push_back(values[static_cast<std::size_t>(v)]);
      }
    }
    memory.drop(workspace);
    for (const int v : op.inputs) {
      const auto at = static_cast<std::size_t>(v);
      if (last[at] == i && values[at] != 0 && at != list.size()) {
        if (keep == Keep::marked && at > 0 && list[at - 1].kept)
          kept.values[at] = std::exchange(values[at], 0);
        else
          memory.drop(std::exchange(values[at], 0));
      }
    }
  }
  kept.first_saved[list.size()] = kept.saved.size();
  return values.back();
}

}  // namespace

Held run_forward(MemoryStream& memory, const std::vector<Operator>& list, Held input, Keep keep, Kept& kept) {
  kept = {};
  memory.hold(input);
  kept.input = input;
  kept.again = keep != Keep::all;
  if (keep == Keep::marked) kept.values.assign(list.size() + 1, 0);
  return forward(memory, list, input, keep, kept);
}

Held run_backward(MemoryStream& memory, const std::vector<Operator>& list, Kept& kept, Held gradient,
                  std::vector<Held>& weights) {
  if (kept.again) memory.drop(forward(memory, list, kept.input, Keep::all, kept));
  std::vector<Held> gradients(list.size() + 1, 0);
  gradients.back() = gradient;
  const auto arrive = [&](std::size_t value, Held more) {
    Held& sum = gradients[value];
    if (sum == 0) {
      sum = more;
    } else if (memory.alone(sum)) {
      memory.drop(more);
    } else {
      const Held both = memory.take(memory.bytes(sum));
      memory.drop(std::exchange(sum, both));
      memory.drop(more);
    }
  };
  for (std::size_t i = list.size(); i-- > 0;) {
    const Operator& op = list[i];
    const Held own = std::exchange(gradients[i + 1], 0);
    const Held workspace = memory.take(op.backward_workspace);
    std::vector<std::pair<std::size_t, Held>> made;
    for (std::size_t k = op.inputs.size(); k-- > 0;) {
      const auto value = static_cast<std::size_t>(op.inputs[k]);
      if (op.input_gradients[k] > 0) {
        made.emplace_back(value, memory.take(op.input_gradients[k]));
      } else if (op.input_gradients[k] == 0) {
        memory.hold(own);
        made.emplace_back(value, own);
      }
    }
    if (op.weight_gradient > 0) weights.push_back(memory.take(op.weight_gradient));
    memory.drop(workspace);
    memory.drop(own);
    for (const auto& [value, held] : made) arrive(value, held);
    for (std::size_t s = kept.first_saved[i]; s < kept.first_saved[i + 1]; ++s) memory.drop(kept.saved[s]);
  }
  memory.drop(std::exchange(kept.input, 0));
  kept.saved.clear();
  return gradients[0];
}

}  // namespace shard::validate
