// Do well-known models have their published number of parameters?
#include <gtest/gtest.h>

#include "sim/model/read_model.h"
#include "tests/model/make_model.h"

namespace shard::model {
namespace {

std::int64_t count(std::string_view example) {
  const auto model = read_model(example);
  return model ? model->parameter_elements() : -1;
}

TEST(ParameterCount, Gpt2) {
  EXPECT_EQ(count("gpt2"), 124'439'808);
}
TEST(ParameterCount, Gpt2Medium) {
  EXPECT_EQ(count("gpt2-medium"), 354'823'168);
}
TEST(ParameterCount, Gpt2Large) {
  EXPECT_EQ(count("gpt2-large"), 774'030'080);
}
TEST(ParameterCount, Gpt2Xl) {
  EXPECT_EQ(count("gpt2-xl"), 1'557'611'200);
}
TEST(ParameterCount, Llama7b) {
  EXPECT_EQ(count("llama-7b"), 6'738'415'616);
}
TEST(ParameterCount, Mlp) {
  EXPECT_EQ(count("mlp-20x2000"), 80'040'000);
}

// 256 x 128 tokens, 256 x 128 positions, 4 blocks of 12 x 128^2 + 13 x 128, and the last norm.
TEST(ParameterCount, Gpt2Nano) {
  EXPECT_EQ(count("gpt2-nano"), 2 * 256 * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 256);
}

TEST(ParameterCount, GroupedQueryLlama3Of8B) {
  EXPECT_EQ(make_model(R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
                           "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
                           "vocab_size": 128256, "rope_theta": 500000.0})")
                .parameter_elements(),
            8'030'261'248);
}

// TinyLlama-1.1B: 22 layers of 2048, 4 key-value heads of 64.
TEST(ParameterCount, TinyLlama) {
  EXPECT_EQ(make_model(R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632,
                           "num_attention_heads": 32, "num_hidden_layers": 22, "num_key_value_heads": 4,
                           "vocab_size": 32000})")
                .parameter_elements(),
            1'100'048'384);
}

TEST(ParameterCount, UntyingAddsOneTableAtTheEnd) {
  const Model tied = make_model(R"({"model_type": "gpt2"})");
  const Model untied = make_model(R"({"model_type": "gpt2", "tie_word_embeddings": false})");
  EXPECT_EQ(untied.parameter_elements() - tied.parameter_elements(), 50257 * 768);
  EXPECT_EQ(untied.parameters.back().name, "lm_head.weight");
  EXPECT_EQ(untied.parameters.back().shape, (std::vector<std::int64_t>{50257, 768}));
}

TEST(ParameterCount, TyingLlamaRemovesTheHead) {
  const Model tied = make_model(R"({"model_type": "llama", "num_hidden_layers": 1, "tie_word_embeddings": true})");
  EXPECT_EQ(tied.parameters.back().name, "model.norm.weight");
}

TEST(ParameterCount, LlamaBiasesFollowTheirWeights) {
  const Model model = make_model(R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 12,
      "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1, "vocab_size": 10,
      "attention_bias": true, "mlp_bias": true})");
  std::string names;
  for (const Parameter& p : model.parameters) {
    if (p.name.ends_with(".bias")) names += p.name.substr(15) + std::to_string(p.elems.count()) + " ";
  }
  EXPECT_EQ(names,
            "self_attn.q_proj.bias8 self_attn.k_proj.bias4 self_attn.v_proj.bias4 self_attn.o_proj.bias8 "
            "mlp.gate_proj.bias12 mlp.up_proj.bias12 mlp.down_proj.bias8 ");
  EXPECT_EQ(model.parameters[1].name, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(model.parameters[2].name, "model.layers.0.self_attn.q_proj.bias");
}

TEST(ParameterCount, HeadDimensionMayDifferFromHiddenOverHeads) {
  const Model model = make_model(R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 12,
      "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 6, "num_hidden_layers": 1, "vocab_size": 10})");
  EXPECT_EQ(model.parameters[1].shape, (std::vector<std::int64_t>{18, 8}));
  EXPECT_EQ(model.parameters[2].shape, (std::vector<std::int64_t>{6, 8}));
  EXPECT_EQ(model.parameters[4].shape, (std::vector<std::int64_t>{8, 18}));
}

}  // namespace
}  // namespace shard::model
