// One formula family per kind of op.
#include "sim/cost/op_cost.h"

#include <algorithm>

#include "sim/cost/collective.h"
#include "sim/cost/compute.h"
#include "sim/cost/host.h"
#include "sim/cost/optimizer.h"
#include "sim/cost/transfer.h"
#include "sim/ir/effects.h"

namespace shard::cost {
namespace {

/// SHA-256 of one core: `openssl speed sha256` gives 1.4 GB/s with the processor's instructions for it and 0.5 without.
constexpr BytesPerSecond kHashRate{1e9};

Bytes touched_bytes(const plan::Plan& plan, const plan::Op& op, const plan::Compute& compute) {
  Bytes total;
  for (const plan::Operand& o : op.operands) {
    const Bytes part = touched(compute.kind, *compute.attributes, plan.buffer(o.buffer).dtype, Bytes{o.bytes});
    if (o.reads()) total += part;
    if (o.writes()) total += part;
  }
  return total;
}

/// The memories of an op's operands.
struct Memories {
  bool device = false;
  bool host = false;
  bool disk = false;
};

Memories memories_of(const plan::Plan& plan, const plan::Op& op) {
  Memories found;
  for (const plan::Operand& o : op.operands) switch (plan.buffer(o.buffer).memory) {
      case Memory::device: found.device = true; break;
      case Memory::host:
      case Memory::pinned: found.host = true; break;
      case Memory::disk: found.disk = true; break;
    }
  return found;
}

}  // namespace

OpCost::OpCost(const plan::Plan& plan, const cluster::Cluster& cluster)
    : plan_(plan),
      cluster_(cluster),
      layout_(cluster::layout(cluster, plan.topology.world_size)),
      ranks_per_host_(layout_.ranks_per_host()),
      rates_(rates(cluster, layout_, plan.target)),
      host_(host_rates(cluster, rates_, ranks_per_host_, plan.target.threads)),
      measured_(plan, cluster, layout_) {
  for (std::size_t g = 0; g < groups_.size(); ++g)
    groups_[g] = cluster::layout_of(plan::members(plan.topology, static_cast<plan::Group>(g), plan.rank), layout_);
}

Seconds OpCost::operator()(const plan::Op& op, const plan::Effects& e) const {
  const Bytes moved = e.bytes_read + e.bytes_written;
  const Memories in = memories_of(plan_, op);
  if (in.disk) return disk_time(std::max(e.bytes_read, e.bytes_written), host_, ranks_per_host_);
  if (const std::optional<Seconds> measured = measured_(plan_, op)) return *measured;
  const Rates& here = in.host && !in.device ? host_ : rates_;
  const auto elementwise = [&] { return roofline(e.flops, moved, here.elementwise, here.memory, here.launch); };
  return std::visit(
      plan::on{[&](const plan::Compute& c) {
                 return roofline(e.flops, touched_bytes(plan_, op, c), reached_flops(c.kind, rates_), rates_.memory,
                                 rates_.launch);
               },
               [&](const plan::LoadBatch&) { return transfer_time(e.bytes_written, cluster_.host_link, rates_); },
               [&](const plan::LoadScalars&) { return transfer_time(e.bytes_written, cluster_.host_link, rates_); },
               [&](const plan::Communicate& c) {
                 return collective_time(c.kind, e.sends ? e.sends->bytes : Bytes{0}, cluster_,
                                        groups_[static_cast<std::size_t>(c.group)]);
               },
               [&](const plan::Accumulate&) { return elementwise(); },
               [&](const plan::Initialize&) { return elementwise(); },
               [&](const plan::ZeroState&) { return elementwise(); },
               [&](const plan::OptimizerStep&) { return optimizer_time(e.flops, moved, here); },
               [&](const plan::MeanLoss&) { return elementwise(); },
               [&](const plan::Copy&) {
                 // What it leaves of its target does not cross.
                 return in.host && in.device
                            ? transfer_time(Bytes{op.operands[0].bytes}, cluster_.host_link, rates_)
                            : elementwise();
               },
               [&](const plan::Digest&) {
                 const Seconds fetch = in.device ? transfer_time(e.bytes_read, cluster_.host_link, rates_) : Seconds{0};
                 return plan_.rank == 0 ? fetch + e.bytes_read / kHashRate : fetch;
               },
               [&](const plan::BeginControl&) { return elementwise(); },
               [&](const plan::InspectGradient&) { return elementwise(); },
               [&](const plan::Decide&) { return elementwise(); }, [&](const plan::Absent&) { return Seconds{0}; },
               // What storage takes is not known.
               [&](const plan::Save&) {
                 return in.device ? transfer_time(e.bytes_read, cluster_.host_link, rates_) : Seconds{0};
               }},
      op.action);
}

}  // namespace shard::cost
