// Which value does a field take, where is it said to come from, and what is noted?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/model/read_model.h"
#include "tests/model/make_model.h"

namespace shard::model {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string provenance(const ConfiguredModel& configured, std::string_view key) {
  for (const ConfigValue& value : configured.values) {
    if (value.key == key) return value.value + " " + to_string(value.source);
  }
  return "absent";
}

TEST(ConfigValues, Gpt2DefaultsAreHuggingFaces) {
  const ConfiguredModel c = configure(R"({"model_type": "gpt2"})");
  EXPECT_EQ(provenance(c, "n_embd"), "768 default");
  EXPECT_EQ(provenance(c, "n_layer"), "12 default");
  EXPECT_EQ(provenance(c, "vocab_size"), "50257 default");
  EXPECT_EQ(provenance(c, "n_inner"), "3072 derived");
  EXPECT_EQ(provenance(c, "layer_norm_epsilon"), "1e-05 default");
  EXPECT_EQ(provenance(c, "tie_word_embeddings"), "true default");
  EXPECT_EQ(c.model.parameter_elements(), 124'439'808);
}

TEST(ConfigValues, LlamaDefaultsAreLlama7b) {
  const ConfiguredModel c = configure(R"({"model_type": "llama"})");
  EXPECT_EQ(c.model.parameter_elements(), 6'738'415'616);
  EXPECT_EQ(c.model.rotary_base, 10000.0F);
  EXPECT_EQ(c.model.epsilon, 1e-6F);
  EXPECT_EQ(provenance(c, "num_key_value_heads"), "32 derived");
  EXPECT_EQ(provenance(c, "head_dim"), "128 derived");
}

TEST(ConfigValues, ValuesOfTheFileWinUnderEitherName) {
  const ConfiguredModel c = configure(R"({"model_type": "gpt2", "n_embd": 48, "num_hidden_layers": 2, "n_head": 3,
      "num_attention_heads": 3, "n_inner": 100, "activation_function": "gelu_pytorch_tanh"})");
  EXPECT_EQ(provenance(c, "n_embd"), "48 file");
  EXPECT_EQ(provenance(c, "n_layer"), "2 file");
  EXPECT_EQ(provenance(c, "n_head"), "3 file");
  EXPECT_EQ(provenance(c, "n_inner"), "100 file");
  EXPECT_EQ(provenance(c, "activation_function"), "\"gelu_pytorch_tanh\" file");
  EXPECT_EQ(c.model.head_dim, 16);
}

TEST(ConfigValues, NullMeansTheDefault) {
  const ConfiguredModel c = configure(R"({"model_type": "gpt2", "n_inner": null, "n_embd": null})");
  EXPECT_EQ(provenance(c, "n_inner"), "3072 derived");
  EXPECT_EQ(provenance(c, "n_embd"), "768 default");
}

TEST(ConfigValues, FamilyFromArchitecture) {
  EXPECT_EQ(make_model(R"({"architectures": ["GPT2LMHeadModel"]})").family, Family::gpt2);
  EXPECT_EQ(make_model(R"({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1})").family, Family::llama);
}

TEST(ConfigValues, ThetaMayBeInsideRopeParameters) {
  const ConfiguredModel c = configure(R"({"model_type": "llama", "num_hidden_layers": 1,
      "rope_parameters": {"rope_type": "default", "rope_theta": 500000}, "rope_scaling": null})");
  EXPECT_EQ(c.model.rotary_base, 500000.0F);
  EXPECT_EQ(provenance(c, "rope_theta"), "500000.0 file");
}

TEST(ConfigDropouts, AreThoseAboveZeroWithTheirKeysOneOfEachValue) {
  using Dropouts = std::vector<ConfiguredDropout>;
  const auto dropouts = [](const std::string& fields) {
    return configure(R"({"model_type": "gpt2", )" + fields + "}").dropouts;
  };
  EXPECT_EQ(dropouts(R"("resid_pdrop": 0.2, "embd_pdrop": 0, "attn_pdrop": 0.0)"), (Dropouts{{0.2, "resid_pdrop"}}));
  EXPECT_EQ(dropouts(R"("resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.3)"),
            (Dropouts{{0.1, "resid_pdrop, embd_pdrop"}, {0.3, "attn_pdrop"}}));
  EXPECT_EQ(dropouts(R"("resid_pdrop": 0, "embd_pdrop": 0)"), (Dropouts{{0.1, "attn_pdrop by default"}}));
  EXPECT_EQ(configure(R"({"model_type": "llama", "num_hidden_layers": 1, "attention_dropout": 0.5})").dropouts,
            (Dropouts{{0.5, "attention_dropout"}}));
}

