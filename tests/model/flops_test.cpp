// Are costs those of the published formulas, and of counts by hand?
#include "sim/model/flops.h"

#include <gtest/gtest.h>

#include "sim/model/read_model.h"
#include "tests/model/make_model.h"

namespace shard::model {
namespace {

const Operator& find(const Graph& graph, OperatorKind kind) {
  for (const Operator& op : graph.operators) {
    if (op.kind == kind) return op;
  }
  ADD_FAILURE() << "no " << to_string(kind);
  return graph.operators.front();
}

TEST(Flops, LinearCountsItsThreeProducts) {
  const Model model = make_model(R"({"model_type": "mlp", "sizes": [5, 3]})");
  const Graph graph = build_graph(model, 7, 1);
  const OperatorCost cost = operator_cost(graph, model.parameters, graph.operators.front());
  EXPECT_EQ(cost.forward.flops, Flops{2.0 * 7 * 5 * 3 + 7 * 3});
  EXPECT_EQ(cost.backward_inputs.flops, Flops{2.0 * 7 * 5 * 3});
  EXPECT_EQ(cost.backward_parameters.flops, Flops{2.0 * 7 * 5 * 3 + 7 * 3});
  EXPECT_EQ(cost.forward.bytes, Bytes{4 * (7 * 5 + 5 * 3 + 3 + 7 * 3)});
  EXPECT_EQ(cost.backward_inputs.bytes, Bytes{4 * (7 * 3 + 5 * 3 + 7 * 5)});  // no bias
  EXPECT_EQ(cost.backward_parameters.bytes, Bytes{4 * (7 * 3 + 7 * 5 + 5 * 3 + 3)});
}

TEST(Flops, AttentionCountsTheWholeSquare) {
  const Model model = make_model(R"({"model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 9,
      "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1, "max_position_embeddings": 8})");
  const Graph graph = build_graph(model, 3, 5);
  const OperatorCost cost = operator_cost(graph, model.parameters, find(graph, OperatorKind::attention));
  const double scores = 3 * 4 * 5 * 5;
  EXPECT_EQ(cost.forward.flops, Flops{scores * (4 * 2 + 5)});
  EXPECT_EQ(cost.backward_inputs.flops, Flops{scores * (10 * 2 + 6)});
  EXPECT_EQ(cost.backward_parameters.flops, Flops{0});
  EXPECT_EQ(cost.forward.bytes, Bytes{4 * (15 * 8 + 2 * 15 * 4 + 15 * 8 + 3 * 4 * 5)});
}

TEST(Flops, TargetsAndTokensHaveNoGradientTraffic) {
  const Model model = make_model(R"({"model_type": "mlp", "sizes": [5, 3]})");
  const Graph graph = build_graph(model, 7, 1);
  const OperatorCost cost = operator_cost(graph, model.parameters, graph.operators.back());
  EXPECT_EQ(cost.backward_inputs.bytes, Bytes{4 * (2 * 7 * 3 + 7 * 3)});
}

// PaLM appendix B counts 6N + 12LHQT per token for products alone, N without the embedding tables but with lm_head;
// ours adds attention's recomputed scores (2LHQT), biases and elementwise work, a few percent.
TEST(Flops, TrainingIsCloseToTheModelFlopsFormula) {
  for (const char* name : {"gpt2", "gpt2-xl", "llama-7b"}) {
    const auto model = read_model(name);
    ASSERT_TRUE(model);
    const std::int64_t sequence = 1024;
    std::int64_t in_products = 0;
    for (const Parameter& p : model->parameters) in_products += p.shape.size() == 2 ? p.elems.count() : 0;
    if (model->family == Family::gpt2)
      in_products -= model->max_sequence * model->hidden;
    else
      in_products -= model->vocabulary * model->hidden;
    const auto per_token =
        6.0 * static_cast<double>(in_products) + 14.0 * static_cast<double>(model->layers * model->hidden * sequence);
    const Graph graph = build_graph(*model, 2, sequence);
    const double ratio = training_flops(graph).count() / (per_token * 2.0 * double(sequence));
    EXPECT_GT(ratio, 1.0) << name;
    EXPECT_LT(ratio, 1.03) << name;
  }
}

TEST(Flops, EveryOperatorMovesBytesForward) {
  for (const char* name : {"gpt2-nano", "mlp-20x2000", "llama-7b"}) {
    const auto model = read_model(name);
    ASSERT_TRUE(model);
    const Graph graph = build_graph(*model, 1, 1);
    for (const Operator& op : graph.operators) {
      const OperatorCost cost = operator_cost(graph, model->parameters, op);
      EXPECT_GT(cost.forward.bytes, Bytes{0}) << op.name;
      EXPECT_EQ(cost.backward_parameters.bytes > Bytes{0}, !op.params.empty()) << op.name;
    }
  }
}

}  // namespace
}  // namespace shard::model
