// Does the emulation of FSDP reach the peaks that PyTorch itself reached on rank 0 of a stand-in GPU, to the byte?
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sim/like/simulate_eager.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

/// A row of tests/data/eager/sharded_dryruns.tsv (made by make_sharded_dryruns.py).
struct ShardedRun {
  std::string framework, masters, code, config, precision, optimizer;
  std::int32_t ranks = 0, stage = 0;
  std::int64_t batch = 0, sequence = 0, reserved = 0;
  std::vector<std::int64_t> peaks;  ///< creation, then three steps
};

std::vector<ShardedRun> sharded_runs() {
  std::ifstream in(std::string(TEST_DATA) + "/data/eager/sharded_dryruns.tsv");
  std::vector<ShardedRun> runs;
  std::string line;
  std::getline(in, line);  // the columns' names
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    ShardedRun run;
    fields >> run.framework >> run.ranks >> run.stage >> run.masters >> run.code >> std::ws;
    std::getline(fields, run.config, '\t');
    fields >> run.batch >> run.sequence >> run.precision >> run.optimizer;
    run.peaks.resize(4);
    for (std::int64_t& peak : run.peaks) fields >> peak;
    fields >> run.reserved;
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<LikeResult> predicted(const ShardedRun& run) {
  plan::Strategy strategy;
  strategy.world_size = run.ranks;
  strategy.stage = run.stage;
  strategy.micro_batch = run.batch;
  strategy.global_batch = run.batch * run.ranks;
  strategy.sequence = run.sequence;
  strategy.precision = run.precision == "bf16" ? plan::Precision::bf16 : plan::Precision::fp32;
  EagerOptions options;
  const bool flat = run.framework == "fsdp1-flat";
  options.framework = *eager_framework(flat ? "fsdp1" : run.framework);
  options.original_parameters = !flat;
  options.masters = run.masters == "fp32";
  if (run.code == "cs336") options.code = eager::Code::course;
  if (run.optimizer == "fused") options.update = eager::Update::fused;
  if (run.optimizer == "for-loop") options.update = eager::Update::for_loop;
  return simulate_eager(std::make_shared<model::Model>(test::model_of(run.config)), strategy, options);
}

TEST(ShardedDryRuns, PeaksAndReservedBytesOfRankZeroAreThoseOfPyTorch) {
  const std::vector<ShardedRun> runs = sharded_runs();
  ASSERT_GE(runs.size(), 80U);
  std::size_t equal = 0;
  for (const ShardedRun& run : runs) {
    const Result<LikeResult> result = predicted(run);
    ASSERT_TRUE(result) << to_string(result.error());
    const std::vector<std::int64_t> peaks = test::maxima(*result);
    const std::int64_t reserved = result->peak_reserved().count();
    equal += peaks == run.peaks && reserved == run.reserved ? 1 : 0;
    for (std::size_t i = 0; i < run.peaks.size(); ++i)
      EXPECT_NEAR(static_cast<double>(peaks.at(i)), static_cast<double>(run.peaks[i]),
                  0.01 * static_cast<double>(run.peaks[i]))
          << run.framework << " " << run.config << ", moment " << i;
  }
  EXPECT_GE(equal * 100, runs.size() * 95) << equal << " of " << runs.size() << " to the byte, reserved bytes too";
}

}  // namespace
}  // namespace shard::like
