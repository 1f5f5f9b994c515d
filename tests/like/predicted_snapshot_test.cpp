// Is the memory snapshot of a prediction what PyTorch would dump of that program, and does everybody read it back?
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "sim/like/simulate_eager.h"
#include "tests/like/recipe.h"
#include "tests/traces/sample_trace.h"
#include "traces/compare_snapshots.h"
#include "traces/export/snapshot_again.h"
#include "traces/import/import.h"

namespace shard::like {
namespace {

struct Sample {
  std::int64_t layers = 1, heads = 4, kv_heads = 2, batch = 2, sequence = 256;
  plan::Precision precision = plan::Precision::bf16;
  eager::Framework framework = eager::Framework::none;
  bool expandable = false;
};

LikeResult predict(const Sample& p) {
  const auto model = std::make_shared<model::Model>(test::model_of(
      R"({"model_type": "llama", "vocab_size": 1000, "hidden_size": 256, "intermediate_size": 704,
          "max_position_embeddings": 512, "tie_word_embeddings": false, "num_hidden_layers": )" +
      std::to_string(p.layers) + R"(, "num_attention_heads": )" + std::to_string(p.heads) +
      R"(, "num_key_value_heads": )" + std::to_string(p.kv_heads) + "}"));
  plan::Strategy strategy;
  strategy.micro_batch = p.batch;
  strategy.sequence = p.sequence;
  strategy.precision = p.precision;
  strategy.world_size = p.framework == eager::Framework::none ? 1 : 4;
  strategy.stage = p.framework == eager::Framework::none ? 0 : 3;
  strategy.global_batch = p.batch * strategy.world_size;
  EagerOptions options{
      .machine = {.compute_capability = 90, .multiprocessors = 132, .threads_per_multiprocessor = 2048}};
  options.framework = p.framework;
  options.allocator.expandable = p.expandable;
  options.snapshot = true;
  Result<LikeResult> result = simulate_eager(model, strategy, options);
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return {};
  }
  return *result;
}

LoadedTrace read_back(const LikeResult& result) {
  const sample::TempFile file(".pickle");
  EXPECT_TRUE(export_snapshot_again(result.snapshot->snapshot, result.snapshot->names, file.path()));
  Result<LoadedTrace> loaded = load_any(file.path());
  if (!loaded) {
    ADD_FAILURE() << to_string(loaded.error());
    return {};
  }
  EXPECT_TRUE(loaded->trace.complete());
  return std::move(*loaded);
}

/// Precisions, sizes and frameworks, with and without expandable segments.
Sample random_program(unsigned seed) {
  std::mt19937 random(seed);
  constexpr std::array kFrameworks{eager::Framework::none, eager::Framework::fsdp1, eager::Framework::fsdp2};
  Sample p;
  p.layers = 1 + random() % 3;
  p.kv_heads = random() % 2 == 0 ? 4 : 2;
  p.batch = 1 + random() % 4;
  p.sequence = 64 * (1 + random() % 4);
  p.framework = kFrameworks[random() % kFrameworks.size()];
  p.precision = random() % 2 == 0 ? plan::Precision::bf16 : plan::Precision::fp32;
  p.expandable = random() % 3 == 0;
  return p;
}

TEST(PredictedSnapshot, ReadBackItHasThePeaksOfTheAnswer) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const LikeResult result = predict(random_program(seed));
    const LoadedTrace back = read_back(result);
    const Result<SnapshotComparison> same = compare_snapshots(back, back, "a", "b");
    ASSERT_TRUE(same);
    EXPECT_EQ(same->peak_allocated_bytes.first, result.peak_allocated().count());
    EXPECT_EQ(same->peak_reserved_bytes.first, result.peak_reserved().count());
    EXPECT_EQ(same->common_events, same->events.first);
    EXPECT_EQ(back.snapshot->allocated_bytes(), result.statistics.allocated.current.count());
    EXPECT_EQ(back.snapshot->reserved_bytes(), result.statistics.reserved.current.count());
    // Undone to the start nothing is left, and blocks tile their segments.
    EXPECT_EQ(back.snapshot->at_start.allocated_bytes, 0);
    EXPECT_EQ(back.snapshot->at_start.reserved_bytes, 0);
    for (const SnapshotSegment& segment : back.snapshot->segments) {
      std::uint64_t next = segment.address;
      for (const SnapshotBlock& block : segment.blocks) {
        EXPECT_EQ(block.address, next);
        next += static_cast<std::uint64_t>(block.bytes);
      }
      EXPECT_EQ(next, segment.address + static_cast<std::uint64_t>(segment.bytes));
    }
  }
}

