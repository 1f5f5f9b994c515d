// Does the emulation of DeepSpeed reach the peaks that DeepSpeed itself reached on a stand-in GPU, to the byte?
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/like/simulate_eager.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

/// A row of a table in tests/data/eager that make_deepspeed_dryruns.py made.
struct DeepSpeedRun {
  std::string recompute, config, precision, optimizer, zero = "{}";
  std::int32_t ranks = 0, stage = 0, rank = 0;
  std::int64_t bucket = 0, batch = 0, sequence = 0, reserved = 0;
  std::int64_t host = 0, pinned = 0;  ///< at the end, where something is offloaded
  std::vector<std::int64_t> peaks;    ///< creation, then three steps
};

Result<LikeResult> predicted(const DeepSpeedRun& run, eager::Version deepspeed = eager::kUsualDeepSpeed) {
  plan::Strategy strategy;
  strategy.world_size = run.ranks;
  strategy.stage = run.stage;
  strategy.micro_batch = run.batch;
  strategy.global_batch = run.batch * run.ranks;
  strategy.sequence = run.sequence;
  strategy.precision = run.precision == "bf16" ? plan::Precision::bf16 : plan::Precision::fp32;
  if (run.recompute == "block") strategy.recompute = plan::Recompute::block;
  EagerOptions options;
  options.framework = eager_framework("deepspeed").value();
  options.deepspeed = deepspeed;
  options.reduce_bucket = run.bucket;
  if (run.optimizer == "fused") options.update = eager::Update::fused;
  if (run.optimizer == "for-loop") options.update = eager::Update::for_loop;
  const auto zero = nlohmann::json::parse(run.zero);
  options.zero3.prefetch_bucket = zero.value("stage3_prefetch_bucket_size", options.zero3.prefetch_bucket);
  options.zero3.persistence_threshold =
      zero.value("stage3_param_persistence_threshold", options.zero3.persistence_threshold);
  options.zero3.max_live = zero.value("stage3_max_live_parameters", options.zero3.max_live);
  options.zero3.max_reuse_distance = zero.value("stage3_max_reuse_distance", options.zero3.max_reuse_distance);
  const auto pins = [&](const char* key) { return zero[key].value("pin_memory", false) ? Pin::yes : Pin::no; };
  if (zero.contains("offload_optimizer")) {
    strategy.placement.gradients = strategy.placement.optimizer = plan::kOnHost;
    options.pin_memory = pins("offload_optimizer");
  }
  if (zero.contains("offload_param")) {
    strategy.placement.parameters = plan::kOnHost;
    options.pin_parameters = pins("offload_param");
  }
  options.rank = run.rank;
  options.zero3.sub_group = zero.value("sub_group_size", options.zero3.sub_group);
  options.zero3.within_init = zero.value("zero_init", false);
  return simulate_eager(std::make_shared<model::Model>(test::model_of(run.config)), strategy, options);
}

std::vector<DeepSpeedRun> all_runs(const std::string& table, bool offload) {
  std::ifstream in(std::string(TEST_DATA) + "/data/eager/" + table);
  std::vector<DeepSpeedRun> runs;
  std::string line;
  std::getline(in, line);  // the columns' names
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    DeepSpeedRun run;
    fields >> run.ranks >> run.stage;
    if (run.stage == 3 || offload) {
      fields >> run.rank;
      fields.ignore(1);
      std::getline(fields, run.zero, '\t');
    }
    fields >> run.bucket >> run.recompute;
    fields.ignore(1);
    std::getline(fields, run.config, '\t');
    fields >> run.batch >> run.sequence >> run.precision >> run.optimizer;
    run.peaks.resize(4);
    for (std::int64_t& peak : run.peaks) fields >> peak;
    fields >> run.reserved;
    if (offload) fields >> run.host >> run.pinned;
    runs.push_back(std::move(run));
  }
  return runs;
}

/// What one tensor must take, and all pinned memory is told in.
constexpr Bytes kToldOfHost{1024};

/// Of what a program has in this memory when it ends.
Bytes left_in(const Program& program, Memory memory, Bytes least) {
  std::vector<bool> gone(program.allocations.size(), false);
  for (const Step& step : program.steps)
    if (step.kind == StepKind::give_back) gone[static_cast<std::size_t>(step.at)] = true;
  Bytes sum{0};
  for (std::size_t i = 0; i < gone.size(); ++i)
    if (!gone[i] && program.allocations[i].memory == memory && program.allocations[i].bytes >= least)
      sum += program.allocations[i].bytes;
  return sum;
}

std::string text_of(const DeepSpeedRun& run) {
  std::ostringstream text;
  text << "stage " << run.stage << " " << run.zero << ", rank " << run.rank << " of " << run.ranks << ", bucket "
       << run.bucket << ", " << run.recompute << " " << run.precision << " " << run.optimizer << " " << run.batch
       << " x " << run.sequence << " " << run.config;
  return text.str();
}

