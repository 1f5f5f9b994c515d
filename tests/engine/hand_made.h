// Small plans by hand, on a cluster where copying n bytes takes n seconds.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/compile/compile.h"
#include "sim/ir/plan.h"
#include "tests/ir/lists.h"

namespace shard::engine::test {

/// No overheads; copying n bytes inside a memory takes n seconds; a gather or scatter of n bytes between two ranks n /
/// 2, an all-reduce n.
inline cluster::Cluster slow_cluster() {
  cluster::Cluster c;
  c.name = "slow";
  c.device = cluster::DeviceKind::cpu;
  c.cores = 1;
  c.hosts = 1;
  c.ranks_share_device = true;
  c.devices_per_host = 64;
  c.memory_bandwidth = BytesPerSecond{2};
  c.peak_fp32 = FlopsPerSecond{1e30};
  c.intra_host.bus_bandwidth = BytesPerSecond{1};
  return c;
}

class HandMade {
 public:
  explicit HandMade(std::int32_t world_size = 1) {
    plan.strategy.world_size = world_size;
    plan.topology = plan.strategy.topology();
    scratch_ = buffer("scratch", 0, 1 << 20, Category::workspace);
  }
  BufferId buffer(std::string_view name, std::int64_t offset, std::int64_t bytes, Category category,
                  Memory memory = Memory::device) {
    plan::Buffer b;
    b.name = plan.text(name);
    b.category = category;
    b.memory = memory;
    b.bytes = Bytes{bytes};
    b.offset = offset;
    return plan.add_buffer(b);
  }
  HandMade& phase(Phase phase) {
    plan.phases.push_back({phase, {}});
    return *this;
  }
  /// Copies `seconds` bytes.
  plan::Op& work(Stream stream, std::int64_t seconds, std::vector<OpId> after = {}) {
    plan::Op& op = add(stream, std::move(after), plan::Copy{});
    op.operands = plan::list({operand(seconds, plan::Access::read), operand(seconds, plan::Access::write)});
    return op;
  }
  plan::Op& gather(std::int64_t full_bytes, std::vector<OpId> after = {}, Collective kind = Collective::all_gather) {
    plan::Communicate call;
    call.kind = kind;
    call.unit = UnitId{0};
    call.segments =
        plan::list<plan::Segment>({{.shard_operand = 0, .full_operand = 1, .elems = Elems{full_bytes / 4}}});
    plan::Op& op = add(Stream::communication, std::move(after), call);
    op.operands = plan::list(
        {operand(full_bytes / plan.strategy.world_size, plan::Access::read), operand(full_bytes, plan::Access::write)});
    return op;
  }
  [[nodiscard]] plan::PlanSet set() const {
    plan::PlanSet s;
    s.classes = {plan};
    s.class_of_rank.assign(static_cast<std::size_t>(plan.strategy.world_size), 0);
    s.hash = "00";
    return s;
  }

  plan::Plan plan;

 private:
  plan::Op& add(Stream stream, std::vector<OpId> after, plan::Action action) {
    plan::Op op;
    op.id = OpId{next_++};
    op.name = plan.text("op ", std::to_string(op.id.value));
    op.stream = stream;
    op.dependencies = plan::list(after);
    op.action = std::move(action);
    plan.phases.back().ops.push_back(std::move(op));
    return plan.phases.back().ops.back();
  }
  plan::Operand operand(std::int64_t bytes, plan::Access access) const {
    plan::Operand o;
    o.buffer = scratch_;
    o.bytes = bytes;
    o.access = access;
    return o;
  }
  BufferId scratch_;
  std::int32_t next_ = 0;
};

}  // namespace shard::engine::test
