// Which parameters do patterns freeze, and how far up the graph is a gradient still needed?
#include "sim/model/freeze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/model/make_model.h"

namespace shard::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Model small_gpt2() {
  return make_model(
      R"({"model_type": "gpt2", "vocab_size": 11, "n_positions": 8, "n_embd": 8, "n_layer": 12, "n_head": 2})");
}

std::vector<std::string> frozen_names(const Model& model) {
  std::vector<std::string> names;
  for (std::size_t p = 0; p < model.parameters.size(); ++p)
    if (model.is_frozen(ParamId{static_cast<std::int32_t>(p)})) names.push_back(model.parameters[p].name);
  return names;
}

std::vector<std::string> frozen_by(const std::vector<std::string>& patterns) {
  const Result<Model> model = freeze(small_gpt2(), patterns);
  if (!model) {
    ADD_FAILURE() << to_string(model.error());
    return {};
  }
  return frozen_names(*model);
}

TEST(Freeze, PatternsAreThoseOfTheShellOverWholeNames) {
  EXPECT_THAT(frozen_by({}), ElementsAre());
  EXPECT_THAT(frozen_by({"transformer.w?e.weight"}), ElementsAre("transformer.wte.weight", "transformer.wpe.weight"));
  EXPECT_EQ(frozen_by({"transformer.h.1.*"}).size(), 12U);  // not blocks 10 and 11
  EXPECT_EQ(frozen_by({"*.h.1[01].*", "*ln_f*"}).size(), 26U);
  EXPECT_EQ(frozen_by({"*.bias"}).size(), 12U * 6 + 1);
}

TEST(Freeze, APatternThatMatchesNothingIsRefusedWithTheClosestName) {
  const std::vector<std::string> patterns{"*.bias", "transformer.wte.weigth"};
  const Result<Model> model = freeze(small_gpt2(), patterns);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, Errc::contradiction);
  EXPECT_THAT(model.error().what, HasSubstr("--freeze transformer.wte.weigth matches no parameter"));
  EXPECT_THAT(model.error().help, HasSubstr("transformer.wte.weight"));
}

TEST(Freeze, SomethingMustBeLeftToTrain) {
  const std::vector<std::string> patterns{"*.bias", "*.weight"};
  const Result<Model> model = freeze(small_gpt2(), patterns);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, Errc::contradiction);
  EXPECT_THAT(model.error().what, HasSubstr("leaves no parameter"));
}

TEST(Freeze, GradientsAreNeededFromTheFirstTrainedParameterOn) {
  const std::vector<std::string> patterns{"transformer.w?e.*", "transformer.h.[0-9].*", "transformer.h.10.*"};
  const Result<Model> model = freeze(small_gpt2(), patterns);
  ASSERT_TRUE(model);
  const Graph graph = build_graph(*model, 1, 4);
  const std::vector<bool> needs = values_with_gradient(graph);
  bool reached = false;
  for (const Operator& op : graph.operators) {
    reached = reached || op.block == 11;
    EXPECT_EQ(needs[static_cast<std::size_t>(op.outputs[0].value)], reached) << op.name;
  }
}

}  // namespace
}  // namespace shard::model
