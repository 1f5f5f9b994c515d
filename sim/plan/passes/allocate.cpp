// Pass allocate: lifetimes, one offset for every buffer over all phases, and edges where bytes are reused.
#include <cassert>
#include <vector>

#include "sim/memory/pack.h"
#include "sim/plan/dependencies.h"
#include "sim/plan/effects.h"
#include "sim/plan/lifetimes.h"
#include "sim/plan/passes/passes.h"

namespace shard::plan {
namespace {

/// Packs one memory. What is born once and stays (parameters, optimizer state) counts as live from the start of the
/// run, so every offset holds in every step; first_step touches nothing that steady_step does not, births apart.
void pack_memory(Plan& plan, Memory memory) {
  std::vector<Bytes> sizes;
  std::vector<std::int32_t> item_of(plan.buffers.size(), -1);
  std::vector<BufferId> buffer_of;
  std::vector<PackEvent> events;
  const auto item = [&](BufferId id) {
    std::int32_t& i = item_of[static_cast<std::size_t>(id.value)];
    if (i < 0) {
      i = static_cast<std::int32_t>(sizes.size());
      sizes.push_back(plan.buffer(id).bytes);
      buffer_of.push_back(id);
    }
    return i;
  };
  for (const PhaseOps& phase : plan.phases)
    for (const Op& op : phase.ops)
      for (BufferId id : op.acquire)
        if (const Buffer& b = plan.buffer(id); b.persistent && b.memory == memory)
          events.push_back({.item = item(id), .acquire = true});
  for (const PhaseOps& phase : plan.phases) {
    if (phase.phase == Phase::first_step) continue;
    for (const Op& op : phase.ops) {
      for (BufferId id : op.acquire)
        if (const Buffer& b = plan.buffer(id); !b.persistent && b.memory == memory)
          events.push_back({.item = item(id), .acquire = true});
      for (BufferId id : op.release)
        if (plan.buffer(id).memory == memory) events.push_back({.item = item(id), .acquire = false});
    }
  }
  const Result<Packing> packing = pack(sizes, events, {.alignment = kAlignment});
  assert(packing && "lifetimes acquire and release in turn");
  for (std::size_t i = 0; i < sizes.size(); ++i) plan.buffer(buffer_of[i]).offset = packing->offsets[i].count();
  plan.arena_bytes[static_cast<std::size_t>(memory)] = packing->extent;
}

}  // namespace

Plan allocate(Plan plan) {
  find_lifetimes(plan);
  for (int m = 0; m < kMemoryCount; ++m) pack_memory(plan, static_cast<Memory>(m));
  for (PhaseOps& phase : plan.phases) order_reuse(plan, phase);
  return plan;
}

}  // namespace shard::plan
