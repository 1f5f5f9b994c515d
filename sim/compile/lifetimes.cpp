// Lifetimes of buffers in plan order.
#include "sim/compile/lifetimes.h"

#include <algorithm>

namespace shard::plan {
namespace {

[[nodiscard]] bool contains(const std::vector<BufferId>& ids, BufferId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// Whether content that the buffer held before this op is dead. An op that also reads the buffer needs it.
[[nodiscard]] bool begins_lifetime(const Plan& plan, const Op& op, BufferId id) {
  bool begins = false;
  for (const Operand& o : op.operands) {
    if (o.buffer != id) continue;
    if (o.reads() && !o.fresh) return false;
    begins = begins || o.fresh || (o.rank_stride == 0 && o.offset == 0 && o.bytes == plan.buffer(id).bytes.count());
  }
  return begins;
}

void phase_lifetimes(const Plan& plan, PhaseOps& phase, std::vector<bool>& born) {
  std::vector<std::int64_t> last(plan.buffers.size(), -1);
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    Op& op = phase.ops[i];
    op.acquire.clear();
    op.release.clear();
    for (const Operand& o : op.operands) {
      const auto b = static_cast<std::size_t>(o.buffer.value);
      if (contains(op.acquire, o.buffer)) continue;
      if (plan.buffers[b].persistent) {
        if (!born[b]) op.acquire.push_back(o.buffer);
        born[b] = true;
        continue;
      }
      if (last[b] == static_cast<std::int64_t>(i)) continue;
      if (last[b] < 0) {
        op.acquire.push_back(o.buffer);
      } else if (begins_lifetime(plan, op, o.buffer)) {
        phase.ops[static_cast<std::size_t>(last[b])].release.push_back(o.buffer);
        op.acquire.push_back(o.buffer);
      }
      last[b] = static_cast<std::int64_t>(i);
    }
  }
  for (std::size_t b = 0; b < last.size(); ++b)
    if (last[b] >= 0)
      phase.ops[static_cast<std::size_t>(last[b])].release.push_back(BufferId{static_cast<std::int32_t>(b)});
  for (Op& op : phase.ops) std::sort(op.release.begin(), op.release.end());
}

}  // namespace

void find_lifetimes(Plan& plan) {
  std::vector<bool> born(plan.buffers.size(), false);
  for (PhaseOps& phase : plan.phases) phase_lifetimes(plan, phase, born);
}

}  // namespace shard::plan
