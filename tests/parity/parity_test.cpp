// Does training come to what PyTorch makes of transformers' classes, from the same safetensors on the same tokens?
// make_vectors.py has made what is expected, in fp64; tolerances are those of fp32 arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/cpu/kernels/init.h"
#include "executor/state/safetensors.h"
#include "executor/state/weights.h"
#include "tests/agreement/matrix.h"
#include "tests/state/files.h"

namespace shard {
namespace {

// As make_vectors.py.
constexpr std::uint64_t kSeed = 7;
constexpr std::int64_t kSteps = 10;
constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kSequence = 24;

constexpr double kFirstLoss = 1e-6;  ///< of the loss
constexpr double kLastLoss = 1e-5;
constexpr double kGradient = 1e-5;  ///< of the tensor's largest
/// Gradients that are 0 but for rounding, such as a key's bias: of the model's largest.
constexpr double kNoGradient = 1e-7;
constexpr double kMoved = 0.01;  ///< of how far the tensor's weights moved

struct Vectors {
  nlohmann::json json;
  [[nodiscard]] std::string config() const { return TEST_DATA "/../" + json["config"].get<std::string>(); }
};

Vectors read_vectors(const std::string& name) {
  std::ifstream file(TEST_DATA "/data/parity/" + name + ".vectors.json");
  EXPECT_TRUE(file) << name;
  return {nlohmann::json::parse(file)};
}

std::vector<float> start(std::size_t number, const std::string& name, const nlohmann::json& shape) {
  std::int64_t count = 1;
  for (const auto& d : shape) count *= d.get<std::int64_t>();
  std::vector<float> values(static_cast<std::size_t>(count));
  cpu::ThreadPool pool(1);
  const bool matrix = shape.size() > 1;
  cpu::random_uniform(pool, {kSeed, RandomStream::parameter, number}, 0, count, matrix ? 0.125F : 0.25F, values.data());
  if (!matrix && name.ends_with(".weight"))
    for (float& v : values) v += 1.0F;
  return values;
}

/// The checkpoint that PyTorch began with, under the names of transformers.
std::string write_start(const test::WeightsFolder& folder, const Vectors& vectors) {
  nlohmann::ordered_json header;
  std::string data;
  std::size_t number = 0;
  for (const auto& t : vectors.json["tensors"]) {
    const std::vector<float> values = start(number++, t["name"], t["shape"]);
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header[t["name"].get<std::string>()] = {
        {"dtype", "F32"}, {"shape", t["shape"]}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const auto prefix = safetensors::write_prefix(static_cast<std::int64_t>(text.size()));
  return folder.write("model.safetensors",
                      std::string(reinterpret_cast<const char*>(prefix.data()), prefix.size()) + text + data);
}

std::string write_tokens(const test::WeightsFolder& folder, std::int32_t vocabulary) {
  constexpr std::int64_t kTokens = 400;
  std::vector<std::int32_t> noise(kTokens);
  cpu::ThreadPool pool(1);
  cpu::random_integers(pool, {kSeed, RandomStream::tokens, std::uint64_t{1} << 32}, 0, kTokens, 4, noise.data());
  std::string file;
  std::int32_t at = 1;
  for (const std::int32_t n : noise) {
    at = (5 * at + 3 + n) % vocabulary;
    file += static_cast<char>(at & 0xFF);
    file += static_cast<char>(at >> 8);
  }
  return folder.write("tokens.bin", file);
}

using State = std::map<std::int32_t, std::vector<float>>;

struct Trained {
  std::vector<float> losses;
  State weights;
  State first_moments;
};

class Parity : public testing::TestWithParam<std::tuple<std::string, plan::Device>> {
 protected:
  void SetUp() override {
    vectors_ = read_vectors(std::get<0>(GetParam()));
    model_ = load_model(vectors_.config());
    ASSERT_TRUE(model_);
    ASSERT_FALSE(model_->not_trained) << to_string(*model_->not_trained);
    ASSERT_EQ(model_->parameters.size(), vectors_.json["tensors"].size());
    auto weights = Weights::open(write_start(folder_, vectors_), *model_);
    ASSERT_TRUE(weights) << to_string(weights.error());
    weights_ = std::make_unique<Weights>(std::move(*weights));
    tokens_ = write_tokens(folder_, vectors_.json["vocabulary"]);
  }

  Trained train(std::int64_t steps) {
    Trained trained;
    train::SessionOptions options{
        .steps = steps, .scalars = {.weight_decay = 0.01}, .seed = kSeed, .after_step = {}, .before_phase = {}};
    options.first_values = [&](model::ParamId p, std::int64_t first, std::span<float> values) {
      return weights_->read(p, first, values);
    };
    options.read_state = [&](model::ParamId p, plan::Digest::Content c, std::span<const std::byte> bytes) {
      const auto* const first = reinterpret_cast<const float*>(bytes.data());
      const std::vector<float> values(first, first + bytes.size() / sizeof(float));
      if (c == plan::Digest::Content::parameter) trained.weights[p.value] = values;
      if (c == plan::Digest::Content::first_moment) trained.first_moments[p.value] = values;
    };
    const plan::Strategy strategy{.world_size = 1,
                                  .stage = 0,
                                  .micro_batch = kBatch,
                                  .global_batch = kBatch,
                                  .sequence = kSequence,
                                  .device = std::get<1>(GetParam())};
    const auto run = run_in_process(model_, strategy, options, tokens_);
    EXPECT_TRUE(run) << to_string(run.error());
    if (run) trained.losses = run->ranks[0].losses;
    return trained;
  }
  [[nodiscard]] const nlohmann::json& tensor(std::size_t p) const { return vectors_.json["tensors"][p]; }
  [[nodiscard]] double largest_gradient() const {
    double largest = 0;
    for (const auto& t : vectors_.json["tensors"]) largest = std::max(largest, t["largest"].get<double>());
    return largest;
  }
  /// Samples of a tensor.
  struct Most {
    std::size_t gradients = 40;
    std::size_t weights = 10;
  };
  [[nodiscard]] Most most() const {
    static const std::vector<std::string> many{"gpt2-nano", "llama-nano", "qwen3", "gemma", "gpt_neox"};
    return std::ranges::find(many, std::get<0>(GetParam())) == many.end() ? Most{} : Most{200, 50};
  }
  /// Elements 0, s, 2 s, ... of a tensor, of which `samples` are there.
  static std::vector<float> sampled(const std::vector<float>& values, std::size_t most) {
    std::vector<float> found;
    const std::size_t step = std::max<std::size_t>(1, values.size() / most) | 1;
    for (std::size_t i = 0; i < values.size(); i += step) found.push_back(values[i]);
    return found;
  }

  Vectors vectors_;
  test::WeightsFolder folder_{"parity"};
  std::shared_ptr<const model::Model> model_;
  std::unique_ptr<Weights> weights_;
  std::string tokens_;
};

double farthest(const std::vector<float>& values, const nlohmann::json& expected) {
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(values[i]) - expected[i].get<double>()));
  return most;
}

TEST_P(Parity, LossesAndWeights) {
  const Trained trained = train(kSteps);
  const nlohmann::json& losses = vectors_.json["losses"];
  ASSERT_EQ(trained.losses.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double expected = losses[i];
    EXPECT_NEAR(static_cast<double>(trained.losses[i]), expected, expected * (i == 0 ? kFirstLoss : kLastLoss))
        << "step " << i + 1;
  }
  std::size_t compared = 0;
  for (std::size_t p = 0; p < model_->parameters.size(); ++p) {
    const nlohmann::json& t = tensor(p);
    const std::vector<float> weights = sampled(trained.weights.at(static_cast<std::int32_t>(p)), most().weights);
    ASSERT_EQ(weights.size(), t["weights"].size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (t["weights"][i].is_null()) continue;  // goes where rounding decides
      ++compared;
      EXPECT_NEAR(static_cast<double>(weights[i]), t["weights"][i].get<double>(), kMoved * t["moved"].get<double>())
          << t["name"] << " sample " << i;
    }
  }
  EXPECT_GT(compared, 2 * model_->parameters.size());
}

TEST_P(Parity, Gradients) {
  const Trained trained = train(1);
  ASSERT_EQ(trained.first_moments.size(), model_->parameters.size());
  const double of_all = largest_gradient();
  for (std::size_t p = 0; p < model_->parameters.size(); ++p) {
    const nlohmann::json& t = tensor(p);
    ASSERT_EQ(t["name"], model_->parameters[p].name);
    std::vector<float> gradient = trained.first_moments.at(static_cast<std::int32_t>(p));
    // The first step's first moment is (1 - beta1) of the gradient.
    for (float& g : gradient) g /= static_cast<float>(1.0 - 0.9);
    const double largest = t["largest"];
    const double tolerance = std::max(kGradient * largest, kNoGradient * of_all);
    const std::vector<float> some = sampled(gradient, most().gradients);
    ASSERT_EQ(some.size(), t["gradient"].size());
    EXPECT_LE(farthest(some, t["gradient"]), tolerance) << t["name"] << ", largest " << largest;
    double norm = 0;
    double found = 0;
    for (const float g : gradient) {
      norm += static_cast<double>(g) * static_cast<double>(g);
      found = std::max(found, std::abs(static_cast<double>(g)));
    }
    EXPECT_NEAR(found, largest, tolerance) << t["name"];
    EXPECT_NEAR(std::sqrt(norm), t["norm"].get<double>(), tolerance * std::sqrt(static_cast<double>(gradient.size())))
        << t["name"];
  }
}

constexpr const char* kModels[] = {"gpt2-nano",  "llama-nano", "llama-linear", "llama-dynamic", "llama-llama3",
                                   "llama-yarn", "mistral",    "qwen2",        "qwen3",         "gemma",
                                   "phi3",       "phi3-short", "phi3-long",    "gpt_neox",      "gpt_neox-serial",
                                   "opt",        "opt-post"};

std::string test_name(const testing::TestParamInfo<std::tuple<std::string, plan::Device>>& info) {
  std::string name = std::get<0>(info.param) + (std::get<1>(info.param) == plan::Device::cuda ? "_emulated" : "_cpu");
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Parity,
                         testing::Combine(testing::ValuesIn(std::vector<std::string>(std::begin(kModels),
                                                                                     std::end(kModels))),
                                          testing::Values(plan::Device::cpu, plan::Device::cuda)),
                         test_name);

}  // namespace
}  // namespace shard
