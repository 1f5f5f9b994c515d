// Does the emulation of FSDP that offloads to the CPU reach the peaks, of GPU and host, that PyTorch itself reached?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "sim/like/simulate_eager.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

/// A row of tests/data/eager/offload_dryruns.tsv (made by make_offload_dryruns.py).
struct OffloadRun {
  std::string framework, masters, offload, config, precision, optimizer, recompute;
  std::int32_t ranks = 0, rank = 0, shard_group = 0, stage = 0;
  bool original_parameters = true, clip = false;
  std::int64_t micro_steps = 0, batch = 0, sequence = 0, reserved = 0, pinned = 0, host_states = 0;
  std::vector<std::int64_t> peaks{};  ///< creation, then three steps
};

plan::Strategy offloading(const OffloadRun& run) {
  plan::Strategy strategy;
  strategy.world_size = run.ranks;
  strategy.stage = run.stage;
  if (run.shard_group < run.ranks) strategy.shard_group = run.shard_group;
  strategy.micro_batch = run.batch;
  strategy.global_batch = run.batch * run.ranks * run.micro_steps;
  strategy.sequence = run.sequence;
  strategy.precision = run.precision == "bf16" ? plan::Precision::bf16 : plan::Precision::fp32;
  strategy.clip_norm = run.clip;
  strategy.placement.policy = plan::PlacementPolicy::host;
  if (run.recompute == "block") strategy.recompute = plan::Recompute::block;
  return strategy;
}

Result<LikeResult> predicted_offload(const OffloadRun& run) {
  EagerOptions options;
  options.framework = eager_framework(run.framework).value();
  options.masters = run.masters == "fp32";
  options.original_parameters = run.original_parameters;
  options.pin_memory = run.offload == "pinned" ? Pin::yes : Pin::no;
  if (run.optimizer == "fused") options.update = eager::Update::fused;
  return simulate_eager(std::make_shared<model::Model>(test::model_of(run.config)), offloading(run), options);
}

std::vector<OffloadRun> offload_runs(const std::string& framework) {
  std::ifstream in(std::string(TEST_DATA) + "/data/eager/offload_dryruns.tsv");
  std::vector<OffloadRun> runs;
  std::string line;
  std::getline(in, line);  // the columns' names
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    OffloadRun run;
    fields >> run.framework >> run.ranks >> run.rank >> run.shard_group >> run.stage >> run.masters;
    fields >> run.original_parameters >> run.offload >> run.clip >> run.micro_steps;
    fields.ignore(1);
    std::getline(fields, run.config, '\t');
    fields >> run.batch >> run.sequence >> run.precision >> run.optimizer >> run.recompute;
    run.peaks.resize(4);
    for (std::int64_t& peak : run.peaks) fields >> peak;
    fields >> run.reserved >> run.pinned >> run.host_states;
    if (run.framework == framework) runs.push_back(std::move(run));
  }
  return runs;
}

std::string title(const OffloadRun& run) {
  std::ostringstream out;
  out << run.framework << " stage " << run.stage << ", rank " << run.rank << " of " << run.ranks << " in groups of "
      << run.shard_group << ", masters " << run.masters << ", use_orig_params " << run.original_parameters << ", "
      << run.offload << ", clip " << run.clip << ", " << run.micro_steps << " micro-steps, " << run.batch << " x "
      << run.sequence << " " << run.precision << " " << run.optimizer << " " << run.recompute << " " << run.config;
  return out.str();
}

/// Of moments on the host; a step count has no name.
std::int64_t host_states(const LikeResult& result) {
  std::int64_t bytes = 0;
  for (const Allocation& a : result.program->allocations)
    if (a.memory == Memory::host && a.category == Category::optimizer_state && !a.name.empty())
      bytes += a.bytes.count();
  return bytes;
}

/// How many have all peaks of the GPU equal to the byte. None is further off than 0.1 %, and reserved bytes than 2 % or
/// one segment of small blocks.
std::size_t equal_offload_runs(const std::vector<OffloadRun>& runs) {
  constexpr std::int64_t kSegment = 2 << 20;
  std::size_t equal = 0;
  for (const OffloadRun& run : runs) {
    const Result<LikeResult> result = predicted_offload(run);
    if (!result) {
      ADD_FAILURE() << title(run) << ": " << to_string(result.error());
      continue;
    }
    equal += test::has_peaks(*result, run.peaks, 0.001, title(run)) ? 1U : 0U;
    EXPECT_LE(std::abs(result->peak_reserved().count() - run.reserved), std::max(run.reserved / 50, kSegment))
        << title(run);
  }
  return equal;
}

TEST(OffloadDryRuns, AreEqualToTheByte) {
  for (const char* framework : {"fsdp2", "fsdp1"}) {
    const std::vector<OffloadRun> runs = offload_runs(framework);
    EXPECT_GE(runs.size(), 30u);
    EXPECT_EQ(equal_offload_runs(runs), runs.size()) << framework;
  }
}

/// Rank 0's shards are the largest. A checkpointed block has PyTorch look at a boolean, through a pinned byte.
TEST(OffloadDryRuns, PinnedMemoryAndStatesOnTheHostAreEqualToTheByte) {
  for (const char* framework : {"fsdp2", "fsdp1"})
    for (const OffloadRun& run : offload_runs(framework)) {
      if (run.rank != 0) continue;
      const Result<LikeResult> result = predicted_offload(run);
      ASSERT_TRUE(result) << to_string(result.error());
      EXPECT_EQ(result->pinned_peak.count() + (run.recompute == "block" ? 1 : 0), run.pinned) << title(run);
      EXPECT_EQ(host_states(*result), run.host_states) << title(run);
      EXPECT_GE(result->host_peak.count(), run.host_states) << title(run);
    }
}

/// PyTorch drops the sums of micro-steps under fsdp1 (its warning at no_sync()), and offloads all or nothing.
TEST(OffloadDryRuns, WhatIsNoOffloadOfPyTorchIsRefused) {
  const auto refusal = [](const OffloadRun& run, const auto& change) {
    plan::Strategy strategy = offloading(run);
    EagerOptions options;
    options.framework = eager_framework(run.framework).value();
    change(strategy, options);
    const Result<LikeResult> result =
        simulate_eager(std::make_shared<model::Model>(test::model_of(run.config)), strategy, options);
    return result ? std::string() : result.error().what;
  };
  const OffloadRun one = offload_runs("fsdp1").front(), two = offload_runs("fsdp2").front();
  EXPECT_EQ(refusal(two, [](plan::Strategy&, EagerOptions&) {}), "");
  EXPECT_THAT(refusal(one, [](plan::Strategy& s, EagerOptions&) { s.global_batch *= 2; }),
              testing::HasSubstr("gradient accumulation"));
  EXPECT_THAT(refusal(one, [](plan::Strategy&, EagerOptions& o) { o.pin_memory = Pin::no; }),
              testing::HasSubstr("--pin-memory"));
  EXPECT_THAT(refusal(two, [](plan::Strategy& s, EagerOptions&) { s.placement.parameters = plan::kOnDevice; }),
              testing::HasSubstr("--param-placement"));
  EXPECT_THAT(refusal(two, [](plan::Strategy& s, EagerOptions&) { s.placement.optimizer = plan::kOnDisk; }),
              testing::HasSubstr("--optimizer-placement"));
  EXPECT_THAT(refusal(two, [](plan::Strategy& s, EagerOptions& o) { s.placement = {}, o.pin_memory = Pin::no; }),
              testing::HasSubstr("--pin-memory"));
}

}  // namespace
}  // namespace shard::like
