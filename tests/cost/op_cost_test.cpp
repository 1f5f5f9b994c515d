// Does every kind of op get its own formula family?
#include "sim/cost/op_cost.h"

#include <gtest/gtest.h>

#include "sim/cost/collective.h"
#include "tests/ir/lists.h"

namespace shard::cost {
namespace {

using plan::Access;
using plan::Op;
using plan::Operand;
using plan::Plan;

cluster::Cluster cluster_of_ops() {
  cluster::Cluster c;
  c.devices_per_host = 4;
  c.peak_fp32 = FlopsPerSecond{100e9};
  c.memory_bandwidth = BytesPerSecond{10e9};
  c.launch = Seconds{1e-6};
  c.host_link = cluster::HostLink{Seconds{10e-6}, BytesPerSecond{1e9}};
  c.intra_host = {Seconds{1e-6}, Seconds{2e-6}, BytesPerSecond{100e9}};
  return c;
}

/// Two buffers of 4 MB in device memory and one in host memory, on two ranks.
Plan two_and_one() {
  Plan p;
  p.topology = {.world_size = 2, .shard_degree = 2};
  for (const Memory memory : {Memory::device, Memory::device, Memory::host}) {
    p.buffers.push_back({.name = "b", .category = Category::workspace, .memory = memory, .bytes = Bytes{4'000'000}});
  }
  return p;
}

Operand operand(std::int32_t buffer, Access access) {
  Operand o;
  o.buffer = BufferId{buffer};
  o.bytes = 4'000'000;
  o.access = access;
  return o;
}

Op op(plan::Action action, std::vector<Operand> operands) {
  Op o;
  o.action = std::move(action);
  o.operands = plan::list(operands);
  return o;
}

double op_microseconds(const Op& o) {
  return cost(two_and_one(), o, cluster_of_ops()).count() * 1e6;
}

TEST(OpCost, ACollectiveCostsItsFullBuffer) {
  plan::Communicate call;
  call.kind = Collective::all_gather;
  call.segments = plan::list<plan::Segment>({{.shard_operand = 0, .full_operand = 1, .elems = Elems{1'000'000}}});
  Operand shard = operand(0, Access::read);
  shard.bytes /= 2;
  // t0 + (n - 1) a + (n - 1) / n S / B = 1 + 2 + 1 / 2 * 40
  EXPECT_DOUBLE_EQ(op_microseconds(op(call, {shard, operand(1, Access::write)})), 23);
}

TEST(OpCost, ACopyInsideAMemoryIsBoundByTheMemoryAndAcrossMemoriesByTheLink) {
  // L + 2 S / m = 1 + 800
  EXPECT_DOUBLE_EQ(op_microseconds(op(plan::Copy{}, {operand(0, Access::read), operand(1, Access::write)})), 801);
  // L + a + S / B = 1 + 10 + 4000
  EXPECT_DOUBLE_EQ(op_microseconds(op(plan::Copy{}, {operand(0, Access::read), operand(2, Access::write)})), 4011);
}

TEST(OpCost, AnAccumulationMovesThreeOperands) {
  // dst is read and written, src read: L + 3 S / m; 1e6 flops at 10e9 a second take 100 us and hide
  EXPECT_DOUBLE_EQ(op_microseconds(op(plan::Accumulate{}, {operand(0, Access::update), operand(1, Access::read)})),
                   1201);
}

TEST(OpCost, AnAbsentOpIsFree) {
  EXPECT_EQ(op_microseconds(op(plan::Absent{}, {})), 0);
}

}  // namespace
}  // namespace shard::cost
