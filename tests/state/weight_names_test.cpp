// Does each parameter begin with the tensor that transformers would load, and is the first that does not fit named?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "executor/state/weights.h"
#include "sim/model/read_model.h"
#include "tests/state/files.h"

namespace shard {
namespace {

using test::WeightsFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

model::Model llama_of(const std::string& more) {
  const auto model = model::read_model(
      R"({"model_type":"llama","vocab_size":4,"hidden_size":4,"intermediate_size":2,"num_hidden_layers":1,)"
      R"("num_attention_heads":2,"num_key_value_heads":1,)" +
      more + "}");
  EXPECT_TRUE(model) << to_string(model.error());
  return *model;
}

/// A checkpoint of these (name, dtype, shape), in zeros.
class Checkpoint {
 public:
  explicit Checkpoint(const model::Model& model) {
    for (const Parameter& p : model.parameters) add(p.name, "F32", p.shape);
  }
  Checkpoint& add(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape) {
    std::int64_t elements = 1;
    for (const std::int64_t d : shape) elements *= d;
    tensors_.push_back({.name = name, .dtype = dtype, .shape = std::move(shape), .elements = elements});
    return *this;
  }
  Checkpoint& drop(const std::string& name) {
    std::erase_if(tensors_, [&](const safetensors::Tensor& t) { return t.name == name; });
    return *this;
  }
  safetensors::Tensor& at(const std::string& name) {
    return *std::ranges::find(tensors_, name, &safetensors::Tensor::name);
  }
  void rename(const std::string& from, const std::string& to) {
    for (safetensors::Tensor& t : tensors_)
      if (t.name.starts_with(from)) t.name = to + t.name.substr(from.size());
  }
  Result<Weights> open(const model::Model& model) {
    std::int64_t at = 0;
    for (safetensors::Tensor& t : tensors_) {
      t.begin = at;
      t.end = at += t.elements * safetensors::bits_of(t.dtype) / 8;
    }
    return Weights::open(
        folder_.tensors("model.safetensors", safetensors::write_header(tensors_), static_cast<std::size_t>(at)), model);
  }

 private:
  WeightsFolder folder_{"names"};
  std::vector<safetensors::Tensor> tensors_;
};

TEST(WeightNames, AreThoseOfTheModel) {
  const model::Model model = llama_of(R"("tie_word_embeddings":false)");
  const auto weights = Checkpoint(model).open(model);
  ASSERT_TRUE(weights) << to_string(weights.error());
  EXPECT_THAT(weights->notes(), IsEmpty());
}

TEST(WeightNames, MayLackTheClassesPrefix) {
  const model::Model model = llama_of(R"("tie_word_embeddings":true)");
  Checkpoint base(model);
  base.rename("model.", "");
  base.add("layers.0.self_attn.rotary_emb.inv_freq", "F32", {1});
  const auto weights = base.open(model);
  ASSERT_TRUE(weights) << to_string(weights.error());
  EXPECT_THAT(weights->notes(),
              ElementsAre(HasSubstr("lack 'model.'"), HasSubstr("1 tensors of weights are constants")));
}

TEST(WeightNames, OneParameterInTwoTensorsIsRefused) {
  const model::Model model = llama_of(R"("tie_word_embeddings":true)");
  const auto weights = Checkpoint(model).add("norm.weight", "F32", {4}).open(model);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code, Errc::malformed);
  EXPECT_THAT(weights.error().what, HasSubstr("'model.norm.weight' and 'norm.weight' are both parameter"));
}

TEST(WeightNames, TiedHeadIsTheEmbedding) {
  const model::Model tied = llama_of(R"("tie_word_embeddings":true)");
  EXPECT_TRUE(Checkpoint(tied).open(tied));
  const auto both = Checkpoint(tied).add("lm_head.weight", "F32", {4, 4}).open(tied);
  ASSERT_TRUE(both) << to_string(both.error());
  EXPECT_THAT(both->notes(), ElementsAre(HasSubstr("model.embed_tokens.weight's tensor is taken")));
  Checkpoint alone(tied);
  alone.rename("model.embed_tokens", "lm_head");
  const auto head = alone.open(tied);
  ASSERT_TRUE(head) << to_string(head.error());
  EXPECT_THAT(head->notes(), ElementsAre(HasSubstr("lm_head.weight's is the only tensor")));
}

TEST(WeightNames, HeadOfItsOwnIsMissed) {
  const model::Model tied = llama_of(R"("tie_word_embeddings":true)");
  const model::Model untied = llama_of(R"("tie_word_embeddings":false)");
  const auto weights = Checkpoint(tied).open(untied);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code, Errc::contradiction);
  EXPECT_THAT(weights.error().what, HasSubstr("no tensor is for parameter 'lm_head.weight' (4x4) of"));
  EXPECT_THAT(weights.error().help, HasSubstr("tie_word_embeddings"));
}

TEST(WeightNames, FirstShapeThatDiffersIsNamed) {
  const model::Model model = llama_of(R"("tie_word_embeddings":false)");
  Checkpoint changed(model);
  changed.at("model.layers.0.mlp.down_proj.weight").shape = {2, 4};
  changed.at("model.layers.0.self_attn.k_proj.weight").shape = {4, 2};
  const auto weights = changed.open(model);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code, Errc::contradiction);
  EXPECT_THAT(weights.error().what, AllOf(HasSubstr("parameter 'model.layers.0.self_attn.k_proj.weight'"),
                                          HasSubstr("is 2x4; tensor"), HasSubstr("is 4x2")));
}

TEST(WeightNames, MissingAndSurplusTensorsAreNamed) {
  const model::Model model = llama_of(R"("tie_word_embeddings":false)");
  Checkpoint changed(model);
  changed.drop("model.norm.weight").drop("lm_head.weight").add("model.layers.1.mlp.up_proj.weight", "F32", {2, 4});
  const auto weights = changed.open(model);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code, Errc::contradiction);
  EXPECT_THAT(weights.error().what,
              AllOf(HasSubstr("2 parameters of 12, 'model.norm.weight' (4), 'lm_head.weight' (4x4)"),
                    HasSubstr("'model.layers.1.mlp.up_proj.weight' (2x4) is no parameter")));
  const auto surplus = Checkpoint(model).add("model.layers.1.mlp.up_proj.weight", "F32", {2, 4}).open(model);
  ASSERT_FALSE(surplus);
  EXPECT_THAT(surplus.error().what, HasSubstr("tensor 'model.layers.1.mlp.up_proj.weight' (2x4) is no parameter of"));
}

TEST(WeightNames, OtherTypesAreRefusedByName) {
  const model::Model model = llama_of(R"("tie_word_embeddings":false)");
  for (const char* dtype : {"F64", "I32", "F8_E4M3"}) {
    Checkpoint changed(model);
    changed.at("model.norm.weight").dtype = dtype;
    const auto weights = changed.open(model);
    ASSERT_FALSE(weights) << dtype;
    EXPECT_EQ(weights.error().code, Errc::contradiction);
    EXPECT_THAT(weights.error().what, HasSubstr("tensor 'model.norm.weight' is " + std::string(dtype)));
  }
}

}  // namespace
}  // namespace shard
