// Do all strategies begin with the same bits of a checkpoint, reading what they keep, and is what is saved what was
// there?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "executor/state/weights.h"
#include "executor/state/weights_writer.h"
#include "tests/agreement/matrix.h"
#include "tests/state/files.h"

namespace shard {
namespace {

using plan::Strategy;
using plan::UnitKind;
using Values = std::map<std::int32_t, std::vector<float>>;

constexpr const char* kLlama = TEST_DATA "/data/models/llama-nano.json";

Strategy strategy(std::int32_t world, std::int32_t stage, UnitKind unit = UnitKind::module) {
  return {.world_size = world,
          .stage = stage,
          .unit = unit,
          .chunk_elems = Elems{30'000},
          .micro_batch = 1,
          .global_batch = 4,
          .sequence = 8};
}
/// Nothing but parameters: it may end before the first step.
Strategy stateless(Strategy s) {
  s.optimizer = plan::OptimizerKind::sgd;
  return s;
}

train::SessionOptions session(std::int64_t steps, std::uint64_t seed = 7) {
  return {.steps = steps, .scalars = {}, .seed = seed, .after_step = {}, .before_phase = {}};
}

InProcessRun run(const std::shared_ptr<const model::Model>& model, const Strategy& s,
                 const train::SessionOptions& options) {
  auto done = run_in_process(model, s, options);
  if (done) return std::move(*done);
  ADD_FAILURE() << to_string(s) << ": " << to_string(done.error());
  return {.plans = {}, .ranks = std::vector<train::SessionResult>(1)};
}

/// Runs and saves what is there at the end.
InProcessRun run_and_save(const std::shared_ptr<const model::Model>& model, const Strategy& s,
                          train::SessionOptions options, const std::filesystem::path& folder) {
  const auto plans = plan::compile(model, s);
  EXPECT_TRUE(plans);
  auto writer = WeightsWriter::create({.folder = folder, .config = {}}, plans->of_rank(0));
  EXPECT_TRUE(writer);
  options.read_state = [&](model::ParamId p, plan::Digest::Content c, std::span<const std::byte> elements) {
    writer->add(p, c, elements);
  };
  InProcessRun done = run(model, s, options);
  const auto own = writer->finish_part();
  EXPECT_TRUE(own) << to_string(own.error());
  EXPECT_TRUE(writer->check(std::span(&*own, 1)));
  EXPECT_TRUE(writer->finish());
  return done;
}

/// A session that begins with the file; counts its bytes over all ranks.
train::SessionOptions begin_with(const Weights& weights, train::SessionOptions options,
                                 std::atomic<std::int64_t>* bytes = nullptr) {
  options.first_values = [&weights, bytes](model::ParamId p, std::int64_t first, std::span<float> values) {
    if (bytes != nullptr) *bytes += weights.stored(p, static_cast<std::int64_t>(values.size())).count();
    return weights.read(p, first, values);
  };
  return options;
}

/// Keeps the fp32 values that the digest shows, masters where there are some.
train::SessionOptions keep_values(Values& values, train::SessionOptions options, bool masters) {
  options.read_state = [&values, masters](model::ParamId p, plan::Digest::Content c,
                                          std::span<const std::byte> elements) {
    if (c != (masters ? plan::Digest::Content::master : plan::Digest::Content::parameter)) return;
    const auto* const first = reinterpret_cast<const float*>(elements.data());
    values[p.value].assign(first, first + elements.size() / sizeof(float));
  };
  return options;
}

class WeightsAgreement : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    model_ = load_model(GetParam());
    ASSERT_TRUE(model_);
  }
  std::shared_ptr<const model::Model> model_;
  test::WeightsFolder folder_{"agreement"};
};

TEST_P(WeightsAgreement, EveryStrategyTrainsFromTheFileToTheSameBits) {
  const std::string drawn =
      run_and_save(model_, stateless(strategy(2, 3)), session(0, 7), folder_.path()).ranks[0].state_sha256;
  ASSERT_FALSE(drawn.empty());
  run_and_save(model_, stateless(strategy(1, 0)), session(0, 8), folder_.path() / "other");
  const auto same = Weights::open(folder_.path(), *model_);
  const auto other = Weights::open(folder_.path() / "other", *model_);
  ASSERT_TRUE(same && other);
  const std::string expected = run(model_, strategy(1, 0), session(3)).ranks[0].state_sha256;
  const std::string of_other = run(model_, strategy(1, 0), begin_with(*other, session(3))).ranks[0].state_sha256;
  EXPECT_NE(expected, of_other);
  Strategy by_parameter = strategy(4, 1);
  by_parameter.partition = plan::Partition::parameter;
  for (const Strategy& s : {strategy(1, 0), strategy(4, 0), strategy(2, 1, UnitKind::tensor), by_parameter,
                            strategy(2, 2, UnitKind::bucket), strategy(4, 3), strategy(2, 3, UnitKind::chunk)}) {
    EXPECT_EQ(run(model_, s, begin_with(*same, session(3))).ranks[0].state_sha256, expected) << to_string(s);
    EXPECT_EQ(run(model_, s, begin_with(*other, session(3))).ranks[0].state_sha256, of_other) << to_string(s);
  }
}

TEST_P(WeightsAgreement, WhatIsSavedAfterStepsIsWhatIsLoaded) {
  const std::pair<Strategy, Strategy> kPairs[] = {{strategy(2, 3), strategy(1, 0)},
                                                  {strategy(4, 2, UnitKind::chunk), strategy(2, 1, UnitKind::tensor)},
                                                  {strategy(1, 0), strategy(4, 3, UnitKind::bucket)}};
  for (auto [saver, loader] : kPairs)
    for (const plan::Precision precision : {plan::Precision::fp32, plan::Precision::bf16}) {
      saver.precision = loader.precision = precision;
      const bool masters = precision == plan::Precision::bf16;
      Values trained;
      run(model_, saver, keep_values(trained, session(3), masters));
      run_and_save(model_, saver, session(3), folder_.path());
      const auto weights = Weights::open(folder_.path(), *model_);
      ASSERT_TRUE(weights) << to_string(weights.error());
      Values loaded;
      run(model_, stateless(loader), keep_values(loaded, begin_with(*weights, session(0, 9)), masters));
      ASSERT_EQ(trained.size(), model_->parameters.size());
      EXPECT_EQ(trained, loaded) << to_string(saver) << " into " << to_string(loader);
    }
}

TEST_P(WeightsAgreement, RanksReadWhatTheyKeep) {
  run_and_save(model_, stateless(strategy(1, 0)), session(0), folder_.path());
  const auto weights = Weights::open(folder_.path(), *model_);
  ASSERT_TRUE(weights);
  const std::int64_t all = 4 * model_->parameter_elements();
  for (const auto& [world, stage, copies] : {std::tuple{1, 0, 1}, {4, 3, 1}, {2, 3, 1}, {2, 0, 2}, {4, 1, 4}}) {
    std::atomic<std::int64_t> bytes{0};
    run(model_, stateless(strategy(world, stage)), begin_with(*weights, session(0), &bytes));
    EXPECT_EQ(bytes, copies * all) << world << " ranks, stage " << stage;
  }
}

// Which values a rank of several that share the model has, and what a device is given.
TEST_P(WeightsAgreement, TensorParallelRanksAndDevicesBeginAlike) {
  run_and_save(model_, stateless(strategy(1, 0)), session(0), folder_.path());
  const auto weights = Weights::open(folder_.path(), *model_);
  ASSERT_TRUE(weights);
  Strategy shared = strategy(2, 0);
  shared.tensor_parallel = 2;
  Strategy emulated = strategy(2, 3);
  emulated.device = plan::Device::cuda;
  for (const Strategy& s : {shared, emulated}) {
    const std::string drawn = run(model_, s, session(1, 7)).ranks[0].state_sha256;
    EXPECT_FALSE(drawn.empty());
    EXPECT_EQ(run(model_, s, begin_with(*weights, session(1, 7))).ranks[0].state_sha256, drawn) << to_string(s);
  }
}

TEST_P(WeightsAgreement, FileThatIsCutShortEndsTheRun) {
  run_and_save(model_, stateless(strategy(1, 0)), session(0), folder_.path());
  const auto weights = Weights::open(folder_.path(), *model_);
  ASSERT_TRUE(weights);
  std::filesystem::resize_file(folder_.path() / "model.safetensors", 100'000);
  Strategy emulated = strategy(1, 0);
  emulated.device = plan::Device::cuda;
  for (const Strategy& s : {strategy(2, 3), emulated}) {
    const auto done = run_in_process(model_, s, begin_with(*weights, session(1)));
    ASSERT_FALSE(done) << to_string(s);
    EXPECT_EQ(done.error().code, Errc::malformed) << to_string(done.error());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, WeightsAgreement, testing::Values("gpt2-nano", kLlama),
                         [](const auto& m) { return std::string(m.param == kLlama ? "llama" : "gpt2"); });

}  // namespace
}  // namespace shard
