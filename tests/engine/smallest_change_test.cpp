// Is the cheapest change that helps the one that is named?
#include "sim/engine/smallest_change.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace shard::engine {
namespace {

plan::Strategy eight_ranks() {
  plan::Strategy s;
  s.world_size = 8;
  s.micro_batch = 4;
  s.global_batch = 32;
  return s;
}

/// A made-up peak: 800 of state over the ranks that share it, 100 for each sample kept, a tenth when recomputing.
Result<Bytes> made_up(const plan::Strategy& s) {
  const std::int64_t state = s.stage == 0 ? 800 : s.stage == 1 ? 500 : s.stage == 2 ? 400 : 100;
  return Bytes{state + s.micro_batch * (s.recompute == plan::Recompute::block ? 10 : 100)};
}

std::string text_for(std::int64_t capacity, plan::Strategy s = eight_ranks()) {
  const std::optional<Change> c = smallest_change(s, Bytes{capacity}, made_up);
  if (!c) return "";
  EXPECT_LE(c->peak, Bytes{capacity});
  EXPECT_EQ(c->peak, *made_up(c->strategy));
  EXPECT_EQ(c->strategy.global_batch, s.global_batch);
  return c->text;
}

TEST(SmallestChange, TheNextStageIsTriedFirst) {
  EXPECT_EQ(text_for(900), "--stage 1");
  EXPECT_EQ(text_for(899), "--stage 2");
  EXPECT_EQ(text_for(799), "--stage 3");
}

TEST(SmallestChange, OneRankHasNoStageToRaise) {
  plan::Strategy s = eight_ranks();
  s.world_size = 1;
  EXPECT_EQ(text_for(1100, s), "--recompute block");
}

TEST(SmallestChange, HalfTheMicroBatchKeepsTheGlobalBatch) {
  plan::Strategy s = eight_ranks();
  s.stage = 3;
  s.recompute = plan::Recompute::block;
  EXPECT_EQ(text_for(120, s), "--micro-batch 2");
  EXPECT_EQ(text_for(110, s), "--micro-batch 1");
}

TEST(SmallestChange, ChangesAddUpWhenOneIsNotEnough) {
  EXPECT_EQ(text_for(140), "--stage 3 --recompute block");
  EXPECT_EQ(text_for(110), "--stage 3 --recompute block --micro-batch 1");
  EXPECT_EQ(text_for(109), "");
}

TEST(SmallestChange, WhatWasAskedForAndCostsMemoryIsLeftOutFirst) {
  plan::Strategy s = eight_ranks();
  s.stage = 3;
  s.precision = plan::Precision::bf16;
  const auto change = [&](const std::function<bool(const plan::Strategy&)>& small) {
    const auto c =
        smallest_change(s, Bytes{1}, [&](const plan::Strategy& t) { return Result(Bytes{small(t) ? 1 : 2}); });
    return c ? c->text : "";
  };
  EXPECT_EQ(change([](const plan::Strategy& t) { return t.reuse_shard; }), "--reuse-fp16-shard");
  s.keep_gathered = true;
  s.bucket_mib = 25;
  EXPECT_EQ(change([](const plan::Strategy& t) { return !t.keep_gathered; }), "--no-keep-gathered");
  EXPECT_EQ(change([](const plan::Strategy& t) { return t.bucket_mib == 0; }), "--reduce-scatter-bucket-size-mb 0");
  EXPECT_EQ(change([](const plan::Strategy& t) { return !t.keep_gathered && t.bucket_mib == 0; }),
            "--reduce-scatter-bucket-size-mb 0 --no-keep-gathered");
  s = eight_ranks();
  s.stage = 2;
  s.ownership = plan::Ownership::rank;
  EXPECT_EQ(change([](const plan::Strategy& t) { return t.ownership == plan::Ownership::split; }),
            "--chunk-owner split");
}

TEST(SmallestChange, AMicroBatchThatDoesNotDivideIsNotOffered) {
  plan::Strategy s = eight_ranks();
  s.micro_batch = 3;
  s.global_batch = 24 * 3;
  std::vector<std::int64_t> tried;
  (void)smallest_change(s, Bytes{0}, [&](const plan::Strategy& c) -> Result<Bytes> {
    tried.push_back(c.micro_batch);
    return Bytes{1};
  });
  for (const std::int64_t micro : tried) EXPECT_EQ(s.global_batch % (micro * 8), 0) << micro;
}

TEST(SmallestChange, AnErrorIsPassedOver) {
  const auto c = smallest_change(eight_ranks(), Bytes{1}, [](const plan::Strategy& s) -> Result<Bytes> {
    if (s.stage == 1) return Error{Errc::contradiction, "not so", "", ""};
    return Bytes{0};
  });
  ASSERT_TRUE(c);
  EXPECT_EQ(c->text, "--stage 2");
}

TEST(SmallestChange, SmallerChunksStayMultiplesOfTheWorldSize) {
  plan::Strategy s = eight_ranks();
  s.stage = 3;
  s.unit = plan::UnitKind::chunk;
  s.chunk_elems = Elems{1000};
  s.recompute = plan::Recompute::block;
  s.micro_batch = 1;
  s.global_batch = 8;
  const auto c = smallest_change(s, Bytes{600},
                                 [](const plan::Strategy& x) -> Result<Bytes> { return Bytes{x.chunk_elems.count()}; });
  ASSERT_TRUE(c);
  EXPECT_EQ(c->text, "--chunk-size 504");
}

// Smaller ones are of one size: which of their own sizes they could have is for the search.
TEST(SmallestChange, ChunksOfTheirOwnSizesBecomeSmallerOnesOfOneSize) {
  plan::Strategy s = eight_ranks();
  s.stage = 3;
  s.unit = plan::UnitKind::chunk;
  s.chunk_elems = Elems{1000};
  s.chunk_starts = {0, 3};
  s.recompute = plan::Recompute::block;
  s.micro_batch = 1;
  s.global_batch = 8;
  const auto c = smallest_change(s, Bytes{600}, [](const plan::Strategy& x) -> Result<Bytes> {
    return x.has_variable_chunks() ? Bytes{1000} : Bytes{x.chunk_elems.count()};
  });
  ASSERT_TRUE(c);
  EXPECT_EQ(c->text, "--chunk-size 504");
}

}  // namespace
}  // namespace shard::engine