/// Blocks of two pools and streams, taken and given back in any order, and caches emptied between.
Program random_takes(unsigned seed) {
  std::mt19937 random(seed);
  Program program;
  program.begin({.module = {}, .name = "draw"});
  std::vector<BufferId> live;
  for (int i = 0; i < 150; ++i) {
    const auto what = random() % 20;
    if (what == 0) program.empty_cache();
    if (what < 9 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      program.give_back(live.back());
      live.pop_back();
    }
    if (what < 9) continue;
    const std::int64_t most = random() % 2 == 0 ? std::int64_t{1} << 19 : std::int64_t{70} << 20;
    live.push_back(program.take({.bytes = Bytes{1 + static_cast<std::int64_t>(random()) % most},
                                 .stream = static_cast<ProgramStream>(random() % 2)}));
  }
  return program;
}

TEST(PredictedSnapshot, PagesThatComeAndGoAreCounted) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    ReplayOptions options{.snapshot = true};
    options.allocator.expandable = seed % 4 != 0;
    const Result<MemoryAnswer> answer = replay(random_takes(seed), options);
    ASSERT_TRUE(answer) << to_string(answer.error());
    LikeResult result;
    result.snapshot = answer->snapshot;
    const LoadedTrace back = read_back(result);
    ASSERT_EQ(back.trace.arenas.size(), 1U);
    EXPECT_EQ(back.trace.arenas[0].peak_bytes, answer->peak_reserved().count());
    EXPECT_EQ(back.snapshot->at_start.reserved_bytes, 0);
    EXPECT_EQ(back.snapshot->at_start.allocated_bytes, 0);
  }
}

TEST(PredictedSnapshot, CategoriesAreThoseOfTheAnswer) {
  const LikeResult result = predict({});
  const LoadedTrace back = read_back(result);
  const Result<SnapshotComparison> same = compare_snapshots(back, back, "a", "b");
  ASSERT_TRUE(same);
  std::vector<std::int64_t> expected(kCategoryCount);
  const Moment* highest = &result.moments.front();
  for (const Moment& m : result.moments)
    if (m.max_allocated > highest->max_allocated) highest = &m;
  for (const Block& block : highest->blocks) expected[static_cast<std::size_t>(block.category)] += block.taken.count();
  EXPECT_EQ(same->at_peak.first, expected);
}

TEST(PredictedSnapshot, StacksNameTheOperatorInItsModule) {
  const LikeResult result = predict({});
  const LoadedTrace back = read_back(result);
  std::int64_t products = 0;
  for (const SnapshotEvent& event : back.snapshot->events) {
    ASSERT_TRUE(event.stack.valid());
    const StackFrame& frame = back.trace.frame_of(back.trace.stack_of(event.stack).frame);
    products += back.trace.name_of(frame.function) == "mm" && back.trace.name_of(frame.file) == "model.layers.0";
  }
  EXPECT_GT(products, 0);
}

/// AdamW over three steps of the model of predict({}), by transformers 5.23 and PyTorch 2.11 on the stand-in GPU of an
/// H100, without stacks.
TEST(PredictedSnapshot, BesideTheOneThatPyTorchDumpsThePeaksAreEqual) {
  const LoadedTrace predicted = read_back(predict({}));
  const Result<LoadedTrace> recorded = load_any(std::string(TEST_DATA) + "/data/eager/llama_one_block.pickle");
  ASSERT_TRUE(recorded) << to_string(recorded.error());
  const Result<SnapshotComparison> c = compare_snapshots(predicted, *recorded, "predicted", "recorded");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->peak_allocated_bytes.first, c->peak_allocated_bytes.second);
  EXPECT_EQ(c->peak_reserved_bytes.first, c->peak_reserved_bytes.second);
  EXPECT_TRUE(c->equal());
}

TEST(CompareSnapshots, FindsWhatWasPutIn) {
  const LoadedTrace one = read_back(predict({}));
  LoadedTrace other = one;
  SnapshotEvent more = other.snapshot->events[100];
  more.action = SnapshotAction::alloc;
  more.address = 512;
  more.bytes = 123'456;
  auto& events = other.snapshot->events;
  events.insert(events.begin() + 100, more);
  const Result<SnapshotComparison> c = compare_snapshots(one, other, "a", "b");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->events.second, c->events.first + 1);
  EXPECT_EQ(c->common_events, c->events.first);
  EXPECT_EQ(c->differing_bytes.second - c->differing_bytes.first, 123'456);
}

TEST(CompareSnapshots, AShortRecordingIsEqualToItself) {
  LoadedTrace few = read_back(predict({}));
  auto& events = few.snapshot->events;
  std::erase_if(events, [](const SnapshotEvent& event) { return event.action != SnapshotAction::alloc; });
  events.resize(5);
  const Result<SnapshotComparison> c = compare_snapshots(few, few, "a", "b");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->common_events, 5);
  EXPECT_TRUE(c->equal());
}

TEST(CompareSnapshots, WhatIsNoSnapshotIsRefused) {
  const LoadedTrace snapshot = read_back(predict({}));
  const Result<SnapshotComparison> c = compare_snapshots(snapshot, LoadedTrace{}, "a.pickle", "b.sst");
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, Errc::contradiction);
}

}  // namespace
}  // namespace shard::like
