// Does weight decay leave norms and biases alone?
#include <gtest/gtest.h>

#include "tests/agreement/trained.h"
#include "tests/model/make_model.h"

namespace shard {
namespace {

TEST(WeightDecay, IsOfParametersWithTwoDimensionsOrMore) {
  const auto model = std::make_shared<const model::Model>(model::make_model(
      R"({"model_type": "gpt2", "vocab_size": 37, "n_positions": 8, "n_embd": 16, "n_layer": 1, "n_head": 2})"));
  for (const auto optimizer : {plan::OptimizerKind::adamw, plan::OptimizerKind::adam, plan::OptimizerKind::sgd}) {
    const plan::Strategy s{.micro_batch = 1, .global_batch = 1, .sequence = 8, .optimizer = optimizer};
    // One step, so that every gradient is that of the same parameters.
    const Trained without = trained(model, s, {}, 1);
    const Trained with = trained(model, s, {}, 1, 0.1F, 0.5);
    ASSERT_EQ(with.parameters.size(), model->parameters.size());
    for (const Parameter& p : model->parameters) {
      const bool equal = with.parameters.at(p.name) == without.parameters.at(p.name);
      EXPECT_EQ(equal, p.shape.size() < 2) << p.name << ' ' << to_string(optimizer);
    }
  }
}

}  // namespace
}  // namespace shard
