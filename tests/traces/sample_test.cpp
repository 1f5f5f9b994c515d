// Does this program still read the traces that earlier ones wrote? One small file per format version, kept for good.
#include "tests/traces/sample_trace.h"

namespace shard {
namespace {

// samples/v1.0.sst was written by write_random(seed 11, 12 spans, 8 memory events, 1 of each other kind).
TEST(Sample, Version1_0) {
  const Result<Trace> trace = load(std::filesystem::path(TEST_DATA "/traces/samples/v1.0.sst"));
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(trace->skipped_frame_count, 0);
  EXPECT_EQ(trace->header.metadata.at("model"), "gpt2");
  ASSERT_EQ(trace->spans.size(), 12u);
  ASSERT_EQ(trace->memory.size(), 8u);
  EXPECT_EQ(trace->counters.size(), 1u);
  EXPECT_EQ(trace->chunk_states.size(), 1u);
  EXPECT_EQ(trace->flows.size(), 1u);
  EXPECT_EQ(trace->arenas.size(), 1u);
  EXPECT_EQ(trace->collectives.size(), 1u);
  EXPECT_EQ(trace->spans[0], (Span{TrackId{0}, -822, 1506, OpId{-1}, trace->spans.name[0], Phase::creation, 473, 51,
                                   624'317, UnitId{369}}));
  EXPECT_EQ(trace->name_of(trace->spans.name[0]), "name7");
  EXPECT_EQ(trace->memory[7], (MemoryEvent{Rank{1}, Memory::device, BufferId{71}, 125'989'401'954, 225'194'194,
                                           Category::gradient, OpId{97}, -476, Phase::load, 313, UnitId{410}}));
}

// samples/v1.1.sst was written likewise; its spans say how long they waited.
TEST(Sample, Version1_1) {
  const Result<Trace> trace = load(std::filesystem::path(TEST_DATA "/traces/samples/v1.1.sst"));
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(trace->format_minor, 1);
  EXPECT_EQ(trace->skipped_frame_count, 0);
  const Result<Trace> before = load(std::filesystem::path(TEST_DATA "/traces/samples/v1.0.sst"));
  ASSERT_TRUE(before);
  ASSERT_EQ(trace->spans.size(), before->spans.size());
  int waiting = 0;
  for (std::size_t i = 0; i < trace->spans.size(); ++i) {
    Span expected = before->spans[i];
    EXPECT_EQ(expected.waiting_ns, 0);
    if (expected.bytes % 2 == 0) expected.waiting_ns = expected.duration_ns / 3;
    if (expected.waiting_ns > 0) ++waiting;
    EXPECT_EQ(trace->spans[i], expected);
  }
  EXPECT_GT(waiting, 0);
}

// What programs of format 1.1 wrote of a run: the tables that 1.2 brought are empty, and no span says its part.
//   simulate --model tests/data/models/mlp-small.json --world-size 2 --stage 3 --unit chunk --steps 2 --trace ...
//   train --model tests/data/models/mlp-small.json --data random --ranks 2 --stage 3 --unit module --steps 2 --trace
//   ...
TEST(Sample, RunsOfVersion1_1) {
  for (const char* name : {"v1.1-simulate.sst", "v1.1-train.sst"}) {
    const Result<Trace> trace = load(std::filesystem::path(TEST_DATA "/traces/samples") / name);
    ASSERT_TRUE(trace) << to_string(trace.error());
    EXPECT_TRUE(trace->complete());
    EXPECT_EQ(trace->format_minor, 1);
    EXPECT_EQ(trace->skipped_frame_count, 0);
    EXPECT_TRUE(trace->header.units.empty() && trace->header.strategy.empty() && trace->header.capacities.empty());
    EXPECT_GE(trace->spans.size(), 86u);
    EXPECT_EQ(std::ranges::count(trace->spans.part, Part::unknown), static_cast<std::ptrdiff_t>(trace->spans.size()));
    EXPECT_FALSE(trace->chunk_states.empty());
    EXPECT_EQ(trace->header.metadata.at("model"), "mlp-small");
  }
}

// samples/v1.2.sst was written as v1.0.sst and v1.1.sst; it has the tables, and its spans say their part.
TEST(Sample, Version1_2) {
  const Result<Trace> trace = load(std::filesystem::path(TEST_DATA "/traces/samples/v1.2.sst"));
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(trace->format_minor, 2);
  EXPECT_EQ(trace->skipped_frame_count, 0);
  EXPECT_EQ(trace->header.units, (std::vector<UnitInfo>{{"chunk 0", 0, 0}}));
  EXPECT_EQ(
      trace->header.strategy,
      (std::vector<StrategyField>{{"stage", "3", true}, {"chunk_elements", "1000", true}, {"distributed", "", false}}));
  EXPECT_EQ(trace->header.capacities, (std::vector<MemoryCapacity>{{Rank{}, Memory::device, 1, std::int64_t{80} << 30},
                                                                   {Rank{2}, Memory::host, 8, 0}}));
  const Result<Trace> before = load(std::filesystem::path(TEST_DATA "/traces/samples/v1.1.sst"));
  ASSERT_TRUE(before);
  ASSERT_EQ(trace->spans.size(), before->spans.size());
  for (std::size_t i = 0; i < trace->spans.size(); ++i) {
    Span expected = before->spans[i];
    expected.part =
        static_cast<Part>(expected.bytes % sample::kSampleParts + (expected.bytes < 0 ? sample::kSampleParts - 1 : 0));
    EXPECT_EQ(trace->spans[i], expected);
  }
}

// samples/v1.3-snapshot.sst: fuzz/corpus/snapshot_fuzz/protocol4.pickle, converted. Stacks, and what was asked for.
TEST(Sample, SnapshotOfVersion1_3) {
  const Result<Trace> trace = load(std::filesystem::path(TEST_DATA "/traces/samples/v1.3-snapshot.sst"));
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(trace->format_minor, 3);
  EXPECT_EQ(trace->skipped_frame_count, 0);
  EXPECT_EQ(trace->memory.delta_bytes, (std::vector<std::int64_t>{1536, 1024, -1024}));
  EXPECT_EQ(trace->memory.requested_bytes, (std::vector<std::int64_t>{1100, 600, 0}));
  EXPECT_EQ(trace->memory.category, std::vector<Category>(3, Category::not_known));
  for (const StackId stack : trace->memory.stack) {
    ASSERT_TRUE(stack.valid());
    const StackFrame& inner = trace->frame_of(trace->stack_of(stack).frame);
    EXPECT_EQ(trace->name_of(inner.function), "forward");
    EXPECT_EQ(trace->name_of(inner.file), "model.py");
    EXPECT_EQ(inner.line, 7);
    const StackId caller = trace->stack_of(stack).caller;
    ASSERT_TRUE(caller.valid());
    EXPECT_EQ(trace->name_of(trace->frame_of(trace->stack_of(caller).frame).function), "main");
    EXPECT_FALSE(trace->stack_of(caller).caller.valid());
  }
}

}  // namespace
}  // namespace shard