/// But for so many runs, whose first step is equal to a ten-thousandth.
void expect_equal(const std::string& table, bool offload = false, std::size_t but_for = 0) {
  constexpr double kTenThousandth = 1e-4;
  const std::vector<DeepSpeedRun> runs = all_runs(table, offload);
  ASSERT_FALSE(runs.empty());
  std::size_t unequal = 0;
  for (const DeepSpeedRun& run : runs) {
    const Result<LikeResult> result = predicted(run);
    ASSERT_TRUE(result) << to_string(result.error());
    std::vector<std::int64_t> maxima = test::maxima(*result);
    const auto first = static_cast<double>(run.peaks[1]);
    const double error = std::abs(static_cast<double>(maxima[1]) - first) / first;
    if (maxima[1] != run.peaks[1] && ++unequal <= but_for && error < kTenThousandth) maxima[1] = run.peaks[1];
    EXPECT_EQ(maxima, run.peaks) << text_of(run);
    EXPECT_EQ(left_in(*result->program, Memory::host, kToldOfHost + Bytes{1}).count(), run.host)
        << run.zero << " of " << run.ranks;
    EXPECT_EQ(left_in(*result->program, Memory::pinned, Bytes{0}).count() / kToldOfHost.count(),
              run.pinned / kToldOfHost.count())
        << run.zero << " of " << run.ranks;
  }
}

TEST(DeepSpeedDryRuns, ZeroStages1And2AreEqualToTheByte) {
  expect_equal("deepspeed_dryruns.tsv");
}

TEST(DeepSpeedDryRuns, ZeroStage3IsEqualToTheByte) {
  expect_equal("deepspeed_stage3_dryruns.tsv");
}

TEST(DeepSpeedDryRuns, ZeroStages1And2WithTheOptimizerOnTheHostAreEqualToTheByte) {
  expect_equal("deepspeed_offload_dryruns.tsv", true);
}

TEST(DeepSpeedDryRuns, ZeroStage3WithTheOptimizerOnTheHostIsEqualToTheByte) {
  expect_equal("deepspeed_stage3_offload_dryruns.tsv", true, 1);
}

TEST(DeepSpeedDryRuns, ZeroStage3WithOptimizerAndParametersOnTheHostIsEqualToTheByte) {
  expect_equal("deepspeed_stage3_offload_parameters_dryruns.tsv", true, 2);
}

/// transformers gathers module by module to set weights, which the program has not: free blocks lie elsewhere then, and
/// one may be given out whole that was split.
TEST(DeepSpeedDryRuns, ModelsMadeWithinZeroInitAreEqualInNearlyAllPeaks) {
  std::size_t equal = 0, count = 0;
  for (const DeepSpeedRun& run : all_runs("deepspeed_zero_init_dryruns.tsv", false)) {
    const Result<LikeResult> result = predicted(run);
    ASSERT_TRUE(result) << to_string(result.error());
    ++count;
    equal += test::has_peaks(*result, run.peaks, 1e-4, run.config) ? 1U : 0U;
  }
  EXPECT_GE(count, 60U);
  EXPECT_GE(equal * 100, count * 98) << equal << " of " << count << " to the byte";
}

/// Rows of deepspeed_dryruns.tsv that were run again, by same_in_version.py.
TEST(DeepSpeedDryRuns, ZeroStages1And2OfAnOlderReleaseAreEqualToTheByte) {
  const std::vector<DeepSpeedRun> runs = all_runs("deepspeed_dryruns_0_18_9.tsv", false);
  ASSERT_FALSE(runs.empty());
  for (const DeepSpeedRun& run : runs) {
    const Result<LikeResult> result = predicted(run, 1809);
    ASSERT_TRUE(result) << to_string(result.error());
    EXPECT_EQ(test::maxima(*result), run.peaks) << text_of(run);
    EXPECT_EQ(result->framework, "deepspeed@0.18.9");
  }
}

TEST(DeepSpeedDryRuns, Stage3OutsideOfZeroInitIsRefusedForReleasesThatHoldWeightsThere) {
  for (const DeepSpeedRun& run : all_runs("deepspeed_stage3_dryruns.tsv", false)) {
    const Result<LikeResult> result = predicted(run, 1809);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().what, "stage 3 of DeepSpeed 0.18.9 without zero.Init is not modelled for eager PyTorch 2");
  }
}

TEST(DeepSpeedDryRuns, WhatIsNotModelledIsNamed) {
  DeepSpeedRun run{.recompute = "none",
                   .config = R"({"model_type": "gpt2", "vocab_size": 100, "n_embd": 16, "n_layer": 1, "n_head": 1,
                                 "n_positions": 64, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0})",
                   .precision = "bf16",
                   .optimizer = "foreach",
                   .ranks = 2,
                   .stage = 0,
                   .bucket = 1000,
                   .batch = 1,
                   .sequence = 8,
                   .reserved = 0,
                   .peaks = {}};
  const Result<LikeResult> refused = predicted(run);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::contradiction);
  EXPECT_NE(refused.error().what.find("stage 0"), std::string::npos);
  run.stage = 3;
  run.zero = R"({"offload_param": {"device": "cpu"}})";
  const Result<LikeResult> alone = predicted(run);
  ASSERT_FALSE(alone);
  EXPECT_NE(alone.error().what.find("parameters alone"), std::string::npos);
}

}  // namespace
}  // namespace shard::like
