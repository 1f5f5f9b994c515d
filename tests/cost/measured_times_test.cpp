// Does a run get the laws of the ranks and threads that are nearest to its own, and as much slower as ranks take turns?
#include "sim/cost/measured_times.h"

#include <gtest/gtest.h>

#include "sim/cost/op_cost.h"
#include "tests/ir/lists.h"

namespace shard::cost {
namespace {

using cluster::OpLaw;

TEST(Law, HasTermsForCallsFlopsWeightsAndBytes) {
  const OpLaw law{.kind = "copy", .call_seconds = 1, .flop_seconds = 2, .weight_byte_seconds = 3, .byte_seconds = 4};
  EXPECT_EQ(law_time(law, {.flops = 10, .weight_bytes = 100, .bytes = 1000}), Seconds{1 + 20 + 300 + 4000});
}

TEST(Law, CorrectionsAreInterpolatedByRatioAndGoOnBeyondTheEnds) {
  const OpLaw law{.kind = "copy", .call_seconds = 1, .corrections = {{100, 1}, {10'000, 4}}};
  const auto at = [&](double bytes) { return law_time(law, {.bytes = bytes}).count(); };
  EXPECT_DOUBLE_EQ(at(10), 1);
  EXPECT_DOUBLE_EQ(at(100), 1);
  EXPECT_DOUBLE_EQ(at(1000), 2);  // half of the way from 100 to 10,000, and from 1 to 4
  EXPECT_DOUBLE_EQ(at(10'000), 4);
  EXPECT_DOUBLE_EQ(at(1e9), 4);
}

/// Two cores. A copy takes 1 s alone, 3 s beside another rank, 0.75 s with two threads.
cluster::Cluster machine() {
  cluster::Cluster c;
  c.device = cluster::DeviceKind::cpu;
  c.hosts = 1;
  c.ranks_share_device = true;
  c.cores = 2;
  c.peak_fp32 = FlopsPerSecond{1};
  c.memory_bandwidth = BytesPerSecond{1};
  c.intra_host = {Seconds{0}, Seconds{0}, BytesPerSecond{1}};
  const auto copies = [](double seconds) {
    return std::vector<OpLaw>{{.kind = "copy", .call_seconds = seconds},
                              {.kind = "copy", .dtype = Dtype::bf16, .call_seconds = seconds / 2},
                              {.kind = "all_gather", .call_seconds = seconds}};
  };
  c.measured = cluster::Measured{.method = {},
                                 .occupancies = {{.ranks = 1, .threads = 1, .laws = copies(1)},
                                                 {.ranks = 2,
                                                  .threads = 1,
                                                  .between_seconds = 0.25,
                                                  .meeting_seconds = 1,
                                                  .waiting_share = 0.5,
                                                  .laws = copies(3)},
                                                 {.ranks = 1, .threads = 2, .laws = copies(0.75)}}};
  return c;
}

plan::Plan plan_of(std::int32_t ranks, std::int32_t threads, Dtype storage = Dtype::f32) {
  plan::Plan p;
  p.topology = {.world_size = ranks, .shard_degree = ranks};
  p.target.threads = threads;
  p.target.storage = storage;
  p.buffers.assign(2, {.name = "b", .category = Category::workspace, .bytes = Bytes{64}});
  return p;
}

plan::Op op_of(plan::Action action) {
  plan::Op op;
  op.action = std::move(action);
  plan::Operand a{.buffer = BufferId{0}, .bytes = 64};
  plan::Operand b{.buffer = BufferId{1}, .bytes = 64, .access = plan::Access::write};
  op.operands = plan::list<plan::Operand>({a, b});
  return op;
}

double seconds(const plan::Plan& plan, const plan::Op& op) {
  return cost(plan, op, machine()).count();
}

TEST(MeasuredTimes, TheNearestOccupancyCounts) {
  const plan::Op copy = op_of(plan::Copy{});
  EXPECT_DOUBLE_EQ(seconds(plan_of(1, 1), copy), 1);
  EXPECT_DOUBLE_EQ(seconds(plan_of(2, 1), copy), 3 * 1.5 + 0.25);
  EXPECT_DOUBLE_EQ(seconds(plan_of(1, 2), copy), 0.75);
}

TEST(MeasuredTimes, RanksBeyondTheCoresTakeTurns) {
  const plan::Op copy = op_of(plan::Copy{});
  EXPECT_DOUBLE_EQ(seconds(plan_of(4, 1), copy), 2 * (3 * 1.5 + 0.25));
  EXPECT_DOUBLE_EQ(seconds(plan_of(2, 2), copy), 2 * 0.75);
}

TEST(MeasuredTimes, ACollectiveIsMetFirst) {
  plan::Communicate call;
  call.kind = Collective::all_gather;
  call.segments = plan::list<plan::Segment>({{.shard_operand = 0, .full_operand = 1, .elems = Elems{16}}});
  EXPECT_DOUBLE_EQ(seconds(plan_of(2, 1), op_of(call)), 3 * 1.5 + 0.25 + 1);
}

TEST(MeasuredTimes, ALawOfTheRunsOwnTypeComesFirst) {
  const plan::Op copy = op_of(plan::Copy{});
  EXPECT_DOUBLE_EQ(seconds(plan_of(1, 1, Dtype::bf16), copy), 0.5);
  EXPECT_DOUBLE_EQ(seconds(plan_of(1, 1, Dtype::f16), copy), 0.5);  // the other of 16 bits stands in
}

TEST(MeasuredTimes, APlanForAnotherKindOfDeviceHasNoLaws) {
  plan::Plan plan = plan_of(1, 1);
  plan.target.device = plan::Device::cuda;
  EXPECT_DOUBLE_EQ(seconds(plan, op_of(plan::Copy{})), 128);
}

/// The same figures of a GPU: two ranks that share it take 3 s.
cluster::Cluster gpu() {
  cluster::Cluster c = machine();
  c.device = cluster::DeviceKind::cuda;
  c.cores = 0;
  c.host_link = cluster::HostLink{Seconds{0}, BytesPerSecond{1}};
  return c;
}

plan::Plan gpu_plan(std::int32_t ranks) {
  plan::Plan p = plan_of(ranks, 1);
  p.target.device = plan::Device::cuda;
  p.buffers[1].memory = Memory::host;
  return p;
}

TEST(MeasuredTimesOfAGpu, AreOfTheRanksThatShareIt) {
  const plan::Op copy = op_of(plan::Copy{});
  EXPECT_DOUBLE_EQ(cost(gpu_plan(1), copy, gpu()).count(), 1);
  EXPECT_DOUBLE_EQ(cost(gpu_plan(2), copy, gpu()).count(), 3 * 1.5 + 0.25);
  EXPECT_DOUBLE_EQ(cost(gpu_plan(4), copy, gpu()).count(), 2 * (3 * 1.5 + 0.25));
  plan::Plan on_cpu = gpu_plan(1);
  on_cpu.target.device = plan::Device::cpu;
  EXPECT_DOUBLE_EQ(cost(on_cpu, copy, gpu()).count(), 64);  // over the link
}

TEST(MeasuredTimesOfAGpu, HoldForCopiesToAndFromTheHostAlone) {
  plan::Plan plan = gpu_plan(1);
  EXPECT_TRUE(obeys_law(plan, op_of(plan::Copy{})));
  EXPECT_TRUE(obeys_law(plan, op_of(plan::Accumulate{})));
  plan.buffers[1].memory = Memory::device;
  EXPECT_FALSE(obeys_law(plan, op_of(plan::Copy{})));
  EXPECT_DOUBLE_EQ(cost(plan, op_of(plan::Copy{}), gpu()).count(), 128);
  plan.buffers[0].memory = plan.buffers[1].memory = Memory::host;
  EXPECT_FALSE(obeys_law(plan, op_of(plan::Accumulate{})));
}

TEST(MeasuredTimesOfAGpu, AreNotThoseOfProductsThatMayRound) {
  plan::Plan plan = gpu_plan(1);
  plan::Compute product;
  product.kind = model::OperatorKind::linear;
  EXPECT_TRUE(obeys_law(plan, op_of(product)));
  plan.target.tensor_float = true;
  EXPECT_FALSE(obeys_law(plan, op_of(product)));
  EXPECT_TRUE(obeys_law(plan, op_of(plan::Copy{})));
}

TEST(MeasuredTimes, WhatHasNoLawIsPricedByTheGeneralFigures) {
  // 128 bytes at half of a byte a second: two ranks share the memory
  EXPECT_DOUBLE_EQ(seconds(plan_of(2, 1), op_of(plan::ZeroState{})), 256);
}

}  // namespace
}  // namespace shard::cost
