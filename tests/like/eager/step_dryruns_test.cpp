// Does the emulation of a training loop (clipping, accumulation) reach the peaks that PyTorch itself reached?
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sim/like/simulate_eager.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

/// A row of tests/data/eager/step_dryruns.tsv (made by make_step_dryruns.py).
struct StepRun {
  std::string framework, masters, config, precision, optimizer, recompute;
  std::int32_t ranks = 0, shard_group = 0, stage = 0;
  bool clip = false;
  std::int64_t bucket = 0, micro_steps = 0, batch = 0, sequence = 0, reserved = 0;
  std::vector<std::int64_t> peaks{};  ///< creation, then three steps
};

plan::Precision precision_of(const std::string& name) {
  return name == "bf16" ? plan::Precision::bf16 : name == "fp16" ? plan::Precision::fp16 : plan::Precision::fp32;
}

Result<LikeResult> predicted(const StepRun& run) {
  plan::Strategy strategy;
  strategy.world_size = run.ranks;
  strategy.stage = run.stage;
  if (run.shard_group < run.ranks) strategy.shard_group = run.shard_group;
  strategy.micro_batch = run.batch;
  strategy.global_batch = run.batch * run.ranks * run.micro_steps;
  strategy.sequence = run.sequence;
  strategy.precision = precision_of(run.precision);
  strategy.clip_norm = run.clip;
  if (run.recompute == "block") strategy.recompute = plan::Recompute::block;
  EagerOptions options;
  options.framework = eager_framework(run.framework).value();
  options.masters = run.masters == "fp32";
  options.reduce_bucket = run.bucket;
  if (run.optimizer == "fused") options.update = eager::Update::fused;
  if (run.optimizer == "for-loop") options.update = eager::Update::for_loop;
  return simulate_eager(std::make_shared<model::Model>(test::model_of(run.config)), strategy, options);
}

std::vector<StepRun> step_runs(const std::string& framework, const std::string& file = "step_dryruns.tsv") {
  std::ifstream in(std::string(TEST_DATA) + "/data/eager/" + file);
  std::vector<StepRun> runs;
  std::string line;
  std::getline(in, line);  // the columns' names
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    StepRun run;
    fields >> run.framework >> run.ranks >> run.shard_group >> run.stage >> run.masters >> run.bucket;
    fields >> run.clip >> run.micro_steps;
    fields.ignore(1);
    std::getline(fields, run.config, '\t');
    fields >> run.batch >> run.sequence >> run.precision >> run.optimizer >> run.recompute;
    run.peaks.resize(4);
    for (std::int64_t& peak : run.peaks) fields >> peak;
    fields >> run.reserved;
    if (run.framework == framework) runs.push_back(std::move(run));
  }
  return runs;
}

std::string named(const StepRun& run) {
  std::ostringstream out;
  out << run.framework << " stage " << run.stage << " on " << run.ranks << " in groups of " << run.shard_group
      << ", masters " << run.masters << ", bucket " << run.bucket << ", clip " << run.clip << ", " << run.micro_steps
      << " micro-steps, " << run.batch << " x " << run.sequence << " " << run.precision << " " << run.optimizer << " "
      << run.recompute << " " << run.config;
  return out.str();
}

/// How many are equal to the byte; none is further off than 0.1 %.
std::size_t equal_runs(const std::vector<StepRun>& runs) {
  std::size_t equal = 0;
  for (const StepRun& run : runs) {
    const Result<LikeResult> result = predicted(run);
    if (!result) {
      ADD_FAILURE() << named(run) << ": " << to_string(result.error());
      continue;
    }
    equal += test::has_peaks(*result, run.peaks, 0.001, named(run)) ? 1U : 0U;
  }
  return equal;
}

TEST(StepDryRuns, OfOneRankAreEqualToTheByte) {
  const std::vector<StepRun> runs = step_runs("pytorch");
  EXPECT_EQ(runs.size(), 28u);
  EXPECT_EQ(equal_runs(runs), runs.size());
}

TEST(StepDryRuns, UnderDistributedDataParallelAreEqualToTheByte) {
  const std::vector<StepRun> runs = step_runs("ddp");
  EXPECT_EQ(runs.size(), 36u);
  EXPECT_EQ(equal_runs(runs), runs.size());
}

TEST(StepDryRuns, WithAnyActivationFunctionAreEqualToTheByte) {
  const std::vector<StepRun> runs = step_runs("pytorch", "activations.tsv");
  EXPECT_EQ(runs.size(), 45u);
  EXPECT_EQ(equal_runs(runs), runs.size());
}

TEST(StepDryRuns, OfAnActivationFunctionThatIsNotKnownAreRefusedByItsName) {
  StepRun run = step_runs("pytorch").front();
  run.config = R"({"model_type": "gpt2", "vocab_size": 100, "n_embd": 16, "n_layer": 1, "n_head": 1, "n_positions": 64,
                   "activation_function": "xielu", "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0})";
  run.sequence = 8;
  const Result<LikeResult> refused = predicted(run);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::contradiction);
  EXPECT_NE(refused.error().what.find("xielu"), std::string::npos);
}

/// Those whose groups are smaller than the world, or the others.
std::vector<StepRun> in_groups(std::vector<StepRun> runs, bool groups) {
  std::erase_if(runs, [&](const StepRun& run) { return (run.shard_group < run.ranks) != groups; });
  return runs;
}

TEST(StepDryRuns, UnderFsdpAreEqualToTheByte) {
  for (const char* framework : {"fsdp2", "fsdp1"}) {
    const std::vector<StepRun> runs = in_groups(step_runs(framework), false);
    EXPECT_EQ(runs.size(), 28u);
    EXPECT_EQ(equal_runs(runs), runs.size()) << framework;
  }
}

TEST(StepDryRuns, OfGroupsThatShardACopyEachAreEqualToTheByte) {
  for (const char* framework : {"fsdp2", "fsdp1"}) {
    const std::vector<StepRun> runs = in_groups(step_runs(framework), true);
    EXPECT_EQ(runs.size(), 22u);
    EXPECT_EQ(equal_runs(runs), runs.size()) << framework;
  }
}

TEST(StepDryRuns, UnderDeepSpeedAreEqualToTheByte) {
  const std::vector<StepRun> runs = step_runs("deepspeed");
  EXPECT_EQ(runs.size(), 28u);
  EXPECT_EQ(equal_runs(runs), runs.size());
}

}  // namespace
}  // namespace shard::like
