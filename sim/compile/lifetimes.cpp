// Lifetimes of buffers in plan order.
#include "sim/compile/lifetimes.h"

#include <algorithm>
#include <span>
#include <vector>

#include "sim/compile/passes/operands.h"

namespace shard::plan {
namespace {

/// Whether content that the buffer held before this op is dead. An op that also reads the buffer needs it.
[[nodiscard]] bool begins_lifetime(const Plan& plan, const Op& op, BufferId id) {
  bool begins = false;
  for (const Operand& o : op.operands) {
    if (o.buffer != id) continue;
    if (o.reads() && !o.fresh) return false;
    begins = begins || o.fresh || is_whole(plan, o);
  }
  return begins;
}

/// The end of a lifetime: the op that touched the buffer last.
struct Over {
  std::int32_t op = 0;
  BufferId buffer{};
};

/// What each op gives back, by id.
void set_releases(const Plan& plan, std::vector<Op>& ops, const std::vector<Over>& over) {
  std::vector<std::size_t> begin(ops.size() + 1, 0);  // of each op's in `released`
  for (const Over& o : over) ++begin[static_cast<std::size_t>(o.op) + 1];
  for (std::size_t i = 0; i < ops.size(); ++i) begin[i + 1] += begin[i];
  const std::span<BufferId> released = plan.pool->make<BufferId>(over.size());
  std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
  for (const Over& o : over) released[next[static_cast<std::size_t>(o.op)]++] = o.buffer;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::span<BufferId> of_op = released.subspan(begin[i], begin[i + 1] - begin[i]);
    if (of_op.size() > 1) std::ranges::sort(of_op);
    ops[i].release = List<BufferId>(of_op);
  }
}

void phase_lifetimes(const Plan& plan, PhaseOps& phase, std::vector<bool>& born) {
  std::vector<std::int32_t> last(plan.buffers.size(), -1);
  std::vector<BufferId> acquired;
  std::vector<Over> over;
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    Op& op = phase.ops[i];
    const auto index = static_cast<std::int32_t>(i);
    acquired.clear();
    for (const Operand& o : op.operands) {
      const auto b = static_cast<std::size_t>(o.buffer.value);
      if (plan.buffers[b].persistent) {
        if (!born[b]) acquired.push_back(o.buffer);
        born[b] = true;
        continue;
      }
      if (last[b] == index) continue;
      if (last[b] < 0) {
        acquired.push_back(o.buffer);
      } else if (begins_lifetime(plan, op, o.buffer)) {
        over.push_back({last[b], o.buffer});
        acquired.push_back(o.buffer);
      }
      last[b] = index;
    }
    op.acquire = plan.list(acquired);
  }
  for (std::size_t b = 0; b < last.size(); ++b)
    if (last[b] >= 0) over.push_back({last[b], BufferId{static_cast<std::int32_t>(b)}});
  set_releases(plan, phase.ops, over);
}

}  // namespace

void find_lifetimes(Plan& plan) {
  std::vector<bool> born(plan.buffers.size(), false);
  for (PhaseOps& phase : plan.phases) phase_lifetimes(plan, phase, born);
}

}  // namespace shard::plan
