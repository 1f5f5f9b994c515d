// Are an example's parameters those that PyTorch registers, in its order?
#include <gtest/gtest.h>

#include <string>

#include "sim/model/parameters.h"
#include "sim/model/read_model.h"

namespace shard::model {
namespace {

class Oracle : public testing::TestWithParam<const char*> {};

TEST_P(Oracle, ParametersEqualRegistrationOrder) {
  const std::string name = GetParam();
  const auto model = read_model(name);
  ASSERT_TRUE(model) << to_string(model.error());
  const auto expected = read_parameter_list(std::string(TEST_DATA) + "/data/chunk_oracle/models/" + name + ".json");
  ASSERT_TRUE(expected) << to_string(expected.error());
  ASSERT_EQ(model->parameters.size(), expected->size());
  for (std::size_t i = 0; i < expected->size(); ++i) {
    ASSERT_EQ(model->parameters[i].name, (*expected)[i].name) << i;
    EXPECT_EQ(model->parameters[i].shape, (*expected)[i].shape) << (*expected)[i].name;
    EXPECT_EQ(model->parameters[i].elems, (*expected)[i].elems) << (*expected)[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, Oracle, testing::Values("gpt2", "gpt2-xl", "llama-7b", "mlp-20x2000"),
                         [](const auto& case_) {
                           std::string name = case_.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace shard::model
