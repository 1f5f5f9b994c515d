// Are laws that made the samples found again, and is what lies off them corrected by size?
#include "sim/cost/fit.h"

#include <gtest/gtest.h>

#include <random>

#include "sim/cost/measured_times.h"

namespace shard::cost {
namespace {

OpSample sample(const char* kind, plan::OpWork work, double seconds, Dtype dtype = Dtype::f32) {
  return {.kind = *plan::op_class(kind), .dtype = dtype, .work = work, .seconds = seconds};
}

TEST(Fit, TheTermsThatMadeTheSamplesAreFound) {
  std::mt19937 random(1);
  std::vector<OpSample> samples;
  std::uniform_real_distribution<double> any(0, 1);
  for (int i = 0; i < 40; ++i) {
    const plan::OpWork w{
        .flops = 1e6 + 1e8 * any(random), .weight_bytes = 1e3 + 1e6 * any(random), .bytes = 1e3 + 1e6 * any(random)};
    samples.push_back(sample("linear forward", w, 2e-6 + 1e-11 * w.flops + 3e-10 * w.weight_bytes + 2e-10 * w.bytes));
  }
  const auto laws = laws_of(samples);
  ASSERT_EQ(laws.size(), 1U);
  EXPECT_EQ(laws[0].kind, "linear forward");
  EXPECT_NEAR(laws[0].call_seconds, 2e-6, 1e-9);
  EXPECT_NEAR(laws[0].flop_seconds, 1e-11, 1e-15);
  EXPECT_NEAR(laws[0].weight_byte_seconds, 3e-10, 1e-14);
  EXPECT_NEAR(laws[0].byte_seconds, 2e-10, 1e-14);
  EXPECT_EQ(laws[0].samples, 40);
  EXPECT_LT(laws[0].median_error, 1e-6);
}

TEST(Fit, NoTermIsNegative) {
  // Less for twice the bytes: a line through these would begin above and fall.
  const auto laws = laws_of(std::vector{sample("copy", {.bytes = 1e6}, 3e-4), sample("copy", {.bytes = 2e6}, 2e-4)});
  ASSERT_EQ(laws.size(), 1U);
  for (const double term :
       {laws[0].call_seconds, laws[0].flop_seconds, laws[0].weight_byte_seconds, laws[0].byte_seconds})
    EXPECT_GE(term, 0);
}

TEST(Fit, ACacheThatEndsIsCorrectedBySize) {
  // 50 GB/s up to a megabyte, 10 GB/s from there on: no line, and yet every size is met.
  std::vector<OpSample> samples;
  for (double bytes = 16384; bytes < 3e8; bytes *= 2)
    samples.push_back(sample("gelu forward", {.bytes = bytes}, bytes / (bytes > 1e6 ? 10e9 : 50e9)));
  const auto laws = laws_of(samples);
  ASSERT_EQ(laws.size(), 1U);
  for (const OpSample& s : samples) EXPECT_NEAR(law_time(laws[0], s.work).count() / s.seconds, 1, 1e-6);
}

TEST(Fit, KindsAndTypesHaveLawsOfTheirOwn) {
  const auto laws = laws_of(std::vector{
      sample("copy", {.bytes = 100}, 1e-6), sample("copy", {.bytes = 100}, 5e-7, Dtype::bf16),
      sample("all_gather", {.bytes = 100}, 3e-6), sample("copy", {.bytes = 100}, 0)});  // without time: left out
  ASSERT_EQ(laws.size(), 3U);
  for (const auto& law : laws) EXPECT_EQ(law.samples, 1);
}

TEST(Fit, OneSampleIsMetExactly) {
  const auto laws = laws_of(std::vector{sample("decide", {.bytes = 64}, 7e-6)});
  ASSERT_EQ(laws.size(), 1U);
  EXPECT_NEAR(law_time(laws[0], {.bytes = 64}).count(), 7e-6, 1e-12);
}

TEST(BesideOps, WhatStepsTakeBesideTheirOpsIsFound) {
  std::vector<StepSample> steps;
  for (int i = 1; i < 20; ++i) {
    const double ops = 100 + 37 * (i % 5);
    const double collectives = 3 * (i % 4);
    const double busy = 0.01 * i;
    steps.push_back({ops, collectives, busy, busy * 1.05 + 2e-6 * ops + 4e-5 * collectives});
  }
  const BesideOps found = beside_ops(steps);
  EXPECT_NEAR(found.between_seconds, 2e-6, 1e-10);
  EXPECT_NEAR(found.meeting_seconds, 4e-5, 1e-9);
  EXPECT_NEAR(found.waiting_share, 0.05, 1e-6);
}

TEST(BesideOps, WithoutStepsThereIsNothing) {
  EXPECT_EQ(beside_ops({}).between_seconds, 0);
}

TEST(Median, IsTheMiddleAndOfTwoTheUpper) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({1, 2}), 2);
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(quantile({4, 3, 2, 1}, 0.25), 2);
  EXPECT_EQ(quantile({5}, 1), 5);
}

}  // namespace
}  // namespace shard::cost
