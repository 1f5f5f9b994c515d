// Is each bad description refused with the right kind, the place, and words that name the fault?
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "sim/model/config.h"

namespace shard::model {
namespace {

struct Case {
  std::string json;
  Errc code;
  std::string where;  ///< after the file's name
  std::string says;   ///< part of what or help
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.json;
}

class BadConfig : public testing::TestWithParam<Case> {};

TEST_P(BadConfig, IsRefused) {
  const Case& c = GetParam();
  const auto result = parse_config(c.json, "m", "dir/config.json");
  ASSERT_FALSE(result);
  EXPECT_EQ(to_string(result.error().code), std::string(to_string(c.code)));
  EXPECT_EQ(result.error().where, "dir/config.json" + c.where);
  const std::string text = to_string(result.error());
  EXPECT_NE(text.find(c.says), std::string::npos) << text;
}

std::string gpt2(const std::string& fields) {
  return R"({"model_type": "gpt2", )" + fields + "}";
}
std::string llama(const std::string& fields) {
  return R"({"model_type": "llama", )" + fields + "}";
}
std::string mlp(const std::string& fields) {
  return R"({"model_type": "mlp", )" + fields + "}";
}

const std::vector<Case> kSyntax{
    {"", Errc::malformed, ":1:1", "not JSON"},
    {"{\"model_type\": \"gpt2\",\n  \"n_embd\" 768}", Errc::malformed, ":2:14", "not JSON"},
    {"{\"model_type\": \"gp", Errc::malformed, ":1:19", "not JSON"},
    {std::string("{\"model_type\": \"gpt2\"}\0 trailing", 32), Errc::malformed, ":1:23", "NUL"},
    {"[1, 2]", Errc::malformed, "#/", "not a JSON object"},
    {"null", Errc::malformed, "#/", "not a JSON object"},
    {"{\"n_embd\": 1e999}", Errc::malformed, "", "not JSON"},
    {"{\"model_type\": \"gpt2\"} x", Errc::malformed, ":1:24", "not JSON"},
};
const std::vector<Case> kFamily{
    {"{}", Errc::malformed, "#/model_type", "missing"},
    {R"({"model_type": null})", Errc::malformed, "#/model_type", "missing"},
    {R"({"model_type": 7})", Errc::malformed, "#/model_type", "not a string"},
    {R"({"model_type": "gtp2"})", Errc::contradiction, "#/model_type", "did you mean 'gpt2'?"},
    {R"({"model_type": "llma"})", Errc::contradiction, "#/model_type", "did you mean 'llama'?"},
    {R"({"model_type": "clip"})", Errc::contradiction, "#/model_type", "--parameters"},
    {R"({"architectures": ["CLIPModel"]})", Errc::malformed, "#/model_type", "missing"},
};
const std::vector<Case> kValues{
    {gpt2(R"("n_embd": "768")"), Errc::malformed, "#/n_embd", "\"768\""},
    {gpt2(R"("n_embd": 768.5)"), Errc::malformed, "#/n_embd", "768.5"},
    {gpt2(R"("n_embd": 768.0)"), Errc::malformed, "#/n_embd", "positive integer"},
    {gpt2(R"("n_embd": 0)"), Errc::malformed, "#/n_embd", "is 0"},
    {gpt2(R"("n_embd": -768)"), Errc::malformed, "#/n_embd", "-768"},
    {gpt2(R"("n_embd": true)"), Errc::malformed, "#/n_embd", "true"},
    {gpt2(R"("n_embd": [768])"), Errc::malformed, "#/n_embd", "[768]"},
    {gpt2(R"("hidden_size": -1)"), Errc::malformed, "#/hidden_size", "-1"},
    {gpt2(R"("vocab_size": {})"), Errc::malformed, "#/vocab_size", "{}"},
    {gpt2(R"("n_positions": 0)"), Errc::malformed, "#/n_positions", "is 0"},
    {gpt2(R"("tie_word_embeddings": 1)"), Errc::malformed, "#/tie_word_embeddings", "neither true nor false"},
    {gpt2(R"("layer_norm_epsilon": 0)"), Errc::malformed, "#/layer_norm_epsilon", "greater than 0"},
    {gpt2(R"("layer_norm_epsilon": 1e-60)"), Errc::malformed, "#/layer_norm_epsilon", "greater than 0"},
    {gpt2(R"("layer_norm_epsilon": "1e-5")"), Errc::malformed, "#/layer_norm_epsilon", "greater than 0"},
    {gpt2(R"("initializer_range": -0.1)"), Errc::malformed, "#/initializer_range", "at least 0"},
    {gpt2(R"("resid_pdrop": 1.5)"), Errc::malformed, "#/resid_pdrop", "not a probability"},
    {gpt2(R"("resid_pdrop": "0.1")"), Errc::malformed, "#/resid_pdrop", "0.1"},
    {gpt2(R"("activation_function": 3)"), Errc::malformed, "#/activation_function", "not a string"},
    {llama(R"("num_hidden_layers": -2)"), Errc::malformed, "#/num_hidden_layers", "-2"},
    {llama(R"("rope_theta": 0)"), Errc::malformed, "#/rope_theta", "greater than 0"},
    {llama(R"("rope_scaling": 3)"), Errc::malformed, "#/rope_scaling", "neither an object nor null"},
    {llama(R"("rope_parameters": {"rope_theta": "x"})"), Errc::malformed, "#/rope_parameters/rope_theta", "greater"},
    {R"({"model_type": "dbrx", "attn_config": 3})", Errc::malformed, "#/attn_config", "not an object"},
    {R"({"model_type": "dbrx", "attn_config": {"kv_n_heads": "x"}})", Errc::malformed, "#/attn_config/kv_n_heads",
     "positive integer"},
    {R"({"model_type": "qwen3_moe", "mlp_only_layers": 3})", Errc::malformed, "#/mlp_only_layers", "not a list"},
    {R"({"model_type": "qwen3_moe", "mlp_only_layers": [0, -1]})", Errc::malformed, "#/mlp_only_layers/1", "-1"},
    {R"({"model_type": "deepseek_v3", "first_k_dense_replace": -1})", Errc::malformed, "#/first_k_dense_replace",
     "at least 0"},
    {mlp(R"("bias": true)"), Errc::malformed, "#/sizes", "missing"},
    {mlp(R"("sizes": [4])"), Errc::malformed, "#/sizes", "at least 2"},
    {mlp(R"("sizes": 4)"), Errc::malformed, "#/sizes", "list"},
    {mlp(R"("sizes": [4, 0, 2])"), Errc::malformed, "#/sizes/1", "is 0"},
    {mlp(R"("sizes": [4, 2], "bais": false)"), Errc::malformed, "#/bais", "did you mean 'bias'?"},
    {mlp(R"("sizes": [4, 2], "a/b~": 1)"), Errc::malformed, "#/a~1b~0", "not a key"},
};
const std::vector<Case> kUnsupported{
    {gpt2(R"("n_embd": 768, "n_head": 10)"), Errc::contradiction, "#/n_head", "set \"n_head\" to 8"},
    {gpt2(R"("n_embd": 64, "hidden_size": 128)"), Errc::contradiction, "#/hidden_size", "'n_embd' is 64"},
    {llama(R"("num_attention_heads": 3)"), Errc::contradiction, "#/num_attention_heads", "hidden_size 4096"},
    {R"({"model_type": "bert", "add_cross_attention": true})", Errc::contradiction, "#/add_cross_attention",
     "is_decoder"},
    {R"({"model_type": "gemma3", "vision_config": {"model_type": "clip"}})", Errc::contradiction,
     "#/vision_config/model_type", "siglip"},
    {llama(R"("per_layer_config": {"0": {}})"), Errc::contradiction, "#/per_layer_config", "not supported"},
    {mlp(R"("sizes": [4, 2], "loss": "l1")"), Errc::contradiction, "#/loss", "cross_entropy"},
};
// Each would need more memory than there is if it were believed.
const std::vector<Case> kHuge{
    {gpt2(R"("n_layer": 1000000000000000000)"), Errc::contradiction, "#/n_layer", "largest supported"},
    {gpt2(R"("n_layer": 1e18)"), Errc::contradiction, "#/n_layer", "largest supported"},
    {gpt2(R"("n_layer": 99999999999999999999999999)"), Errc::contradiction, "#/n_layer", "largest supported"},
    {gpt2(R"("n_layer": 2000000000)"), Errc::contradiction, "#/n_layer", "at most 16384"},
    {llama(R"("num_hidden_layers": 2147483648)"), Errc::contradiction, "#/num_hidden_layers", "at most 16384"},
    {gpt2(R"("n_embd": 2147483648, "n_head": 1)"), Errc::contradiction, "#/", "2^53"},
    {gpt2(R"("n_embd": 2147483647, "n_head": 2147483646)"), Errc::contradiction, "#/n_head", "does not divide"},
    {llama(R"("num_attention_heads": 2147483648, "head_dim": 2147483648)"), Errc::contradiction,
     "#/num_attention_heads", "2^53"},
    {llama(R"("hidden_size": 2147483648)"), Errc::contradiction, "#/", "2^53"},
    {mlp(R"("sizes": [2147483648, 2147483648])"), Errc::contradiction, "#/", "2^53"},
    {R"({"model_type": "stablelm", "qk_layernorm": true, "num_attention_heads": 20000, "hidden_size": 20000})",
     Errc::contradiction, "#/num_attention_heads", "at most 16384"},
    {R"({"model_type": "stablelm", "qk_layernorm": true, "num_attention_heads": 10000, "hidden_size": 10000})",
     Errc::contradiction, "#/num_attention_heads", "tensors"},
    {R"({"model_type": "mistral", "num_attention_heads": 8192})", Errc::contradiction, "#/num_attention_heads",
     "dimension of 0"},
    {R"({"model_type": "mixtral", "num_local_experts": 2147483648, "intermediate_size": 2147483648})",
     Errc::contradiction, "#/", "2^53"},
    {R"({"model_type": "t5", "num_decoder_layers": 20000})", Errc::contradiction, "#/num_decoder_layers",
     "at most 16384"},
};

INSTANTIATE_TEST_SUITE_P(Syntax, BadConfig, testing::ValuesIn(kSyntax));
INSTANTIATE_TEST_SUITE_P(Family, BadConfig, testing::ValuesIn(kFamily));
INSTANTIATE_TEST_SUITE_P(Values, BadConfig, testing::ValuesIn(kValues));
INSTANTIATE_TEST_SUITE_P(Unsupported, BadConfig, testing::ValuesIn(kUnsupported));
INSTANTIATE_TEST_SUITE_P(Huge, BadConfig, testing::ValuesIn(kHuge));

struct Refusal {
  std::string json;
  std::string where;  ///< after the file's name
  std::string says;
};

// Parameters are known whatever the operators do.
TEST(Limits, WhatIsNotTrainedIsNamed) {
  for (const Refusal& c : std::vector<Refusal>{
           {gpt2(R"("activation_function": "relu")"), "#/activation_function", "\"relu\""},
           {gpt2(R"("activation_function": "gelu")"), "#/activation_function", "gelu_new"},
           {gpt2(R"("scale_attn_weights": false)"), "#/scale_attn_weights", "true is"},
           {gpt2(R"("scale_attn_by_inverse_layer_idx": true)"), "#/scale_attn_by_inverse_layer_idx", "false is"},
           {llama(R"("hidden_act": "gelu")"), "#/hidden_act", "\"gelu\""},
           {llama(R"("rope_scaling": {"rope_type": "llama3", "factor": 8})"), "#/rope_scaling/rope_type", "llama3"},
           {llama(R"("rope_scaling": {"type": "mrope", "factor": 2})"), "#/rope_scaling/type", "not known"},
           {llama(R"("rope_scaling": {"type": "linear"})"), "#/rope_scaling/type", "\"factor\""},
           {llama(R"("rope_parameters": {"rope_type": "yarn"})"), "#/rope_parameters/rope_type", "yarn"},
           {llama(R"("partial_rotary_factor": 0.5)"), "#/partial_rotary_factor", "0.5"},
           {R"({"model_type": "mixtral"})", "#/model_type", "routing"}}) {
    const auto result = parse_config(c.json, "m", "f");
    ASSERT_TRUE(result) << to_string(result.error());
    EXPECT_FALSE(result->model.not_simulated) << c.json;
    ASSERT_TRUE(result->model.not_trained) << c.json;
    EXPECT_EQ(result->model.not_trained->where, "f" + c.where);
    EXPECT_NE(to_string(*result->model.not_trained).find(c.says), std::string::npos)
        << to_string(*result->model.not_trained);
  }
}

TEST(Limits, WhatIsNotSimulatedIsNamedAndNotTrained) {
  for (const Refusal& c :
       std::vector<Refusal>{{gpt2(R"("add_cross_attention": true)"), "#/add_cross_attention", "false is"},
                            {llama(R"("num_key_value_heads": 5)"), "#/num_key_value_heads", "num_attention_heads 32"},
                            {llama(R"("num_key_value_heads": 64)"), "#/num_key_value_heads", "does not divide"},
                            {llama(R"("head_dim": 7)"), "#/num_key_value_heads", "even"},
                            {R"({"model_type": "bert"})", "#/model_type", "an encoder"},
                            {R"({"model_type": "t5"})", "#/model_type", "encoder-decoder"}}) {
    const auto result = parse_config(c.json, "m", "f");
    ASSERT_TRUE(result) << to_string(result.error());
    ASSERT_TRUE(result->model.not_simulated && result->model.not_trained) << c.json;
    EXPECT_EQ(result->model.not_simulated->where, "f" + c.where);
    EXPECT_NE(to_string(*result->model.not_simulated).find(c.says), std::string::npos)
        << to_string(*result->model.not_simulated);
  }
}

TEST(BadConfig, DeepNestingIsRefusedWithoutRecursion) {
  EXPECT_FALSE(parse_config(std::string(1'000'000, '['), "m", "f"));
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_FALSE(parse_config(R"({"model_type": "gpt2", "n_embd": )" + deep + "}", "m", "f"));
}

}  // namespace
}  // namespace shard::model
