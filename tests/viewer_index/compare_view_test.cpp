// Do two documents line up where their steps say, and is their difference in memory exact?
#include "viewer/index/compare_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/viewer_index/random_trace.h"
#include "viewer/index/flows.h"
#include "viewer/index/search.h"

namespace shard::view {
namespace {

using testing::Random;

/// Two steps of three ops on one rank, each with a buffer; `slow` times as long, `shift` later.
Trace steps(TraceKind kind, std::int64_t slow, std::int64_t shift, const std::string& hash = "aa") {
  Trace trace;
  trace.header.kind = kind;
  trace.header.plan_hash = hash;
  Track track;
  track.rank = Rank{0};
  trace.tracks.push_back(track);
  trace.names = {"op"};
  for (std::int32_t step = 0; step < 2; ++step) {
    const Phase phase = step == 0 ? Phase::first_step : Phase::steady_step;
    for (std::int32_t op = 0; op < 3; ++op) {
      const std::int64_t begin = shift + slow * (step * 400 + op * 100);
      testing::add_span(trace, {.track = TrackId{0},
                                .begin_ns = begin,
                                .duration_ns = slow * 80,
                                .op = OpId{op},
                                .name = NameId{0},
                                .phase = phase,
                                .step = step,
                                .bytes = op == 1 ? 10 * slow : 5});
      testing::add_event(trace, {.rank = Rank{0},
                                 .buffer = BufferId{op},
                                 .delta_bytes = 100 * (op + 1),
                                 .op = OpId{op},
                                 .time_ns = begin,
                                 .phase = phase,
                                 .step = step});
      testing::add_event(trace, {.rank = Rank{0},
                                 .buffer = BufferId{op},
                                 .delta_bytes = -100 * (op + 1),
                                 .op = OpId{op},
                                 .time_ns = begin + slow * 80,
                                 .phase = phase,
                                 .step = step});
    }
  }
  return trace;
}

TEST(Align, BySteadyStepAndSpeed) {
  const Document a = Document::build(steps(TraceKind::predicted, 1, 0), "a");
  const Document b = Document::build(steps(TraceKind::measured, 3, 5000), "b");
  const Alignment step = align(a, b, AlignMode::step);
  EXPECT_EQ(step.step, 1);
  EXPECT_EQ(step.step_count, 2);
  EXPECT_EQ(step.joined_op_count, 3);
  EXPECT_EQ(step.to_other(400), 5000 + 1200);
  EXPECT_EQ(step.to_other(410), 5000 + 1210);  // the last one has room for its own speed
  EXPECT_EQ(step.to_other(0), 5000);
  EXPECT_EQ(step.to_other(200), 5000 + 600);  // step 0 has not
  const Alignment stretch = align(a, b, AlignMode::stretch);
  EXPECT_DOUBLE_EQ(stretch.scale, 3);
  for (const std::int64_t time : {0, 400, 500, 680}) {
    EXPECT_EQ(stretch.to_other(time), 5000 + 3 * time);
    EXPECT_EQ(stretch.to_first(stretch.to_other(time)), time);
  }
  EXPECT_EQ(stretch.text(), "2 steps, op on op; step 1 on step 1, 3 times as long");
  EXPECT_EQ(align(a, b, AlignMode::clock).to_other(17), 17);
}

TEST(Align, AStepThatIsDoneSoonerRestsUntilTheNext) {
  const Document a = Document::build(steps(TraceKind::predicted, 4, 0), "a");
  const Document b = Document::build(steps(TraceKind::measured, 1, 900), "b");
  const Alignment step = align(a, b, AlignMode::step);
  EXPECT_EQ(step.to_other(100), 900 + 100);
  EXPECT_EQ(step.to_other(1000), 900 + 400);  // where its next step begins
  EXPECT_EQ(step.to_other(1600), 900 + 400);
  EXPECT_EQ(step.to_other(1650), 900 + 450);
  EXPECT_EQ(step.to_first(900 + 400), 1600);
  // Columns keep together what is drawn in them.
  const PixelRange view = step.to_other(PixelRange{{0, 3200}, 32, nullptr});
  for (std::int32_t column = 0; column < 32; ++column) {
    EXPECT_EQ(view.begin(column), step.to_other(100 * column));
    EXPECT_GE(view.begin(column), view.begin(std::max(column - 1, 0)));
  }
  EXPECT_EQ(view.column_of(900 + 399), 3);
  EXPECT_EQ(view.column_of(900 + 450), 16);
}

TEST(Align, EveryOpBeginsWithItsCounterpartAndLatenessBeginsAnewWithEveryStep) {
  Trace slow = steps(TraceKind::measured, 1, 5000);
  for (std::size_t i = 0; i < slow.spans.size(); ++i)  // the middle op of each step is late by 7
    if (slow.spans.op[i] == OpId{1}) slow.spans.begin_ns[i] += 7;
  const Document a = Document::build(steps(TraceKind::predicted, 1, 0), "a");
  const Document b = Document::build(std::move(slow), "b");
  const Alignment stretch = align(a, b, AlignMode::stretch);
  for (const std::int64_t step : {0, 400}) {
    EXPECT_EQ(stretch.to_other(step), 5000 + step);
    EXPECT_EQ(stretch.to_other(step + 100), 5000 + step + 107);
    EXPECT_EQ(stretch.to_other(step + 200), 5000 + step + 200);
  }
  const StepCurve late = lateness(stretch);
  EXPECT_EQ(late.at(399), 0);
  EXPECT_EQ(late.at(500), 7);
  EXPECT_EQ(late.at(600), 0);
}

TEST(Compare, ResidualsAreOtherMinusFirstAndLeadToTheirSpans) {
  const Document predicted = Document::build(steps(TraceKind::predicted, 1, 0), "predicted");
  const Document measured = Document::build(steps(TraceKind::measured, 2, 0), "measured");
  for (const bool swapped : {false, true}) {
    const Document &first = swapped ? measured : predicted, &other = swapped ? predicted : measured;
    const Result<CompareView> view = compare_documents(first, other);
    ASSERT_TRUE(view) << to_string(view.error());
    EXPECT_EQ(view->swapped, swapped);
    ASSERT_EQ(view->by_time.size(), 6u);
    for (const Residual& row : view->by_time) {
      EXPECT_NEAR(row.seconds, swapped ? -80e-9 : 80e-9, 1e-15);
      ASSERT_TRUE(row.first_span && row.other_span);
      EXPECT_EQ(first.trace().spans.op[*row.first_span], row.op.op);
      EXPECT_EQ(other.trace().spans.op[*row.other_span], row.op.op);
      EXPECT_EQ(other.trace().spans.phase[*row.other_span], row.op.phase);
    }
    ASSERT_EQ(view->by_bytes.size(), 2u);
    for (const Residual& row : view->by_bytes) {
      EXPECT_EQ(row.op.op, OpId{1});
      EXPECT_EQ(row.bytes, swapped ? -10 : 10);
    }
  }
}

TEST(Compare, RefusesOtherPlansWithTheReason) {
  const Document a = Document::build(steps(TraceKind::predicted, 1, 0, "aa"), "a.sst");
  const Document b = Document::build(steps(TraceKind::measured, 1, 0, "bb"), "b.sst");
  const Result<CompareView> refused = compare_documents(a, b);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::contradiction);
  EXPECT_FALSE(refused.error().what.empty());
  EXPECT_TRUE(compare_documents(a, b, true));
}

TEST(MemoryDifference, OfATraceWithItselfIsZeroEverywhere) {
  Random random(1);
  const Document document = Document::build(testing::random_trace(random, {.memory_events = 500}), "d");
  const MemorySeries* series = document.highest_memory();
  const StepCurve difference = memory_difference_by_time(series, series, align(document, document, AlignMode::stretch));
  ASSERT_EQ(difference.size(), 500u);
  for (const double value : difference.values()) EXPECT_EQ(value, 0);
}

TEST(MemoryDifference, EqualsTheDifferenceOfBothCurves) {
  Random random(2);
  const Document a = Document::build(testing::random_trace(random, {.memory_events = 300}), "a");
  const Document b = Document::build(testing::random_trace(random, {.memory_events = 300}), "b");
  Alignment alignment;
  alignment.knots = {{100, 170}};
  const MemorySeries *x = a.highest_memory(), *y = b.highest_memory();
  const StepCurve difference = memory_difference_by_time(x, y, alignment);
  EXPECT_TRUE(std::is_sorted(difference.times_ns().begin(), difference.times_ns().end()));
  for (std::int64_t time = -200; time < 6000; ++time) {
    const double expected = static_cast<double>(y->bytes_at(y->moment_at(time + 70)) - x->bytes_at(x->moment_at(time)));
    ASSERT_EQ(difference.at(time).value_or(0), expected) << time;
  }
  EXPECT_EQ(memory_difference_by_time(x, nullptr, alignment).size(), 0u);
}

TEST(MemoryDifference, OfOnePlanIsZeroAtEveryOpWhateverItsTimes) {
  const Document a = Document::build(steps(TraceKind::predicted, 1, 0), "a");
  const Document b = Document::build(steps(TraceKind::measured, 3, 5000), "b");
  const MemoryDifference difference =
      memory_difference(a, a.highest_memory(), b, b.highest_memory(), align(a, b, AlignMode::clock));
  ASSERT_TRUE(difference.by_op);
  EXPECT_TRUE(difference.by_op->equal());
  EXPECT_EQ(difference.curve.size(), a.trace().memory.size());
  for (const double value : difference.curve.values()) EXPECT_EQ(value, 0);
}

TEST(MemoryDifference, FallsBackToTimeWhereNoOpIsShared) {
  Trace foreign = steps(TraceKind::measured, 1, 0, "");
  for (OpId& op : foreign.memory.op) op = OpId{};
  const Document a = Document::build(steps(TraceKind::predicted, 1, 0), "a");
  const Document b = Document::build(std::move(foreign), "b");
  const MemoryDifference difference =
      memory_difference(a, a.highest_memory(), b, b.highest_memory(), align(a, b, AlignMode::clock));
  EXPECT_FALSE(difference.by_op);
  EXPECT_GT(difference.curve.size(), 0u);
}

TEST(Counterpart, PrefersTheSameStep) {
  const Document a = Document::build(steps(TraceKind::predicted, 1, 0), "a");
  const Document b = Document::build(steps(TraceKind::measured, 2, 50), "b");
  for (std::uint32_t span = 0; span < 6; ++span) EXPECT_EQ(counterpart(a, span, b), span);
}

/// A gather, its user, a gradient's maker, reduction, step and the next gather of unit 3.
struct Chain {
  Trace trace;
  Chain() {
    for (const Stream stream : {Stream::compute, Stream::communication}) {
      Track track;
      track.rank = Rank{0};
      track.stream = stream;
      trace.tracks.push_back(track);
    }
    trace.names = {"gather u", "forward", "backward", "reduce u", "step u", "gather u"};
    const int on[]{1, 0, 0, 1, 0, 1};
    for (std::int32_t i = 0; i < 6; ++i) {
      testing::add_span(trace, {.track = TrackId{on[i]},
                                .begin_ns = 100 * i,
                                .duration_ns = 50,
                                .op = OpId{i},
                                .name = NameId{i},
                                .unit = on[i] == 1 ? UnitId{3} : UnitId{}});
    }
    const auto buffer = [&](int id, Category category, int from, int to) {
      testing::add_event(trace, {.rank = Rank{0},
                                 .buffer = BufferId{id},
                                 .delta_bytes = 8,
                                 .category = category,
                                 .op = OpId{from},
                                 .time_ns = 100 * from,
                                 .unit = UnitId{3}});
      testing::add_event(trace, {.rank = Rank{0},
                                 .buffer = BufferId{id},
                                 .delta_bytes = -8,
                                 .category = category,
                                 .op = OpId{to},
                                 .time_ns = 100 * to + 50,
                                 .unit = UnitId{3}});
    };
    buffer(1, Category::gathered, 0, 1);
    buffer(2, Category::gradient, 2, 3);
    buffer(3, Category::gradient, 3, 4);
    buffer(4, Category::activation, 1, 2);
  }
};

TEST(Flows, FollowTheBuffersOfUnits) {
  Chain chain;
  const FlowIndex flows(Document::build(std::move(chain.trace), "chain"));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links;
  for (const FlowLink& link : flows.links()) links.emplace_back(link.from, link.to);
  EXPECT_EQ(links, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 1}, {2, 3}, {3, 4}, {4, 5}}));
  ASSERT_EQ(flows.from(3).size(), 1u);
  EXPECT_EQ(flows.from(3)[0].to, 4u);
  ASSERT_EQ(flows.to(3).size(), 1u);
  EXPECT_EQ(flows.to(3)[0].from, 2u);
  EXPECT_TRUE(flows.from(3)[0].derived);
}

TEST(Flows, OfTheFileComeFirst) {
  Chain chain;
  // The second begins where the span before it ends: the covering span is meant, else the one that ends there.
  chain.trace.flows = {{TrackId{1}, 20, TrackId{0}, 100, FlowKind::launch},
                       {TrackId{0}, 150, TrackId{1}, 349, FlowKind::communication},
                       {TrackId{0}, 160, TrackId{1}, 349, FlowKind::dependency}};
  const FlowIndex flows(Document::build(std::move(chain.trace), "chain"));
  EXPECT_EQ(flows.links(),
            (std::vector<FlowLink>{{0, 1, FlowKind::launch, false}, {1, 3, FlowKind::communication, false}}));
}

}  // namespace
}  // namespace shard::view
