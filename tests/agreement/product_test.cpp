// The whole product of strategies: every cell trains to the bits of its class, in the memory and calls planned. Hours:
// `make product`, in parts; product_table.py makes docs/agreement.md of what the parts write.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/agreement/matrix.h"

namespace shard {
namespace {

/// What cells must agree on: one data, one model, one arithmetic, one number of micro-batches M.
struct Class {
  const char* model;
  plan::Precision precision;
  std::int64_t micro_batches;
  auto operator<=>(const Class&) const = default;
};

constexpr std::int64_t kSteps = 3;

plan::Strategy strategy_of(const Class& of, std::int32_t world) {
  return {.world_size = world,
          .micro_batch = 1,
          .global_batch = of.micro_batches,
          .sequence = 32,
          .precision = of.precision};
}

std::string path_of(const Class& of) {
  return of.model == std::string("gpt2-nano") ? of.model : TEST_DATA + std::string("/data/models/") + of.model + ".json";
}

/// Trains one cell and holds its peaks and collectives against its plan. The digest; empty: it failed.
std::string train(const Class& of, const plan::Strategy& strategy) {
  static std::map<std::string, std::shared_ptr<const model::Model>> models;
  auto& model = models[of.model];
  if (!model) model = load_model(path_of(of));
  const std::string what = std::string(of.model) + ' ' + to_string(strategy);
  const auto run = run_in_process(
      model, strategy,
      {.steps = kSteps, .scalars = {.weight_decay = 0.01}, .seed = 7, .after_step = {}, .before_phase = {}});
  if (!run) {
    ADD_FAILURE() << what << ": " << to_string(run.error());
    return {};
  }
  expect_as_planned(*run, kSteps, what);
  return run->ranks[0].state_sha256;
}

/// The digest of a class: of one rank that shards nothing.
const std::string& digest_of(const Class& of) {
  static std::map<std::tuple<std::string, plan::Precision, std::int64_t>, std::string> known;
  std::string& sha = known[{of.model, of.precision, of.micro_batches}];
  if (sha.empty()) sha = train(of, strategy_of(of, 1));
  return sha;
}

class Product
    : public testing::TestWithParam<std::tuple<const char*, plan::Precision, std::int64_t, std::int32_t, std::size_t>> {
};

TEST_P(Product, Agrees) {
  const auto& [model, precision, micro_batches, world, placement] = GetParam();
  const Class of{model, precision, micro_batches};
  const std::string& sha = digest_of(of);
  int cells = 0;
  for (std::int32_t stage : {0, 1, 2, 3})
    for (plan::UnitKind unit : kUnits)
      for (plan::Recompute recompute : kRecompute) {
        plan::Strategy s = strategy_of(of, world);
        s.stage = stage;
        s.unit = unit;
        s.chunk_elems = round_up(Elems{of.model == std::string("gpt2-nano") ? 100'000 : 30'000}, world);
        s.recompute = recompute;
        s.prefetch = cells % 3;
        s.placement = kPlacements[placement];
        ++cells;
        EXPECT_EQ(train(of, s), sha) << to_string(s);
      }
  RecordProperty("model", model);
  RecordProperty("precision", to_string(precision));
  RecordProperty("micro_batches", std::to_string(micro_batches));
  RecordProperty("cells", std::to_string(cells));
  RecordProperty("sha256", sha);
}

INSTANTIATE_TEST_SUITE_P(Whole, Product,
                         testing::Combine(testing::Values("gpt2-nano", "llama-nano"),
                                          testing::Values(plan::Precision::fp32, plan::Precision::bf16,
                                                          plan::Precision::fp16),
                                          testing::Values(std::int64_t{8}, std::int64_t{32}),
                                          testing::Values(1, 2, 4, 8), testing::Range(std::size_t{0}, kPlacements.size())),
                         [](const auto& cell) {
                           std::string name = std::get<0>(cell.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + '_' + to_string(std::get<1>(cell.param)) + "_M" +
                                  std::to_string(std::get<2>(cell.param)) + "_W" +
                                  std::to_string(std::get<3>(cell.param)) + "_placed" +
                                  std::to_string(std::get<4>(cell.param));
                         });

}  // namespace
}  // namespace shard
