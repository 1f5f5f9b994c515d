// Names of what a program takes, and the steps that name their operator.
#include "sim/like/program/program.h"

#include <cassert>

namespace shard::like {

std::string Program::text_of(const Operator& op) const {
  std::string text(op.module);
  if (!op.module.empty()) text += ' ';
  return text.append(op.name);
}

std::string Program::name_of(const Allocation& allocation) const {
  if (!allocation.name.empty()) return std::string(allocation.name);
  return text_of(operators[static_cast<std::size_t>(allocation.by)]);
}

Bytes Program::sum_of(Category category) const {
  Bytes sum{0};
  for (const Allocation& each : allocations)
    if (each.category == category) sum += each.bytes;
  return sum;
}

BufferId Program::take(Allocation allocation) {
  assert(!operators.empty() && "somebody asks for it");
  allocation.by = static_cast<std::int32_t>(operators.size()) - 1;
  add(StepKind::take, keep(allocations, allocation));
  return BufferId{static_cast<std::int32_t>(allocations.size()) - 1};
}

void Program::work(Work work) {
  assert(!operators.empty() && "somebody does it");
  work.by = static_cast<std::int32_t>(operators.size()) - 1;
  add(StepKind::work, keep(works, work));
}

}  // namespace shard::like
