// Does the emulation of FSDP reach the peaks that PyTorch itself reached on a stand-in GPU, to the byte?
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sim/like/simulate_eager.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

/// A row of tests/data/eager/sharded_dryruns.tsv (made by make_sharded_dryruns.py), and what is predicted of it.
struct ShardedRun {
  std::string framework, masters, code, config, precision, optimizer, recompute{};
  std::int32_t ranks = 0, stage = 0;
  std::int64_t batch = 0, sequence = 0, reserved = 0;
  std::vector<std::int64_t> peaks;  ///< creation, then three steps
};

LikeResult predicted(const ShardedRun& run, eager::Version version = eager::kNewest, bool units_at_ends = false) {
  plan::Strategy strategy;
  strategy.world_size = run.ranks;
  strategy.stage = run.stage;
  strategy.micro_batch = run.batch;
  strategy.global_batch = run.batch * run.ranks;
  strategy.sequence = run.sequence;
  strategy.precision = run.precision == "bf16" ? plan::Precision::bf16 : plan::Precision::fp32;
  if (run.recompute == "block") strategy.recompute = plan::Recompute::block;
  EagerOptions options;
  options.framework = eager_framework(run.framework).value();
  options.version = version;
  options.masters = run.masters == "fp32";
  options.units_at_ends = units_at_ends;
  if (run.optimizer == "fused") options.update = eager::Update::fused;
  if (run.optimizer == "for-loop") options.update = eager::Update::for_loop;
  const auto model = std::make_shared<model::Model>(test::model_of(run.config));
  Result<LikeResult> result = simulate_eager(model, strategy, options);
  if (result) return *result;
  ADD_FAILURE() << to_string(result.error());
  return {};
}

/// Of all frameworks and policies where none is said.
std::vector<ShardedRun> runs_of(const std::string& framework, const std::string& recompute,
                                const std::string& table = "sharded_dryruns.tsv") {
  std::ifstream in(std::string(TEST_DATA) + "/data/eager/" + table);
  std::vector<ShardedRun> runs;
  std::string line;
  std::getline(in, line);  // the columns' names
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    ShardedRun run;
    fields >> run.framework >> run.ranks >> run.stage >> run.masters >> run.code;
    fields.ignore(1);
    std::getline(fields, run.config, '\t');
    fields >> run.batch >> run.sequence >> run.precision >> run.optimizer;
    run.peaks.resize(4);
    for (std::int64_t& peak : run.peaks) fields >> peak;
    fields >> run.reserved >> run.recompute;
    if ((framework.empty() || run.framework == framework) && (recompute.empty() || run.recompute == recompute))
      runs.push_back(std::move(run));
  }
  return runs;
}

/// How many of the runs are predicted to the byte; the others' peaks are within 0.1 %; reserved bytes are of all.
std::size_t equal_runs(const std::vector<ShardedRun>& runs) {
  std::size_t equal = 0;
  for (const ShardedRun& run : runs) {
    const LikeResult result = predicted(run);
    const std::vector<std::int64_t> peaks = test::maxima(result);
    equal += peaks == run.peaks ? 1 : 0;
    const auto near = [&](std::int64_t is, std::int64_t should, double share) {
      EXPECT_NEAR(static_cast<double>(is), static_cast<double>(should), share * static_cast<double>(should))
          << run.framework << " on " << run.ranks << ", " << run.config;
    };
    for (std::size_t i = 0; i < run.peaks.size() && i < peaks.size(); ++i) near(peaks[i], run.peaks[i], 0.001);
    near(result.peak_reserved().count(), run.reserved, 0);
  }
  return equal;
}

TEST(ShardedDryRuns, Fsdp2IsEqualToTheByte) {
  const std::vector<ShardedRun> runs = runs_of("fsdp2", "none");
  EXPECT_EQ(runs.size(), 50u);
  EXPECT_EQ(equal_runs(runs), runs.size());
}

TEST(ShardedDryRuns, Fsdp1IsEqualToTheByte) {
  const std::vector<ShardedRun> runs = runs_of("fsdp1", "none");
  EXPECT_EQ(runs.size(), 30u);
  EXPECT_EQ(equal_runs(runs), runs.size());
}

TEST(ShardedDryRuns, BlocksThatAreCheckpointedAreEqualToTheByteButForOne) {
  const std::vector<ShardedRun> under_fsdp2 = runs_of("fsdp2", "block"), under_fsdp1 = runs_of("fsdp1", "block");
  EXPECT_EQ(under_fsdp2.size(), 30u);
  EXPECT_GE(equal_runs(under_fsdp2) + 1, under_fsdp2.size());
  EXPECT_EQ(under_fsdp1.size(), 30u);
  EXPECT_EQ(equal_runs(under_fsdp1), under_fsdp1.size());
}