TEST(ConfigNotes, WhatAFamilyIsPredictedAsIsSaidAndNotItsDropout) {
  const ConfiguredModel c = configure(R"({"model_type": "gemma2", "num_hidden_layers": 1, "attention_dropout": 0.5})");
  EXPECT_THAT(c.model.notes, ElementsAre("windows of attention are predicted as attention to the whole sequence",
                                         "not in the file, and so the default of its class: hidden_size 2304, "
                                         "intermediate_size 9216"));
}

TEST(ConfigNotes, UnusualArchitecturesAndMisspeltKeysAreNoted) {
  EXPECT_THAT(make_model(R"({"model_type": "llama", "num_hidden_layers": 1, "hiden_size": 64,
                             "architectures": ["LlamaForSequenceClassification"]})")
                  .notes,
              ElementsAre("architecture LlamaForSequenceClassification read; LlamaForCausalLM is built",
                          "not in the file, and so the default of its class: hidden_size 4096, intermediate_size 11008",
                          "key 'hiden_size' is not read; did you mean 'hidden_size'?"));
}

// As published with the weights, with all the keys that do not matter here.
TEST(ConfigNotes, PublishedFilesRaiseNoFalseAlarm) {
  EXPECT_THAT(make_model(R"({"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
      "attn_pdrop": 0, "bos_token_id": 50256, "embd_pdrop": 0, "eos_token_id": 50256, "initializer_range": 0.02,
      "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
      "n_positions": 1024, "n_special": 0, "predict_special_tokens": true, "resid_pdrop": 0,
      "summary_activation": null, "summary_first_dropout": 0.1, "summary_proj_to_labels": true,
      "summary_type": "cls_index", "summary_use_proj": true, "torch_dtype": "float32", "use_cache": true,
      "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257})")
                  .notes,
              IsEmpty());
  EXPECT_THAT(make_model(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
      "bos_token_id": 128000, "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 4096,
      "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 8192, "model_type": "llama",
      "num_attention_heads": 32, "num_hidden_layers": 2, "num_key_value_heads": 8, "pretraining_tp": 1,
      "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false,
      "torch_dtype": "bfloat16", "transformers_version": "4.40.0", "use_cache": true, "vocab_size": 128256,
      "mlp_bias": false, "_name_or_path": "x", "pad_token_id": null, "max_sequence_length": 8192})")
                  .notes,
              IsEmpty());
}

TEST(ConfigDtype, IsReadUnderBothNamesAndWithItsPrefix) {
  const auto dtype = [](const std::string& field) {
    return parse_config(R"({"model_type": "gpt2", "n_layer": 1, )" + field + "}", "m", "m")->dtype;
  };
  EXPECT_EQ(dtype(R"("torch_dtype": "bfloat16")"), Dtype::bf16);
  EXPECT_EQ(dtype(R"("dtype": "float16")"), Dtype::f16);
  EXPECT_EQ(dtype(R"("torch_dtype": "torch.float32")"), Dtype::f32);
  EXPECT_EQ(dtype(R"("torch_dtype": "auto")"), std::nullopt);
  EXPECT_EQ(dtype(R"("torch_dtype": 16)"), std::nullopt);
  EXPECT_EQ(dtype(R"("n_head": 12)"), std::nullopt);
}

TEST(Initialization, Gpt2ResidualProjectionsShrinkWithDepth) {
  const auto model = read_model("gpt2");
  ASSERT_TRUE(model);
  for (std::size_t i = 0; i < model->parameters.size(); ++i) {
    const std::string& name = model->parameters[i].name;
    const Initialization& init = model->initialization[i];
    using Kind = Initialization::Kind;
    const Kind expected = name.ends_with(".bias")                 ? Kind::zeros
                          : name.find("ln_") != std::string::npos ? Kind::ones
                                                                  : Kind::normal;
    EXPECT_EQ(init.kind, expected) << name;
    const float scale = expected != Kind::normal ? 0.0F : name.ends_with("c_proj.weight") ? 0.02F / 4.898979F : 0.02F;
    EXPECT_FLOAT_EQ(init.scale, scale) << name;
  }
}

TEST(Initialization, MlpIsUniformByFanIn) {
  const Model model = make_model(R"({"model_type": "mlp", "sizes": [4, 16, 2]})");
  ASSERT_EQ(model.initialization.size(), 4U);
  for (const Initialization& init : model.initialization) EXPECT_EQ(init.kind, Initialization::Kind::uniform);
  EXPECT_EQ(model.initialization[0].scale, 0.5F);
  EXPECT_EQ(model.initialization[1].scale, 0.5F);
  EXPECT_EQ(model.initialization[2].scale, 0.25F);
  EXPECT_EQ(model.initialization[3].scale, 0.25F);
}

}  // namespace
}  // namespace shard::model
