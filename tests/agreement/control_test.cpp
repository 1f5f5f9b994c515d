// Do all ranks decide alike how, and whether, to step, whatever the strategy? Clipping, loss scale, overflow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/agreement/matrix.h"
#include "tests/ir/scaler_table.h"

namespace shard {
namespace {

constexpr std::int64_t kSteps = 4;

struct Cell {
  std::int32_t world;
  std::int32_t stage;
  plan::UnitKind unit = plan::UnitKind::module;
  plan::Partition partition = plan::Partition::flat;
  std::int32_t shard_group = 0;
  std::size_t placement = 0;  ///< of kPlacements
  std::int32_t tensor_parallel = 1;
};
/// Every stage and unit; one rank, several, and ranks in two levels; gradients and steps on the device and the host.
const Cell kCells[] = {
    {1, 0},
    {1, 0, plan::UnitKind::module, plan::Partition::flat, 0, 1},
    {2, 0},
    {4, 0, plan::UnitKind::chunk, plan::Partition::flat, 0, 3},
    {2, 1, plan::UnitKind::tensor, plan::Partition::flat, 0, 4},
    {4, 1},
    {4, 1, plan::UnitKind::module, plan::Partition::parameter, 0, 1},
    {2, 2, plan::UnitKind::bucket},
    {4, 2, plan::UnitKind::chunk, plan::Partition::flat, 0, 2},
    {2, 3, plan::UnitKind::chunk, plan::Partition::flat, 0, 6},
    {4, 3},
    {4, 2, plan::UnitKind::module, plan::Partition::flat, 2, 7},
    {4, 3, plan::UnitKind::tensor, plan::Partition::flat, 2, 3},
};

plan::Strategy strategy_of(const Cell& cell) {
  return {.world_size = cell.world * cell.tensor_parallel,
          .stage = cell.stage,
          .unit = cell.unit,
          .partition = cell.partition,
          .chunk_elems = Elems{30'000},
          .micro_batch = 1,
          .global_batch = 4,
          .sequence = 8,
          .threads = cell.world == 2 ? 2 : 1,
          .tensor_parallel = cell.tensor_parallel,
          .shard_group = cell.shard_group,
          .placement = kPlacements[cell.placement]};
}

train::SessionOptions session() {
  return {.steps = kSteps,
          .scalars = {.weight_decay = 0.01},
          .seed = 7,
          .after_step = {},
          .before_phase = {},
          .disk_path = std::filesystem::temp_directory_path().string()};
}

InProcessRun run(const plan::Strategy& strategy, const train::SessionOptions& options) {
  static const auto model = load_model("gpt2-nano");
  auto result = run_in_process(model, strategy, options);
  EXPECT_TRUE(result) << to_string(strategy) << ": " << to_string(result.error());
  if (!result) return {};
  expect_as_planned(*result, options.steps, to_string(strategy));
  return std::move(*result);
}

/// What every step decided, as all ranks must have it.
std::vector<plan::ControlBlock> controls(const InProcessRun& run) {
  if (run.ranks.empty()) return {};
  for (const train::SessionResult& rank : run.ranks) {
    EXPECT_EQ(rank.controls.size(), rank.losses.size());
    for (std::size_t i = 0; i < rank.controls.size(); ++i) {
      const plan::ControlBlock& own = rank.controls[i];
      const plan::ControlBlock& first = run.ranks[0].controls[i];
      EXPECT_EQ(own.skip, first.skip);
      EXPECT_EQ(own.scale_before, first.scale_before);
      EXPECT_EQ(own.scale_after, first.scale_after);
      EXPECT_EQ(own.multiplier, first.multiplier);
      EXPECT_EQ(own.rank, first.rank);
      EXPECT_EQ(own.tensor, first.tensor);
    }
  }
  return run.ranks[0].controls;
}

std::string sha_of(const InProcessRun& run) {
  return run.ranks.empty() ? "" : run.ranks[0].state_sha256;
}

class Clipping : public testing::TestWithParam<plan::Precision> {};

TEST_P(Clipping, IsTheSameHoweverGradientsAreCut) {
  std::string sha;
  std::vector<double> norms;
  for (const Cell& cell : kCells) {
    plan::Strategy s = strategy_of(cell);
    s.precision = GetParam();
    s.clip_norm = true;
    train::SessionOptions options = session();
    options.knobs.max_norm = 0.5F;
    const InProcessRun clipped = run(s, options);
    const auto blocks = controls(clipped);
    ASSERT_EQ(blocks.size(), std::size_t{kSteps});
    if (sha.empty()) {
      sha = sha_of(clipped);
      for (const plan::ControlBlock& b : blocks) norms.push_back(b.norm);
      EXPECT_GT(norms[0], 0.5) << "the test must clip";
    }
    EXPECT_EQ(sha_of(clipped), sha) << to_string(s);
    for (std::size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(blocks[i].norm, norms.at(i)) << to_string(s);
  }
  plan::Strategy free = strategy_of(kCells[0]);
  free.precision = GetParam();
  EXPECT_NE(sha, sha_of(run(free, session())));
}
INSTANTIATE_TEST_SUITE_P(Control, Clipping,
                         testing::Values(plan::Precision::fp32, plan::Precision::bf16, plan::Precision::fp16),
                         [](const auto& param) { return std::string(plan::to_string(param.param)); });

TEST(Control, AThresholdAboveTheNormChangesNothing) {
  plan::Strategy s = strategy_of({2, 2});
  const std::string free = sha_of(run(s, session()));
  s.clip_norm = true;
  train::SessionOptions options = session();
  options.knobs.max_norm = 1e6F;
  EXPECT_EQ(sha_of(run(s, options)), free);
}

/// Two ranks share each model; world is how many such pairs there are.
const Cell kSharedCells[] = {
    {1, 0, plan::UnitKind::module, plan::Partition::flat, 0, 0, 2},
    {2, 0, plan::UnitKind::chunk, plan::Partition::flat, 0, 3, 2},
    {2, 1, plan::UnitKind::tensor, plan::Partition::flat, 0, 1, 2},
    {2, 1, plan::UnitKind::module, plan::Partition::parameter, 0, 0, 2},
    {4, 2, plan::UnitKind::bucket, plan::Partition::flat, 2, 4, 2},
    {4, 3, plan::UnitKind::chunk, plan::Partition::flat, 0, 6, 2},
};

// Parameters that both have whole enter once: the norm is that of one rank's gradient, but for the rounding of
// products.
TEST(Control, RanksThatShareAModelHaveOneNormToo) {
  train::SessionOptions options = session();
  options.knobs.max_norm = 0.5F;
  plan::Strategy one = strategy_of(kCells[0]);
  one.clip_norm = true;
  const double norm = controls(run(one, options)).at(0).norm;
  std::string sha;
  double shared = 0;
  for (const Cell& cell : kSharedCells) {
    plan::Strategy s = strategy_of(cell);
    s.clip_norm = true;
    const InProcessRun clipped = run(s, options);
    const auto blocks = controls(clipped);
    ASSERT_EQ(blocks.size(), std::size_t{kSteps});
    EXPECT_NEAR(blocks[0].norm, norm, 1e-6 * norm) << to_string(s);
    if (sha.empty()) {
      sha = sha_of(clipped);
      shared = blocks[0].norm;
    }
    EXPECT_EQ(blocks[0].norm, shared) << to_string(s);
    EXPECT_EQ(sha_of(clipped), sha) << to_string(s);
  }
}

// fp16: an overflow that one of a pair sees skips the step on all.
TEST(Control, RanksThatShareAModelSkipTogether) {
  std::string sha;
  for (const Cell& cell : kSharedCells) {
    plan::Strategy s = strategy_of(cell);
    s.precision = plan::Precision::fp16;
    train::SessionOptions options = session();
    options.knobs.scaler = {.initial_scale = 16, .min_scale = 8, .growth_interval = 2, .hysteresis = 1};
    options.inject = {{.rank = s.world_size - 1, .step = 1}};
    const InProcessRun done = run(s, options);
    const auto blocks = controls(done);
    ASSERT_EQ(blocks.size(), std::size_t{kSteps});
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i].skip, i == 1 ? 1 : 0) << to_string(s) << " step " << i;
      EXPECT_EQ(std::isfinite(blocks[i].norm), i != 1);
    }
    // What one of a pair hands on reaches the other: the first of the pair is named.
    EXPECT_EQ(blocks[1].rank / 2, cell.world - 1) << to_string(s);
    EXPECT_EQ(blocks[2].scale_before, 8.0F) << to_string(s);
    EXPECT_EQ(blocks[3].scale_after, 16.0F) << to_string(s);
    if (sha.empty()) sha = sha_of(done);
    EXPECT_EQ(sha_of(done), sha) << to_string(s);
  }
}

// The scale is a power of two: what the loss gains, steps lose again, to the bit.
TEST(Control, ALossScaleIsGoneFromWhatIsStepped) {
  const std::string unscaled = sha_of(run(strategy_of(kCells[0]), session()));
  train::SessionOptions options = session();
  options.knobs.scaler.growth_interval = 2;
  for (const Cell& cell : kCells) {
    plan::Strategy s = strategy_of(cell);
    s.loss_scaling = true;
    const InProcessRun scaled = run(s, options);
    EXPECT_EQ(sha_of(scaled), unscaled) << to_string(s);
    const auto blocks = controls(scaled);
    ASSERT_EQ(blocks.size(), std::size_t{kSteps});
    EXPECT_EQ(blocks[0].scale_before, 65536.0F);
    EXPECT_EQ(blocks[3].scale_after, 4 * 65536.0F);
  }
}

TEST(Control, ANormIsThatOfTheGradientWithoutItsLossScale) {
  plan::Strategy s = strategy_of({2, 3});
  s.clip_norm = true;
  train::SessionOptions options = session();
  options.knobs.max_norm = 0.5F;
  const InProcessRun unscaled = run(s, options);
  s.loss_scaling = true;
  const InProcessRun scaled = run(s, options);
  EXPECT_EQ(sha_of(scaled), sha_of(unscaled));
  const auto with = controls(scaled);
  const auto without = controls(unscaled);
  ASSERT_EQ(with.size(), without.size());
  for (std::size_t i = 0; i < with.size(); ++i) EXPECT_EQ(with[i].norm, without[i].norm);
}

// Divided by powers of two, before or after.
TEST(Control, APredivideFactorDividesInAll) {
  const std::string whole = sha_of(run(strategy_of(kCells[0]), session()));
  for (const Cell& cell : {Cell{4, 0}, Cell{4, 2}, Cell{4, 3}}) {
    plan::Strategy s = strategy_of(cell);
    s.predivide = 2;
    EXPECT_EQ(sha_of(run(s, session())), whole) << to_string(s);
  }
  plan::Strategy s = strategy_of({2, 1});
  train::SessionOptions options = session();
  options.knobs.max_norm = 0.5F;
  s.clip_norm = true;
  const auto plain = run(s, options);
  s.predivide = 0.5F;
  const auto divided = run(s, options);
  EXPECT_EQ(sha_of(divided), sha_of(plain));
  EXPECT_EQ(controls(divided)[2].norm, controls(plain)[2].norm);
}

// The rule's own table for hysteresis 1, growth after 2 good steps, from 16 down to no less than 8:
//   step      1   2   3   4   behind
//   overflow      x
//   scale    16  16   8   8       16
TEST(Control, AnOverflowOnOneRankSkipsTheStepOnAll) {
  const std::vector<float> scale{16, 16, 8, 8, 16};
  std::string sha;
  for (const Cell& cell : kCells) {
    plan::Strategy s = strategy_of(cell);
    s.loss_scaling = true;
    train::SessionOptions options = session();
    options.knobs.scaler = {.initial_scale = 16, .min_scale = 8, .growth_interval = 2, .hysteresis = 1};
    options.inject = {{.rank = cell.world - 1, .step = 1}};
    const InProcessRun done = run(s, options);
    const auto blocks = controls(done);
    ASSERT_EQ(blocks.size(), std::size_t{kSteps});
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i].scale_before, scale[i]) << to_string(s) << " step " << i;
      EXPECT_EQ(blocks[i].skip, i == 1 ? 1 : 0) << to_string(s) << " step " << i;
      EXPECT_EQ(std::isfinite(blocks[i].norm), i != 1);
    }
    EXPECT_EQ(blocks[3].scale_after, scale[4]);
    EXPECT_EQ(blocks[1].rank, cell.world - 1) << to_string(s);
    if (sha.empty()) sha = sha_of(done);
    EXPECT_EQ(sha_of(done), sha) << to_string(s);
  }
}