/// Families beside those of sharded_dryruns.tsv. A buffer of codegen's is a percent or two of so small a creation, and
/// one step of mpt is 1.1 % low; the others are equal but for a few blocks.
TEST(ShardedDryRuns, OfOtherFamiliesMostAreEqualAndNearlyAllWithinAHundredthOfAPercent) {
  std::size_t equal = 0;
  const std::vector<ShardedRun> runs = runs_of("", "", "sharded_families.tsv");
  for (const ShardedRun& run : runs) {
    const bool codegen = run.config.find("\"codegen\"") != std::string::npos;
    const bool mpt = run.config.find("\"mpt\"") != std::string::npos;
    const double share = mpt ? 0.012 : codegen ? 0.001 : 1e-4;
    equal += test::has_peaks(predicted(run), run.peaks, share, run.config, codegen ? 0.02 : 0) ? 1U : 0U;
  }
  EXPECT_EQ(runs.size(), 80U);
  EXPECT_GE(equal * 100, runs.size() * 75) << equal << " of " << runs.size() << " to the byte";
}

/// Programs whose ends are units as accelerate makes them (make_sharded_dryruns.py --units ends), tied or not; steps of
/// one, a gpt_neox, are 0.35 % low.
TEST(ShardedDryRuns, WithUnitsAtAModelsEndsNearlyAllAreEqualToTheByte) {
  std::size_t equal = 0;
  const std::vector<ShardedRun> runs = runs_of("fsdp2", "", "accelerate_units_dryruns.tsv");
  for (const ShardedRun& run : runs) {
    const LikeResult result = predicted(run, eager::kNewest, true);
    const bool gpt_neox = run.config.find("\"gpt_neox\"") != std::string::npos;
    equal += test::has_peaks(result, run.peaks, gpt_neox ? 4e-3 : 1e-4, run.config) ? 1U : 0U;
  }
  EXPECT_EQ(runs.size(), 60U);
  EXPECT_GE(equal + 3, runs.size());
}

/// torchtitan's units are its own.
TEST(ShardedDryRuns, UnitsAtEndsAreOfTransformersModels) {
  EagerOptions options{.framework = eager::Framework::fsdp2};
  options.code = eager::Code::torchtitan;
  options.units_at_ends = true;
  plan::Strategy strategy;
  strategy.world_size = 2;
  strategy.stage = 3;
  strategy.sequence = 64;
  const auto model = std::make_shared<model::Model>(test::model_of(runs_of("fsdp2", "none").front().config));
  const Result<LikeResult> result = simulate_eager(model, strategy, options);
  ASSERT_FALSE(result);
  EXPECT_NE(to_string(result.error()).find("--fsdp-units"), std::string::npos) << to_string(result.error());
}

/// Rows of sharded_dryruns.tsv again under older PyTorch (same_in_version.py).
TEST(ShardedDryRuns, OfOlderReleasesNearlyAllAreEqualAndAllWithinAPercent) {
  for (const eager::Version version : {208, 209, 210}) {
    SCOPED_TRACE(eager::to_text(version));
    std::size_t equal = 0, count = 0;
    for (const ShardedRun& run : runs_of("", "", "sharded_dryruns_2_" + std::to_string(version - 200) + ".tsv")) {
      ++count;
      equal += test::has_peaks(predicted(run, version), run.peaks, 0.01, run.config) ? 1U : 0U;
    }
    EXPECT_GE(count, 15U);
    EXPECT_GE(equal * 100, count * (version < 209 ? 90U : 100U)) << equal << " of " << count << " to the byte";
  }
}

/// hf_trainer_fsdp.csv of foundation-model-stack/fms-acceleration at 876e2ed6fc4e: Mistral-7B on two A100, everything
/// in bf16, whose peak is the optimizer's step. The rest is inputs, rotary tables and scalars of the Trainer.
TEST(ShardedDryRuns, PublishedPeakOfMistralOnTwoGpusIsReachedButForItsInputs) {
  constexpr std::int64_t kPublished = 36'225'939'968, kRest = 240'128;
  constexpr std::int64_t kWorkspaces = 2 * (33'554'432 - 8'519'680);  // of an H100, which the test runs on, and an A100
  const ShardedRun run{.framework = "fsdp1",
                       .masters = "none",
                       .code = "hugging-face",
                       .config = R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096,
                                     "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                                     "intermediate_size": 14336, "max_position_embeddings": 32768,
                                     "tie_word_embeddings": false})",
                       .precision = "bf16",
                       .optimizer = "foreach",
                       .ranks = 2,
                       .stage = 3,
                       .batch = 1,
                       .sequence = 512,
                       .reserved = 0,
                       .peaks = {}};
  const std::int64_t peak = predicted(run).moments.back().max_allocated.count() - kWorkspaces;
  EXPECT_LE(peak, kPublished);
  EXPECT_GE(peak, kPublished - kRest);
}

}  // namespace
}  // namespace shard::like
