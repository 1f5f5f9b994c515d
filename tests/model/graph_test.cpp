// Is each family's graph the one that its model class computes?
#include "sim/model/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/model/graph_limits.h"
#include "sim/model/read_model.h"
#include "tests/model/graph_text.h"
#include "tests/model/make_model.h"

namespace shard::model {
namespace {

using testing::ElementsAre;

TEST(Graph, Gpt2WithOneBlock) {
  const Model model = make_model(R"({"model_type": "gpt2", "vocab_size": 10, "n_positions": 8, "n_embd": 6, "n_head": 2,
                                     "n_layer": 1, "n_inner": 7})");
  EXPECT_THAT(
      graph_text(build_graph(model, 3, 5), model),
      ElementsAre(
          "embedding transformer.wte(input; transformer.wte.weight) -> [3,5,6]",
          "add_position transformer.wpe(transformer.wte; transformer.wpe.weight) -> [3,5,6]",
          "layer_norm transformer.h.0.ln_1(transformer.wpe; transformer.h.0.ln_1.weight, transformer.h.0.ln_1.bias) -> "
          "[3,5,6] [15] [15] @0",
          "linear transformer.h.0.attn.c_attn(transformer.h.0.ln_1; transformer.h.0.attn.c_attn.weight, "
          "transformer.h.0.attn.c_attn.bias) -> [3,5,18] @0",
          "attention transformer.h.0.attn(transformer.h.0.attn.c_attn) -> [3,5,6] [3,2,5] @0",
          "linear transformer.h.0.attn.c_proj(transformer.h.0.attn; transformer.h.0.attn.c_proj.weight, "
          "transformer.h.0.attn.c_proj.bias) -> [3,5,6] @0",
          "add transformer.h.0.attn.residual(transformer.wpe, transformer.h.0.attn.c_proj) -> [3,5,6] @0",
          "layer_norm transformer.h.0.ln_2(transformer.h.0.attn.residual; transformer.h.0.ln_2.weight, "
          "transformer.h.0.ln_2.bias) -> [3,5,6] [15] [15] @0",
          "linear transformer.h.0.mlp.c_fc(transformer.h.0.ln_2; transformer.h.0.mlp.c_fc.weight, "
          "transformer.h.0.mlp.c_fc.bias) -> [3,5,7] @0",
          "gelu transformer.h.0.mlp.act(transformer.h.0.mlp.c_fc) -> [3,5,7] @0",
          "linear transformer.h.0.mlp.c_proj(transformer.h.0.mlp.act; transformer.h.0.mlp.c_proj.weight, "
          "transformer.h.0.mlp.c_proj.bias) -> [3,5,6] @0",
          "add transformer.h.0.mlp.residual(transformer.h.0.attn.residual, transformer.h.0.mlp.c_proj) -> [3,5,6] @0",
          "layer_norm transformer.ln_f(transformer.h.0.mlp.residual; transformer.ln_f.weight, transformer.ln_f.bias) "
          "-> "
          "[3,5,6] [15] [15]",
          "linear lm_head(transformer.ln_f; transformer.wte.weight) -> [3,5,10]",
          "cross_entropy loss(lm_head, target) -> [1] [15]"));
}

TEST(Graph, LlamaWithGroupedQueriesAndUntiedHead) {
  const Model model = make_model(R"({"model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 9,
                                     "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1,
                                     "max_position_embeddings": 8})");
  const Graph graph = build_graph(model, 3, 5);
  EXPECT_THAT(
      graph_text(graph, model),
      ElementsAre("embedding model.embed_tokens(input; model.embed_tokens.weight) -> [3,5,8]",
                  "rms_norm model.layers.0.input_layernorm(model.embed_tokens; model.layers.0.input_layernorm.weight) "
                  "-> [3,5,8] [15] @0",
                  "linear model.layers.0.self_attn.q_proj(model.layers.0.input_layernorm; "
                  "model.layers.0.self_attn.q_proj.weight) -> [3,5,8] @0",
                  "linear model.layers.0.self_attn.k_proj(model.layers.0.input_layernorm; "
                  "model.layers.0.self_attn.k_proj.weight) -> [3,5,4] @0",
                  "linear model.layers.0.self_attn.v_proj(model.layers.0.input_layernorm; "
                  "model.layers.0.self_attn.v_proj.weight) -> [3,5,4] @0",
                  "rotary model.layers.0.self_attn.rotary_q(model.layers.0.self_attn.q_proj) -> [3,5,8] @0",
                  "rotary model.layers.0.self_attn.rotary_k(model.layers.0.self_attn.k_proj) -> [3,5,4] @0",
                  "attention model.layers.0.self_attn(model.layers.0.self_attn.rotary_q, "
                  "model.layers.0.self_attn.rotary_k, model.layers.0.self_attn.v_proj) -> [3,5,8] [3,4,5] @0",
                  "linear model.layers.0.self_attn.o_proj(model.layers.0.self_attn; "
                  "model.layers.0.self_attn.o_proj.weight) -> [3,5,8] @0",
                  "add model.layers.0.self_attn.residual(model.embed_tokens, model.layers.0.self_attn.o_proj) -> "
                  "[3,5,8] @0",
                  "rms_norm model.layers.0.post_attention_layernorm(model.layers.0.self_attn.residual; "
                  "model.layers.0.post_attention_layernorm.weight) -> [3,5,8] [15] @0",
                  "linear model.layers.0.mlp.gate_proj(model.layers.0.post_attention_layernorm; "
                  "model.layers.0.mlp.gate_proj.weight) -> [3,5,9] @0",
                  "linear model.layers.0.mlp.up_proj(model.layers.0.post_attention_layernorm; "
                  "model.layers.0.mlp.up_proj.weight) -> [3,5,9] @0",
                  "swiglu model.layers.0.mlp.act(model.layers.0.mlp.gate_proj, model.layers.0.mlp.up_proj) -> [3,5,9] "
                  "@0",
                  "linear model.layers.0.mlp.down_proj(model.layers.0.mlp.act; model.layers.0.mlp.down_proj.weight) -> "
                  "[3,5,8] @0",
                  "add model.layers.0.mlp.residual(model.layers.0.self_attn.residual, model.layers.0.mlp.down_proj) -> "
                  "[3,5,8] @0",
                  "rms_norm model.norm(model.layers.0.mlp.residual; model.norm.weight) -> [3,5,8] [15]",
                  "linear lm_head(model.norm; lm_head.weight) -> [3,5,10]",
                  "cross_entropy loss(lm_head, target) -> [1] [15]"));
  EXPECT_EQ(graph.operators[5].attributes.heads, 4);
  EXPECT_EQ(graph.operators[6].attributes.heads, 2);
  EXPECT_EQ(graph.operators[6].attributes.head_dim, 2);
  EXPECT_EQ(graph.operators[6].attributes.rotary_base, 10000.0F);
  EXPECT_EQ(graph.operators[7].attributes.kv_heads, 2);
}