// fp16, overflows injected on one rank as the table of SPEC.md has them: all ranks skip those steps, and the scale of
// every step is the table's, whatever the strategy.
TEST(Control, TheScaleOfARunFollowsTheTableOfTheSpecification) {
  const std::vector<test::ScalerRow> table = test::scaler_table();
  std::string sha;
  for (const Cell& cell : {kCells[0], kCells[1], kCells[5], kCells[6], kCells[8], kCells[11]}) {
    plan::Strategy s = strategy_of(cell);
    s.precision = plan::Precision::fp16;
    train::SessionOptions options = session();
    options.steps = static_cast<std::int64_t>(table.size());
    options.knobs.scaler = test::kTableKnobs;
    for (std::size_t i = 0; i < table.size(); ++i)
      if (table[i].overflow) options.inject.push_back({.rank = cell.world / 2, .step = static_cast<std::int64_t>(i)});
    const InProcessRun done = run(s, options);
    const auto blocks = controls(done);
    ASSERT_EQ(blocks.size(), table.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i].skip, table[i].overflow ? 1 : 0) << to_string(s) << " step " << i + 1;
      EXPECT_EQ(blocks[i].scale_before, table[i].scale) << to_string(s) << " step " << i + 1;
      EXPECT_EQ(blocks[i].scale_after, table[i].behind.scale) << to_string(s) << " step " << i + 1;
      EXPECT_EQ(blocks[i].rank, table[i].overflow ? cell.world / 2 : -1) << to_string(s) << " step " << i + 1;
    }
    if (sha.empty()) sha = sha_of(done);
    EXPECT_EQ(sha_of(done), sha) << to_string(s);
  }
}

