// The whole product of strategies: every cell trains to the bits of its class, in the memory and calls planned. Hours:
// `make product`, in parts; product_table.py makes docs/agreement.md of what the parts write.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/agreement/bit_class.h"

namespace shard {
namespace {

constexpr std::int64_t kSequence = 32;
constexpr std::int64_t kSteps = 3;

/// Trains one cell and holds its peaks and collectives against its plan. The digest; empty: it failed.
std::string train(const Subject& of, const plan::Strategy& strategy) {
  static std::map<std::string, std::shared_ptr<const model::Model>> models;
  auto& model = models[of.model];
  if (!model) model = load_model(of.model);
  const std::string what = of.model + ' ' + to_string(strategy);
  const auto run = run_in_process(model, strategy, session_of(kSteps));
  if (!run) {
    ADD_FAILURE() << what << ": " << to_string(run.error());
    return {};
  }
  expect_as_planned(*run, kSteps, what);
  return run->ranks[0].state_sha256;
}

/// The digest of a class: of one rank that shards nothing.
const std::string& digest_of(const BitClass& of) {
  static std::map<BitClass, std::string> known;
  std::string& sha = known[of];
  const Subject subject = subject_of(of, kSequence, kSteps);
  if (sha.empty()) sha = train(subject, strategy_of(subject, std::vector<std::size_t>(levels(subject).size())));
  return sha;
}

class Product
    : public testing::TestWithParam<std::tuple<bool, plan::Precision, std::int64_t, std::size_t, std::size_t>> {};

TEST_P(Product, Agrees) {
  const auto& [llama, precision, micro_batches, world, placement] = GetParam();
  const BitClass of{.llama = llama, .precision = precision, .micro_batches = micro_batches};
  const Subject subject = subject_of(of, kSequence, kSteps);
  const std::string& sha = digest_of(of);
  std::size_t cells = 0;
  for (std::size_t stage = 0; stage < 4; ++stage)
    for (std::size_t unit = 0; unit < kUnits.size(); ++unit)
      for (std::size_t recompute = 0; recompute < kRecompute.size(); ++recompute) {
        const plan::Strategy s = strategy_of(subject, {world, stage, unit, recompute, cells++ % 3, 0, 0, placement});
        EXPECT_EQ(train(subject, s), sha) << to_string(s);
      }
  RecordProperty("model", llama ? "llama-nano" : "gpt2-nano");
  RecordProperty("precision", to_string(precision));
  RecordProperty("micro_batches", std::to_string(micro_batches));
  RecordProperty("cells", std::to_string(cells));
  RecordProperty("sha256", sha);
}

std::string name_of_cells(const testing::TestParamInfo<Product::ParamType>& of) {
  const auto& [llama, precision, micro_batches, world, placement] = of.param;
  return name_of({.llama = llama, .precision = precision, .micro_batches = micro_batches}) + "_W" +
         std::to_string(1 << world) + "_placed" + std::to_string(placement);
}

INSTANTIATE_TEST_SUITE_P(
    Whole, Product,
    testing::Combine(testing::Bool(),
                     testing::Values(plan::Precision::fp32, plan::Precision::bf16, plan::Precision::fp16),
                     testing::Values(std::int64_t{8}, std::int64_t{32}), testing::Range(std::size_t{0}, std::size_t{4}),
                     testing::Range(std::size_t{0}, kPlacements.size())),
    name_of_cells);

}  // namespace
}  // namespace shard
