// Does what an interpreter does come out as the events that the plan promises?
#include "sim/record/recorder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <variant>

#include "sim/ir/effects.h"
#include "sim/record/header.h"
#include "tests/compile/support.h"
#include "traces/reader.h"

namespace shard::record {
namespace {

/// Everything that rank 0 does in one steady step, an op a microsecond.
Trace recorded(const plan::PlanSet& plans) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "recorder_test.sst";
  Result<Writer> writer = Writer::create(path, header_of(plans));
  EXPECT_TRUE(writer);
  const plan::Plan& plan = plans.of_rank(0);
  Recorder recorder(plan, Rank{0}, *writer);
  recorder.begin(Phase::steady_step, 1);
  std::int64_t now = 0;
  for (const plan::Op& op : plan.find(Phase::steady_step)->ops) {
    for (const BufferId buffer : op.acquire) recorder.acquired(op, buffer, now);
    recorder.op(op, {.begin_ns = now, .end_ns = now + 1000});
    now += 1000;
    for (const BufferId buffer : op.release) recorder.released(op, buffer, now);
  }
  EXPECT_TRUE(writer->close());
  Result<Trace> trace = load(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(trace);
  return std::move(*trace);
}

plan::PlanSet sharded() {
  return plan::compiled(plan::small_gpt2(), {.world_size = 2, .stage = 3, .global_batch = 4, .sequence = 8});
}

TEST(Recorder, EveryOpIsASpanWithItsNamePartAndUnit) {
  const plan::PlanSet plans = sharded();
  const Trace trace = recorded(plans);
  std::map<std::int32_t, Span> spans;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) spans[trace.spans.op[i].value] = trace.spans[i];
  const auto& ops = plans.of_rank(0).find(Phase::steady_step)->ops;
  ASSERT_EQ(spans.size(), ops.size());
  int collectives = 0;
  for (const plan::Op& op : ops) {
    const Span& span = spans.at(op.id.value);
    EXPECT_EQ(trace.name_of(span.name), op.name);
    EXPECT_EQ(trace.track_of(span.track).stream, op.stream);
    EXPECT_EQ(span.part, op.part);
    EXPECT_EQ(span.micro_step, op.micro_step);
    EXPECT_EQ(span.step, 1);
    const auto* call = std::get_if<plan::Communicate>(&op.action);
    if (call == nullptr) continue;
    EXPECT_EQ(span.bytes, effects(plans.of_rank(0), op).sends->bytes.count());
    if (span.part != Part::gather && span.part != Part::reduce) continue;
    ++collectives;
    ASSERT_TRUE(span.unit.valid()) << op.name;
    ASSERT_LT(static_cast<std::size_t>(span.unit.value), trace.header.units.size());
    EXPECT_EQ(span.bytes, trace.header.units[static_cast<std::size_t>(span.unit.value)].bytes) << op.name;
  }
  EXPECT_GT(collectives, 10);
}

TEST(Recorder, AnOpWhosePartsAreRecordedIsAStretch) {
  const plan::PlanSet plans = sharded();
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "recorder_parts_test.sst";
  Result<Writer> writer = Writer::create(path, header_of(plans));
  ASSERT_TRUE(writer);
  Recorder recorder(plans.of_rank(0), Rank{0}, *writer);
  for (const plan::Op& op : plans.of_rank(0).find(Phase::steady_step)->ops)
    recorder.op(op, {.begin_ns = 0, .end_ns = 1, .has_parts = true});
  ASSERT_TRUE(writer->close());
  const Trace trace = load(path).value();
  std::filesystem::remove(path);
  ASSERT_FALSE(trace.spans.empty());
  for (const Activity activity : trace.spans.activity) EXPECT_EQ(activity, Activity::mark);
}

TEST(Recorder, AGatheredUnitRestsAgainWhenItsBytesAreGivenBack) {
  const Trace trace = recorded(sharded());
  std::map<std::int32_t, UnitState> last;
  std::map<UnitState, int> entered;
  for (const ChunkState& state : trace.chunk_states) {
    last[state.unit.value] = state.state;
    ++entered[state.state];
  }
  EXPECT_EQ(last.size(), trace.header.units.size());
  for (const auto& [unit, state] : last) EXPECT_EQ(state, UnitState::sharded) << unit;
  EXPECT_GT(entered[UnitState::gathering], 0);
  EXPECT_EQ(entered[UnitState::gathering], entered[UnitState::gathered]);
  EXPECT_GT(entered[UnitState::reducing], 0);
}

TEST(Recorder, WhatIsTakenAndGivenBackInAStepCancels) {
  const plan::PlanSet plans = sharded();
  const Trace trace = recorded(plans);
  std::map<std::int32_t, std::int64_t> live;
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    const MemoryEvent event = trace.memory[i];
    const plan::Buffer& buffer = plans.of_rank(0).buffer(event.buffer);
    EXPECT_EQ(event.category, buffer.category);
    EXPECT_EQ(event.offset_bytes, buffer.offset);
    EXPECT_EQ(event.unit, buffer.unit);
    live[event.buffer.value] += event.delta_bytes;
  }
  EXPECT_FALSE(live.empty());
  for (const auto& [buffer, bytes] : live) EXPECT_EQ(bytes, 0) << plans.of_rank(0).buffer(BufferId{buffer}).name;
}

}  // namespace
}  // namespace shard::record
