// Is the ledger of a hand-made plan the one that a person would write, at the right times?
#include "sim/engine/engine.h"

#include <gtest/gtest.h>

#include "hand_made.h"

namespace shard::engine {
namespace {

using test::HandMade;
using test::slow_cluster;

PhaseRun run_one(const plan::Plan& plan) {
  const cluster::Cluster cluster = slow_cluster();
  Engine engine(plan, cluster);
  const Result<void> r = plan::run(plan.phases.front(), engine);
  EXPECT_TRUE(r) << (r ? "" : to_string(r.error()));
  return engine.take();
}

CategoryBytes bytes_of(std::initializer_list<std::pair<Category, std::int64_t>> list) {
  CategoryBytes bytes{};
  for (const auto& [category, count] : list) bytes[static_cast<std::size_t>(category)] = Bytes{count};
  return bytes;
}

TEST(Engine, LedgerOfThreeBuffersByHand) {
  HandMade h;
  const BufferId a = h.buffer("a", 0, 100, Category::parameter);    // takes 128
  const BufferId b = h.buffer("b", 128, 64, Category::activation);  // up to 192
  const BufferId c = h.buffer("c", 640, 10, Category::workspace);   // up to 704, a hole below it
  const BufferId host = h.buffer("host", 0, 1000, Category::input, Memory::host);
  h.phase(Phase::creation);
  h.work(Stream::compute, 1).acquire = plan::list({a, host});
  plan::Op& second = h.work(Stream::compute, 1);
  second.acquire = plan::list({b});
  h.work(Stream::compute, 1).acquire = plan::list({c});
  h.work(Stream::compute, 1).release = plan::list({b});
  const PhaseRun run = run_one(h.plan);
  const ArenaRun& device = run.arenas[0];
  EXPECT_EQ(device.extent, Bytes{704});
  EXPECT_EQ(device.live_peak, Bytes{128 + 64 + 64});
  EXPECT_EQ(device.live_end, Bytes{128 + 64});
  EXPECT_EQ(device.peak_by_category,
            bytes_of({{Category::parameter, 128}, {Category::activation, 64}, {Category::workspace, 64}}));
  EXPECT_EQ(device.end_by_category, bytes_of({{Category::parameter, 128}, {Category::workspace, 64}}));
  EXPECT_EQ(run.arenas[1].extent, Bytes{1024});
  EXPECT_EQ(run.arenas[2].extent, Bytes{0});
}

TEST(Engine, WhatAPhaseLeavesTheNextOneFinds) {
  HandMade h;
  const BufferId kept = h.buffer("kept", 0, 64, Category::parameter);
  const BufferId passing = h.buffer("passing", 64, 64, Category::activation);
  h.phase(Phase::creation);
  plan::Op& create = h.work(Stream::compute, 1);
  create.acquire = plan::list({kept, passing});
  create.release = plan::list({passing});
  h.phase(Phase::first_step);
  h.work(Stream::compute, 1);
  const cluster::Cluster cluster = slow_cluster();
  Engine engine(h.plan, cluster);
  ASSERT_TRUE(plan::run(h.plan.phases[0], engine));
  EXPECT_EQ(engine.take().arenas[0].extent, Bytes{128});
  ASSERT_TRUE(plan::run(h.plan.phases[1], engine));
  const PhaseRun second = engine.take();
  EXPECT_EQ(second.arenas[0].extent, Bytes{64});
  EXPECT_EQ(second.arenas[0].live_begin, Bytes{64});
  EXPECT_EQ(second.arenas[0].resident, std::vector<BufferId>{kept});
  EXPECT_EQ(second.interval.begin, Seconds{1});
}

TEST(Engine, MemoryIsTakenWhenAnOpBeginsAndGivenBackWhenItEndsInPlanOrder) {
  HandMade h(2);
  const BufferId a = h.buffer("a", 0, 64, Category::gathered);
  const BufferId b = h.buffer("b", 64, 64, Category::activation);
  const BufferId c = h.buffer("c", 128, 64, Category::activation);
  h.phase(Phase::steady_step);
  h.gather(20).acquire = plan::list({a});          // 0 .. 10
  plan::Op& compute = h.work(Stream::compute, 4);  // 0 .. 4
  compute.acquire = plan::list({b});
  h.work(Stream::compute, 2, {OpId{0}}).release = plan::list({a});  // waits: 10 .. 12
  h.work(Stream::optimizer, 1).acquire = plan::list({c});           // 0 .. 1, but after the release in plan order
  const PhaseRun run = run_one(h.plan);
  ASSERT_EQ(run.ops.size(), 4u);
  EXPECT_EQ(run.ops[2].interval.begin, Seconds{10});
  EXPECT_EQ(run.ops[3].interval.begin, Seconds{0});
  EXPECT_EQ(run.interval.end, Seconds{12});
  ASSERT_EQ(run.changes.size(), 4u);
  EXPECT_EQ(run.changes[0].time, Seconds{0});
  EXPECT_EQ(run.changes[1].time, Seconds{0});
  EXPECT_EQ(run.changes[2].time, Seconds{12});
  EXPECT_EQ(run.changes[3].time, Seconds{12});
  EXPECT_EQ(run.arenas[0].live_peak, Bytes{128});
}

TEST(Engine, CollectivesAreCountedByKind) {
  HandMade h(2);
  h.phase(Phase::steady_step);
  h.gather(64);
  h.gather(128);
  h.gather(256, {}, Collective::all_reduce);
  const PhaseRun run = run_one(h.plan);
  EXPECT_EQ(run.collectives[static_cast<std::size_t>(Collective::all_gather)], (CollectiveCount{2, Bytes{192}}));
  EXPECT_EQ(run.collectives[static_cast<std::size_t>(Collective::all_reduce)], (CollectiveCount{1, Bytes{256}}));
  EXPECT_EQ(run.interval.end, Seconds{32 + 64 + 256});
}

TEST(Engine, APlanThatContradictsItselfIsNamed) {
  for (const int fault : {0, 1, 2, 3}) {
    HandMade h;
    const BufferId a = h.buffer("a", 0, 64, Category::parameter);
    const BufferId over = h.buffer("over", 0, 64, Category::parameter);
    const BufferId unplaced = h.buffer("unplaced", -1, 64, Category::parameter);
    h.phase(Phase::creation);
    plan::Op& op = h.work(Stream::compute, 1);
    if (fault == 0) op.acquire = plan::list({a, over});
    if (fault == 1) op.acquire = plan::list({unplaced});
    if (fault == 2) op.acquire = plan::list({a, a});
    if (fault == 3) op.release = plan::list({a});
    const cluster::Cluster cluster = slow_cluster();
    Engine engine(h.plan, cluster);
    const Result<void> r = plan::run(h.plan.phases.front(), engine);
    ASSERT_FALSE(r) << fault;
    EXPECT_EQ(r.error().code, Errc::internal);
    EXPECT_NE(r.error().where.find("op 0"), std::string::npos) << r.error().where;
  }
}

}  // namespace
}  // namespace shard::engine
