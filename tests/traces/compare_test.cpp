// Does compare find every planted difference, and none where there is none?
#include "traces/compare.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/traces/sample_trace.h"

namespace shard {
namespace {

using sample::TempFile;

/// What a test may change about the standard run: two ranks, a first step and `steps` steady ones, two ops each.
struct Scenario {
  TraceKind kind = TraceKind::predicted;
  std::string plan_hash = "aaaa";
  std::string parent_plan_hash{};
  int steady_steps = 1;
  bool save_phase = false;
  bool parts = false;  ///< ops are stretches, with two kernels of 700 ns each as the device recorded them
  std::function<void(Span&)> span = [](Span&) {};
  std::function<bool(MemoryEvent&)> memory = [](MemoryEvent&) { return true; };
  std::function<bool(ArenaSummary&)> arena = [](ArenaSummary&) { return true; };
  std::function<bool(CollectiveTotal&)> collective = [](CollectiveTotal&) { return true; };
};

Trace make(const Scenario& run) {
  const TempFile file;
  Header header;
  header.kind = run.kind;
  header.world_size = 2;
  header.plan_hash = run.plan_hash;
  header.parent_plan_hash = run.parent_plan_hash;
  Result<Writer> writer = Writer::create(file.path(), header);
  EXPECT_TRUE(writer);
  for (int rank = 0; rank < 2; ++rank) {
    const auto arena = [&](Phase phase, std::int64_t peak) {
      ArenaSummary row{Rank{rank}, Memory::device, phase, peak, peak - 100, 4096};
      if (run.arena(row)) writer->add(row);
    };
    arena(Phase::first_step, 1000);
    arena(Phase::steady_step, 2000);
    if (run.save_phase) arena(Phase::save, 3000);
    CollectiveTotal total{Rank{rank}, Collective::all_gather, 1 + run.steady_steps, 512};
    total.count = 7;
    if (run.collective(total)) writer->add(total);
    const TrackId compute = writer->track({.rank = Rank{rank}});
    const TrackId network = writer->track({.rank = Rank{rank}, .stream = Stream::communication});
    for (int step = 0; step <= run.steady_steps; ++step) {
      const Phase phase = step == 0 ? Phase::first_step : Phase::steady_step;
      const std::int64_t t = step * 10'000;
      Span matmul{compute, t, 4000, OpId{1}, writer->name("matmul"), phase, step, 0, 0, UnitId{}};
      Span gather{network, t + 1000, 2000, OpId{2}, writer->name("gather"), phase, step, 0, 256, UnitId{0}};
      if (run.parts) {
        const TrackId device = writer->track({.rank = Rank{rank}, .name = "GPU 0 stream 7"});
        for (const Span& op : {matmul, gather})
          for (const std::int64_t after : {100, 900}) {
            Span part = op;
            part.track = device;
            part.begin_ns += after;
            part.duration_ns = 700;
            part.activity = Activity::kernel;
            writer->add(part);
          }
        matmul.activity = gather.activity = Activity::mark;
      }
      run.span(matmul);
      run.span(gather);
      writer->add(matmul);
      writer->add(gather);
      for (const int sign : {1, -1}) {
        MemoryEvent event{Rank{rank}, Memory::device,        BufferId{3}, 64,   sign * 500, Category::activation,
                          OpId{1},    t + (sign < 0) * 1000, phase,       step, UnitId{}};
        if (run.memory(event)) writer->add(event);
      }
    }
  }
  EXPECT_TRUE(writer->close());
  Result<Trace> trace = load(file.path());
  EXPECT_TRUE(trace);
  return *trace;
}

Scenario measured() {
  Scenario run;
  run.kind = TraceKind::measured;
  return run;
}

Comparison compared(const Scenario& a, const Scenario& b, const CompareOptions& options = {}) {
  const Result<Comparison> result = compare_traces(make(a), make(b), options);
  EXPECT_TRUE(result) << to_string(result.error());
  return *result;
}

TEST(Compare, EqualRunsAreEqual) {
  const Comparison result = compared({}, measured());
  EXPECT_TRUE(result.equal());
  EXPECT_EQ(result.label, (Pair<std::string>{"predicted", "measured"}));
  EXPECT_EQ(result.joined_op_count, 8);  // 2 ranks x 2 phases x 2 ops
  EXPECT_EQ(result.unmatched_op_count, (Pair<std::int64_t>{0, 0}));
  EXPECT_EQ(result.unequal_op_bytes_count, 0);
  EXPECT_EQ(result.step_seconds, (Pair<double>{4e-6, 4e-6}));
}

TEST(Compare, PutsThePredictionFirst) {
  Scenario slow = measured();
  slow.span = [](Span& span) { span.duration_ns *= 2; };
  for (const Comparison& result : {compared({}, slow), compared(slow, {})}) {
    EXPECT_EQ(result.label.first, "predicted");
    EXPECT_EQ(result.step_seconds, (Pair<double>{4e-6, 8e-6}));
    EXPECT_TRUE(result.equal());  // time is only reported
  }
}

TEST(Compare, TwoTracesOfOneKindAreAAndB) {
  EXPECT_EQ(compared({}, {}).label, (Pair<std::string>{"a", "b"}));
  EXPECT_TRUE(to_json(compared({}, {})).contains("b_step_seconds"));
}

TEST(Compare, ManySteadyStepsAreAveraged) {
  Scenario run = measured();
  run.steady_steps = 5;
  run.span = [](Span& span) {
    if (span.step == 3 && span.op == OpId{1}) span.duration_ns += 5000;
  };
  const Comparison result = compared({}, run);
  EXPECT_EQ(result.unequal_op_bytes_count, 0);
  ASSERT_FALSE(result.ops.empty());
  EXPECT_EQ(result.ops[0].op, OpId{1});
  EXPECT_EQ(result.ops[0].steps, (Pair<std::int64_t>{1, 5}));
  EXPECT_NEAR(result.ops[0].seconds.second, 5e-6, 1e-15);
  EXPECT_NEAR(result.names[0].seconds.second, 10e-6, 1e-15);  // two ranks
  EXPECT_EQ(result.names[0].key, "matmul");
}

// A rank that comes late makes the others wait; their transfer is still what was predicted.
TEST(Compare, WaitingIsApartFromTheTransfer) {
  Scenario run = measured();
  run.span = [](Span& span) {
    if (span.op != OpId{2}) return;
    span.duration_ns += 7000;
    span.waiting_ns = 7000;
  };
  const Comparison result = compared({}, run);
  ASSERT_EQ(result.streams.size(), 4u);  // two streams, two phases
  for (const GroupComparison& group : result.streams) {
    EXPECT_DOUBLE_EQ(group.seconds.second, group.seconds.first) << group.key;
    EXPECT_EQ(group.waiting_seconds.first, 0);
    EXPECT_DOUBLE_EQ(group.waiting_seconds.second, group.key == "communication" ? 2 * 7e-6 : 0);  // two ranks
  }
  for (const OpComparison& op : result.ops) EXPECT_DOUBLE_EQ(op.waiting_seconds.second, op.op == OpId{2} ? 7e-6 : 0);
  EXPECT_NE(to_text(result).find("measured waiting"), std::string::npos);
  EXPECT_EQ(to_text(compared({}, measured())).find("waiting"), std::string::npos);
  EXPECT_DOUBLE_EQ(to_json(result)["ops"][0]["measured_waiting_seconds"].get<double>() +
                       to_json(result)["ops"][0]["predicted_waiting_seconds"].get<double>(),
                   result.ops[0].waiting_seconds.second);
}

TEST(Compare, AnOpTookAsLongAsItsStretchWhateverIsRecordedOfItsParts) {
  const Trace predicted = make({});
  const Trace measured = make({.kind = TraceKind::measured, .parts = true});
  const Comparison comparison = compare_traces(predicted, measured).value();
  ASSERT_EQ(comparison.ops.size(), 8u);
  EXPECT_EQ(comparison.unequal_op_bytes_count, 0);
  for (const OpComparison& op : comparison.ops) EXPECT_EQ(op.seconds.first, op.seconds.second) << op.name;
}

TEST(Compare, FindsOneByteOfPeak) {
  Scenario run = measured();
  run.arena = [](ArenaSummary& row) {
    if (row.rank == Rank{1} && row.phase == Phase::steady_step) row.peak_bytes += 1;
    return true;
  };
  const Comparison result = compared({}, run);
  EXPECT_FALSE(result.memory_equal());
  EXPECT_TRUE(result.communication_equal());
  int unequal = 0;
  for (const MemoryComparison& row : result.memory) {
    if (row.equal()) continue;
    ++unequal;
    EXPECT_EQ(row.rank, Rank{1});
    EXPECT_EQ(row.peak_bytes, (Pair<std::int64_t>{2000, 2001}));
  }
  EXPECT_EQ(unequal, 1);
}

TEST(Compare, FindsAMissingArena) {
  Scenario run = measured();
  run.arena = [](ArenaSummary& row) { return row.rank == Rank{0}; };
  EXPECT_FALSE(compared({}, run).memory_equal());
}

TEST(Compare, APhaseThatWasNotRunIsListedButNotCompared) {
  Scenario run;
  run.save_phase = true;
  const Comparison result = compared(run, measured());
  EXPECT_TRUE(result.equal());
  EXPECT_EQ(result.memory.size(), 6u);
}

TEST(Compare, NothingComparedIsNotEqual) {
  Scenario predicted, run = measured();
  predicted.arena = run.arena = [](ArenaSummary&) { return false; };
  predicted.memory = run.memory = [](MemoryEvent&) { return false; };
  EXPECT_FALSE(compared(predicted, run).memory_equal());
  predicted.collective = run.collective = [](CollectiveTotal&) { return false; };
  EXPECT_FALSE(compared(predicted, run).communication_equal());
}

/// Nor is it a difference: two of one and the same trace have none.
TEST(Compare, NothingComparedIsNoDifference) {
  Scenario run;
  run.collective = [](CollectiveTotal&) { return false; };
  const Comparison result = compared(run, run);
  EXPECT_TRUE(result.memory_compared());
  EXPECT_FALSE(result.communication_compared());
  const std::string text = to_text(result);
  EXPECT_EQ(text.find("DIFFERS"), std::string::npos) << text;
  EXPECT_NE(text.find("communication  not compared: neither trace has totals of collectives\n"), std::string::npos);
  EXPECT_EQ(to_json(result)["communication_compared"], false);
  EXPECT_TRUE(compared({}, measured()).communication_compared());
}

TEST(Compare, WithoutSummariesPeaksComeFromTheEvents) {
  Scenario run = measured();
  run.arena = [](ArenaSummary&) { return false; };
  run.memory = [](MemoryEvent& event) {
    if (event.rank == Rank{0}) event.offset_bytes += 64;
    return true;
  };
  const Comparison result = compared({}, run);
  ASSERT_EQ(result.memory.size(), 4u);
  EXPECT_EQ(result.memory[0].peak_bytes, (Pair<std::int64_t>{564, 628}));
  EXPECT_EQ(result.memory[0].live_peak_bytes, (Pair<std::int64_t>{500, 500}));
  EXPECT_FALSE(result.memory_equal());
}

TEST(Compare, FindsCategoriesThatDiffer) {
  Scenario run = measured();
  run.memory = [](MemoryEvent& event) {
    if (event.rank == Rank{1}) event.category = Category::gradient;
    return true;
  };
  const Comparison result = compared({}, run);
  ASSERT_EQ(result.categories.size(), 3u);
  EXPECT_EQ(result.categories[1].category, Category::gradient);
  EXPECT_EQ(result.categories[1].peak_bytes, (Pair<std::int64_t>{0, 500}));
}

TEST(Compare, FindsOneCallAndOneByteOfCommunication) {
  Scenario more = measured();
  more.collective = [](CollectiveTotal& row) { return row.count += row.rank == Rank{1}, true; };
  EXPECT_FALSE(compared({}, more).communication_equal());
  more.collective = [](CollectiveTotal& row) { return row.bytes += row.rank == Rank{0}, true; };
  EXPECT_FALSE(compared({}, more).communication_equal());
  more.collective = [](CollectiveTotal& row) { return row.rank == Rank{0}; };
  const Comparison result = compared({}, more);
  EXPECT_FALSE(result.communication_equal());
  EXPECT_EQ(result.collectives[1].count, (Pair<std::int64_t>{7, 0}));
}

TEST(Compare, FindsOtherBytesAndMissingOps) {
  Scenario run = measured();
  run.span = [](Span& span) {
    if (span.op == OpId{2} && span.phase == Phase::steady_step) span.bytes += 1;
    if (span.op == OpId{1} && span.phase == Phase::first_step) span.op = OpId{9};
  };
  const Comparison result = compared({}, run);
  EXPECT_EQ(result.unequal_op_bytes_count, 2);
  EXPECT_EQ(result.unmatched_op_count, (Pair<std::int64_t>{2, 2}));
  EXPECT_EQ(result.joined_op_count, 6);
}

TEST(Compare, RefusesTwoPlansUnlessForcedOrMadeFromEachOther) {
  Scenario other = measured();
  other.plan_hash = "bbbb";
  const Result<Comparison> refused = compare_traces(make({}), make(other), {}, "a.sst", "b.sst");
  ASSERT_FALSE(refused);
  EXPECT_EQ(exit_code(refused.error().code), 78);
  EXPECT_EQ(refused.error().where, "a.sst, b.sst");
  EXPECT_NE(refused.error().help.find("--force"), std::string::npos);
  EXPECT_FALSE(compared({}, other, {.force = true}).same_plan);
  other.parent_plan_hash = "aaaa";
  EXPECT_TRUE(compared({}, other).same_plan);
  other.plan_hash = "";
  other.parent_plan_hash = "";
  EXPECT_FALSE(compare_traces(make({}), make(other)));
}

TEST(Compare, SaysWhatDiffersInTheStrategies) {
  Scenario other = measured();
  other.plan_hash = "bbbb";
  Trace a = make({}), b = make(other);
  a.header.strategy = {
      {"stage", "3", true}, {"unit", "chunk", true}, {"clip_norm", "", false}, {"only_here", "1", true}};
  b.header.strategy = {{"clip_norm", "true", true}, {"unit", "chunk", true}, {"stage", "2", true}};
  const Result<Comparison> refused = compare_traces(a, b);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().what.ends_with("; stage 3 and 2, clip_norm not set and true")) << refused.error().what;
  const Result<Comparison> forced = compare_traces(b, a, {.force = true});  // the prediction becomes the first
  ASSERT_TRUE(forced);
  const nlohmann::ordered_json json = to_json(*forced);
  ASSERT_EQ(json["strategy"].size(), 2u);
  EXPECT_EQ(json["strategy"][0]["field"], "stage");
  EXPECT_EQ(json["strategy"][0]["predicted_value"], "3");
  EXPECT_EQ(json["strategy"][0]["measured_value"], "2");
  EXPECT_NE(to_text(*forced).find("strategy   predicted  measured\nstage      3          2\n"), std::string::npos)
      << to_text(*forced);
}

TEST(Compare, ATraceThatBrokeOffIsNotEqual) {
  const Trace predicted = make({});
  Trace cut = make(measured());
  cut.truncated.push_back({100, "broken off"});
  const Result<Comparison> result = compare_traces(predicted, cut);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->memory_equal());
  EXPECT_FALSE(result->equal());
}

TEST(CompareReport, JsonPairsAndText) {
  const Comparison result = compared({}, measured());
  const nlohmann::ordered_json json = to_json(result);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["equal"], true);
  EXPECT_EQ(json["memory"].size(), 4u);
  EXPECT_EQ(json["memory"][1]["predicted_peak_bytes"], 2000);
  EXPECT_EQ(json["memory"][1]["measured_peak_bytes"], 2000);
  EXPECT_EQ(json["collectives"][0]["predicted_count"], 7);
  EXPECT_EQ(json["collectives"][0]["kind"], "all_gather");
  EXPECT_EQ(json["step_seconds_ratio"], 1.0);
  EXPECT_EQ(nlohmann::ordered_json::parse(json.dump()), json);
  const std::string text = to_text(result);
  EXPECT_NE(text.find("memory         equal"), std::string::npos) << text;
  EXPECT_NE(text.find("8 ops joined"), std::string::npos) << text;
}

TEST(CompareReport, SaysWhichTraceIsIncompleteInWords) {
  Comparison result = compared({}, {});
  result.complete = {false, false};
  const std::string text = to_text(result);
  EXPECT_NE(text.find("The first trace (a) is incomplete.\nThe second trace (b) is incomplete.\n"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace shard