TEST(Graph, MlpWithEitherLoss) {
  const Model mse = make_model(R"({"model_type": "mlp", "sizes": [4, 3, 2], "bias": false})");
  const Graph graph = build_graph(mse, 7, 1);
  EXPECT_THAT(graph_text(graph, mse), ElementsAre("linear 0(input; 0.weight) -> [7,3] @0",
                                                  "linear 1(0; 1.weight) -> [7,2] @1", "mse loss(1, target) -> [1]"));
  EXPECT_EQ(graph.values[static_cast<std::size_t>(graph.target.value)].dtype, Dtype::f32);
  EXPECT_EQ(mse.vocabulary, 0);

  const Model classes = make_model(R"({"model_type": "mlp", "sizes": [4, 2], "loss": "cross_entropy"})");
  const Graph classified = build_graph(classes, 7, 1);
  EXPECT_THAT(graph_text(classified, classes),
              ElementsAre("linear 0(input; 0.weight, 0.bias) -> [7,2] @0", "cross_entropy loss(0, target) -> [1] [7]"));
  const Value& target = classified.values[static_cast<std::size_t>(classified.target.value)];
  EXPECT_EQ(target.dtype, Dtype::i32);
  EXPECT_THAT(target.shape, ElementsAre(7));
  EXPECT_EQ(classes.vocabulary, 2);
}

// The recipe's live tensors at the peak: input, labels and one activation of 20 x 2000 floats each.
TEST(Graph, MlpRecipeTensorsAre160000Bytes) {
  const auto model = read_model("mlp-20x2000");
  ASSERT_TRUE(model);
  const Graph graph = build_graph(*model, 20, 1);
  EXPECT_EQ(graph.operators.size(), 21U);
  for (const Value& value : graph.values) EXPECT_EQ(value.bytes(), Bytes{value.name == "loss" ? 4 : 160'000});
}

TEST(CheckBatch, SequenceAndSizeLimits) {
  const auto model = read_model("gpt2-nano");
  ASSERT_TRUE(model);
  EXPECT_TRUE(check_batch(*model, 1, 256));
  for (const auto& [batch, sequence, where] : {std::tuple{1LL, 257LL, "--sequence"},
                                               {1LL, 0LL, "--sequence"},
                                               {0LL, 1LL, "--micro-batch"},
                                               {1LL << 62, 256LL, "--micro-batch"},
                                               {-1LL, 5LL, "--micro-batch"}}) {
    const auto checked = check_batch(*model, batch, sequence);
    ASSERT_FALSE(checked) << batch << " x " << sequence;
    EXPECT_EQ(checked.error().code, Errc::contradiction);
    EXPECT_EQ(checked.error().where, where);
  }
  const auto mlp = read_model("mlp-20x2000");
  ASSERT_TRUE(mlp);
  EXPECT_FALSE(check_batch(*mlp, 1, 2));
}

}  // namespace
}  // namespace shard::model