// fp16 overflows by itself where the scale is too large for it; everyone backs off until it fits.
TEST(Control, AScaleTooLargeForFp16BacksOff) {
  std::vector<float> scales;
  for (const Cell& cell : {kCells[0], kCells[4], kCells[9]}) {
    plan::Strategy s = strategy_of(cell);
    s.precision = plan::Precision::fp16;
    train::SessionOptions options = session();
    options.steps = 8;
    options.knobs.scaler = {.initial_scale = 1 << 26, .backoff_factor = 0.0625F, .hysteresis = 1};
    const auto blocks = controls(run(s, options));
    ASSERT_EQ(blocks.size(), 8u);
    EXPECT_EQ(blocks.front().skip, 1);
    EXPECT_EQ(blocks.back().skip, 0);
    std::vector<float> own;
    for (const plan::ControlBlock& b : blocks) own.push_back(b.scale_before);
    if (scales.empty()) scales = own;
    EXPECT_EQ(own, scales) << to_string(s);
  }
}

// Backward reaches the last layer first.
TEST(Control, TheFirstTensorThatOverflowedIsNamed) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  for (const Cell& cell : {Cell{1, 0}, Cell{2, 0}, Cell{2, 1}, Cell{2, 2}, Cell{2, 3}}) {
    plan::Strategy s = strategy_of(cell);
    s.loss_scaling = true;
    train::SessionOptions options = session();
    options.inject = {{.rank = 0, .step = 0}};
    const auto blocks = controls(run(s, options));
    ASSERT_FALSE(blocks.empty());
    EXPECT_EQ(blocks[0].rank, 0);
    EXPECT_EQ(model->parameters[static_cast<std::size_t>(blocks[0].tensor)].name, "transformer.ln_f.bias")
        << to_string(s);
    EXPECT_EQ(blocks[0].element, 0);
    EXPECT_EQ(blocks[1].tensor, -1);
  }
}

