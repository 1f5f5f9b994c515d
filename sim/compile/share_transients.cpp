// By first and last touch of each buffer in the steady step.
#include "sim/compile/share_transients.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace shard::plan {
namespace {

constexpr std::int32_t kUntouched = -2;
constexpr std::int32_t kOfTheStep = -1;  // or of several micro-steps, or of another phase

struct Use {
  std::int32_t micro_step = kUntouched;
  std::size_t first = 0, last = 0;  ///< ops of the step
};

void touch(Use& use, std::int32_t micro_step, std::size_t op) {
  if (use.micro_step == kUntouched)
    use = {.micro_step = micro_step, .first = op, .last = op};
  else if (use.micro_step != micro_step)
    use.micro_step = kOfTheStep;
  use.last = op;
}

std::vector<Use> uses_of(const Plan& plan) {
  std::vector<Use> uses(plan.buffers.size());
  for (const PhaseOps& phase : plan.phases)
    for (std::size_t i = 0; i < phase.ops.size(); ++i)
      for (const Operand& o : phase.ops[i].operands)
        touch(uses[static_cast<std::size_t>(o.buffer.value)],
              phase.phase == Phase::steady_step ? phase.ops[i].micro_step : kOfTheStep, i);
  return uses;
}

/// What makes two buffers alike; with how many such the micro-step had before.
using Kind = std::tuple<std::string, std::int64_t, Memory, Category, Dtype, std::int32_t>;

Kind kind_of(const Buffer& b) {
  return {std::string(b.name), b.bytes.count(), b.memory, b.category, b.dtype, b.unit.value};
}

}  // namespace

void share_transients(Plan& plan) {
  const std::vector<Use> uses = uses_of(plan);
  std::vector<std::size_t> order;  // of one micro-step each, by first touch
  for (std::size_t b = 0; b < uses.size(); ++b)
    if (uses[b].micro_step >= 0 && !plan.buffers[b].persistent) order.push_back(b);
  std::ranges::stable_sort(order, {}, [&](std::size_t b) { return std::pair{uses[b].micro_step, uses[b].first}; });
  struct Shared {
    std::size_t buffer = 0;
    std::size_t last = 0;  ///< op that touched it
  };
  std::map<std::pair<Kind, std::int32_t>, Shared> shared;
  std::map<Kind, std::int32_t> count;  // in this micro-step
  std::int32_t micro_step = 0;
  std::vector<std::int32_t> stands_for(uses.size(), -1);
  for (const std::size_t b : order) {
    if (uses[b].micro_step != micro_step) count.clear();
    micro_step = uses[b].micro_step;
    const Kind kind = kind_of(plan.buffers[b]);
    const auto [it, is_new] = shared.try_emplace({kind, count[kind]++}, Shared{b, uses[b].last});
    if (is_new || it->second.last >= uses[b].first) continue;
    stands_for[b] = static_cast<std::int32_t>(it->second.buffer);
    it->second.last = uses[b].last;
  }
  for (Op& op : plan.find(Phase::steady_step)->ops) {
    const auto moves = [&](const Operand& o) { return stands_for[static_cast<std::size_t>(o.buffer.value)] >= 0; };
    if (std::ranges::none_of(op.operands, moves)) continue;
    for (Operand& o : plan.own_operands(op))
      if (moves(o)) o.buffer = BufferId{stands_for[static_cast<std::size_t>(o.buffer.value)]};
  }
}

}  // namespace shard::plan
