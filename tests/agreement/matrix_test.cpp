// Do strategies still agree after twenty steps, pair by pair of their choices? Long: `make test-full`.
#include <gtest/gtest.h>

#include "tests/agreement/bit_class.h"

namespace shard {
namespace {

constexpr std::int64_t kSequence = 32;
constexpr std::int64_t kSteps = 20;

class Matrix : public testing::TestWithParam<BitClass> {};

TEST_P(Matrix, PairsAgree) {
  const Subject subject = subject_of(GetParam(), kSequence, kSteps);
  expect_agreement(subject, pairwise(levels(subject)));
}

INSTANTIATE_TEST_SUITE_P(TwentySteps, Matrix, testing::ValuesIn(bit_classes()),
                         [](const auto& c) { return name_of(c.param); });

/// Ranks that share a model: each degree and layout has one number of its own.
class SharedMatrix : public testing::TestWithParam<std::tuple<BitClass, model::TensorLayout>> {};

TEST_P(SharedMatrix, PairsAgree) {
  const auto& [of, layout] = GetParam();
  Subject subject = subject_of(of, kSequence, kSteps);
  subject.worlds = {1, 2, 4};
  subject.tensor_parallel = 2;
  subject.tensor_layout = layout;
  if (!of.llama) subject.chunk = Elems{50'000};
  expect_agreement(subject, pairwise(levels(subject)));
}

INSTANTIATE_TEST_SUITE_P(
    TwentySteps, SharedMatrix,
    testing::Combine(testing::Values(BitClass{}, BitClass{.precision = plan::Precision::bf16},
                                     BitClass{.llama = true, .precision = plan::Precision::fp16}),
                     testing::Values(model::TensorLayout::megatron, model::TensorLayout::colossalai)),
    [](const auto& c) { return name_of(std::get<0>(c.param)) + '_' + to_string(std::get<1>(c.param)); });

// The recipe's model, 80 million parameters: about 1.3 GB a rank in stage 0.
TEST(RecipeMatrix, Mlp20x2000) {
  const Subject subject{.model = "mlp-20x2000",
                        .micro_batch = 5,
                        .global_batch = 20,
                        .sequence = 1,
                        .chunk = Elems{8'004'000},
                        .steps = 10};
  expect_agreement(subject, whole_matrix(subject));
}

}  // namespace
}  // namespace shard