// A rate of 0 makes sgd change nothing, as a skipped step must.
TEST(Control, ASkippedStepChangesNothing) {
  plan::Strategy s = strategy_of({2, 2});
  s.loss_scaling = true;
  s.optimizer = plan::OptimizerKind::sgd;
  train::SessionOptions options = session();
  options.inject = {{.rank = 1, .step = 2}};
  const std::string skipped = sha_of(run(s, options));
  options.inject = {};
  options.learning_rate = [](std::int64_t step) { return step == 2 ? 0.0 : 1e-3; };
  EXPECT_EQ(sha_of(run(s, options)), skipped);
}

/// Lets a test look into the arena when a run has ended.
class Spy final : public Communicator {
 public:
  Spy() : real_(make_single()) {}
  [[nodiscard]] Rank rank() const override { return real_->rank(); }
  [[nodiscard]] int size() const override { return real_->size(); }
  [[nodiscard]] std::string_view name() const override { return real_->name(); }
  [[nodiscard]] bool needs_workspace() const override { return real_->needs_workspace(); }
  [[nodiscard]] Result<std::span<std::byte>> make_arena(Bytes bytes, CommLimits limits) override {
    auto made = real_->make_arena(bytes, limits);
    if (made) arena_ = *made;
    return made;
  }
  [[nodiscard]] Result<Ticket> start(const CollectiveRequest& request) override { return real_->start(request); }
  [[nodiscard]] Result<bool> poll(Ticket ticket) override { return real_->poll(ticket); }
  [[nodiscard]] std::chrono::nanoseconds moving_time(Ticket ticket) const override {
    return real_->moving_time(ticket);
  }
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own) override {
    return real_->exchange(own);
  }
  void abort(std::string_view reason) override { real_->abort(reason); }
  [[nodiscard]] std::span<std::byte> arena() const { return arena_; }

 private:
  std::unique_ptr<Communicator> real_;
  std::span<std::byte> arena_;
};

TEST(Control, ASkippedStepIsNotCounted) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  plan::Strategy s = strategy_of({1, 0});
  s.loss_scaling = true;
  const auto plans = plan::compile(model, s);
  ASSERT_TRUE(plans);
  const plan::Plan& plan = plans->of_rank(0);
  auto data = open_data("random", *model, {.batch = 1, .sequence = s.sequence, .seed = 7});
  ASSERT_TRUE(data);
  Spy spy;
  cpu::ThreadPool pool(1);
  train::SessionOptions options = session();
  options.inject = {{.rank = 0, .step = 0}};
  ASSERT_TRUE(run_session(plan, spy, **data, pool, options));
  const auto counts = std::ranges::find(plan.buffers, "step counts", &plan::Buffer::name);
  ASSERT_NE(counts, plan.buffers.end());
  for (std::size_t p = 0; p < model->parameters.size(); ++p) {
    std::int32_t count = 0;
    std::memcpy(&count, spy.arena().data() + counts->offset + 4 * static_cast<std::ptrdiff_t>(p), sizeof count);
    EXPECT_EQ(count, kSteps - 1) << model->parameters[p].name;
  }
}

}  // namespace
}  // namespace shard
