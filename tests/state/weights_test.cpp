// Are files that Hugging Face's library wrote read element by element, from one file or several, and no more than
// asked?
#include "executor/state/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <string>

#include "sim/model/read_model.h"
#include "tests/state/files.h"

namespace shard {
namespace {

using test::WeightsFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::string kData = TEST_DATA "/data/weights/";

model::Model gpt2() {
  return *model::read_model(
      R"({"model_type":"gpt2","vocab_size":16,"n_positions":8,"n_embd":8,"n_layer":1,"n_head":2})");
}
model::Model llama(bool tied) {
  return *model::read_model(
      R"({"model_type":"llama","vocab_size":16,"hidden_size":8,"intermediate_size":16,"num_hidden_layers":1,)"
      R"("num_attention_heads":2,"num_key_value_heads":1,"tie_word_embeddings":)" +
      std::string(tied ? "true}" : "false}"));
}

/// make_weights.py: element i of tensor k.
float made(std::int64_t k, std::int64_t i) {
  return static_cast<float>((7 * i + 13 * k) % 251 - 125) / 64;
}

/// Every parameter is the tensor of its own number: models and checkpoints have one order.
void expect_made(const Weights& weights, const model::Model& model) {
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    std::vector<float> values(static_cast<std::size_t>(model.parameters[p].elems.count()));
    const auto read = weights.read(model::ParamId{static_cast<std::int32_t>(p)}, 0, values);
    ASSERT_TRUE(read) << to_string(read.error());
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], made(static_cast<std::int64_t>(p), static_cast<std::int64_t>(i)))
          << model.parameters[p].name << " element " << i;
  }
}

TEST(WeightsOracle, Gpt2OfTheHub) {
  const auto weights = Weights::open(kData + "gpt2_base.safetensors", gpt2());
  ASSERT_TRUE(weights) << to_string(weights.error());
  expect_made(*weights, gpt2());
  EXPECT_THAT(weights->notes(),
              ElementsAre(HasSubstr("lack 'transformer.'"), HasSubstr("1 tensors of weights are constants")));
  EXPECT_THAT(weights->describe(), HasSubstr("17 tensors, F32"));
}

TEST(WeightsOracle, LlamaInTwoFilesOfBf16) {
  for (const char* argument : {"llama_bf16", "llama_bf16/model.safetensors.index.json"}) {
    const auto weights = Weights::open(kData + argument, llama(false));
    ASSERT_TRUE(weights) << to_string(weights.error());
    expect_made(*weights, llama(false));
    EXPECT_THAT(weights->describe(), HasSubstr("12 tensors in 2 files, BF16"));
    EXPECT_THAT(weights_files(kData + argument), SizeIs(3));
  }
}

TEST(WeightsOracle, TiedLlamaOfF16WithItsHead) {
  const auto weights = Weights::open(kData + "llama_tied_f16.safetensors", llama(true));
  ASSERT_TRUE(weights) << to_string(weights.error());
  expect_made(*weights, llama(true));
  EXPECT_THAT(weights->notes(), ElementsAre(HasSubstr("embed_tokens.weight's tensor is taken")));
}

TEST(Weights, ReadsPartsOfAParameter) {
  const auto weights = Weights::open(kData + "llama_bf16", llama(false));
  ASSERT_TRUE(weights);
  std::vector<float> values(5);
  ASSERT_TRUE(weights->read(model::ParamId{5}, 17, values));
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], made(5, 17 + i));
  EXPECT_EQ(weights->stored(model::ParamId{5}, 5), Bytes{10});
}

class Folder : public testing::Test {
 protected:
  [[nodiscard]] Error error_of(const std::string& argument) const {
    const auto weights = Weights::open(argument, llama(false));
    EXPECT_FALSE(weights);
    return weights ? Error{} : weights.error();
  }
  void copy(const char* name) const {
    std::filesystem::copy_file(kData + "llama_bf16/" + name, folder_.path() / name,
                               std::filesystem::copy_options::overwrite_existing);
  }
  void copy_all() const {
    for (const char* name :
         {"model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
      copy(name);
  }
  WeightsFolder folder_{"folder"};
};

TEST_F(Folder, WithoutWeightsSaysWhatItHas) {
  EXPECT_EQ(error_of(folder_.path()).code, Errc::no_input);
  folder_.write("pytorch_model.bin", "x");
  const Error error = error_of(folder_.path());
  EXPECT_EQ(error.code, Errc::no_input);
  EXPECT_THAT(error.what, HasSubstr("it has 'pytorch_model.bin'"));
  EXPECT_THAT(error.help, HasSubstr("save_pretrained"));
  EXPECT_EQ(error_of(folder_.path() / "absent.safetensors").code, Errc::no_input);
}

TEST_F(Folder, ShardThatIsMissing) {
  copy_all();
  EXPECT_TRUE(Weights::open(folder_.path(), llama(false)));
  std::filesystem::remove(folder_.path() / "model-00002-of-00002.safetensors");
  const Error error = error_of(folder_.path());
  EXPECT_EQ(error.code, Errc::malformed);
  EXPECT_THAT(error.what, HasSubstr("'model-00002-of-00002.safetensors'"));
  EXPECT_THAT(error.where, HasSubstr("model.safetensors.index.json"));
}

TEST_F(Folder, ShardOfAnotherCheckpoint) {
  copy_all();
  std::filesystem::copy_file(kData + "llama_bf16/model-00001-of-00002.safetensors",
                             folder_.path() / "model-00002-of-00002.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  const Error error = error_of(folder_.path());
  EXPECT_EQ(error.code, Errc::malformed);
  EXPECT_THAT(error.what, HasSubstr("does not look for there"));
}

TEST_F(Folder, TruncatedShard) {
  copy_all();
  std::filesystem::resize_file(folder_.path() / "model-00002-of-00002.safetensors", 1743);
  const Error error = error_of(folder_.path());
  EXPECT_EQ(error.code, Errc::malformed);
  EXPECT_THAT(error.what, HasSubstr("end behind the file"));
}

TEST_F(Folder, FileCutShortWhileItIsRead) {
  copy_all();
  const auto weights = Weights::open(folder_.path(), llama(false));
  ASSERT_TRUE(weights);
  std::filesystem::resize_file(folder_.path() / "model-00001-of-00002.safetensors", 600);
  std::vector<float> values(128);
  const auto read = weights->read(model::ParamId{0}, 0, values);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::malformed);
  EXPECT_THAT(read.error().what, HasSubstr("changed while it was being read"));
}

TEST_F(Folder, PipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo((folder_.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of(folder_.path() / "pipe").code, Errc::no_input);
}

}  // namespace
}  // namespace shard
