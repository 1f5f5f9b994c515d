// Are a family's parameters those that transformers builds from the same configuration, and do its operators use each?
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "sim/model/config.h"
#include "sim/model/family.h"
#include "sim/model/family_table.h"
#include "traces/base/sha256.h"

namespace shard::model {
namespace {

using nlohmann::json;

/// tests/data/families/oracle.json, by family; made by make_oracle.py beside it.
const std::map<std::string, std::vector<json>>& cases() {
  static const auto all = [] {
    std::map<std::string, std::vector<json>> by_family;
    std::ifstream file(std::string(TEST_DATA) + "/data/families/oracle.json");
    for (json& c : json::parse(file)) by_family[c["config"]["model_type"]].push_back(std::move(c));
    return by_family;
  }();
  return all;
}

std::string listed(const ParameterList& parameters) {
  std::string text;
  for (const Parameter& parameter : parameters) {
    text += (text.empty() ? "" : "\n") + parameter.name + " ";
    for (std::size_t i = 0; i < parameter.shape.size(); ++i)
      text += (i == 0 ? "" : "x") + std::to_string(parameter.shape[i]);
  }
  return text;
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const FamilyText& family : family_texts()) names.emplace_back(family.name);
  return names;
}

class FamilyOracle : public testing::TestWithParam<std::string> {};

TEST_P(FamilyOracle, ParametersAreThoseOfTransformers) {
  ASSERT_TRUE(cases().contains(GetParam()));
  EXPECT_GE(cases().at(GetParam()).size(), 10U);
  for (const json& c : cases().at(GetParam())) {
    const std::string config = c["config"].dump();
    const auto read = parse_config(config, "m", "config.json");
    ASSERT_TRUE(read) << config << to_string(read.error());
    EXPECT_EQ(read->model.class_name, c["class"]) << config;
    EXPECT_EQ(read->model.parameter_elements(), c["parameters"]) << config;
    EXPECT_EQ(read->model.parameters.size(), c["tensors"]) << config;
    EXPECT_EQ(sha256_hex(listed(read->model.parameters)), c["list_sha256"]) << config << listed(read->model.parameters);
  }
}

TEST_P(FamilyOracle, OperatorsUseEveryParameter) {
  for (const json& c : cases().at(GetParam())) {
    const auto read = parse_config(c["config"].dump(), "m", "config.json");
    ASSERT_TRUE(read);
    if (read->model.not_simulated) continue;
    const Model model = simulated_part(read->model);
    const Graph graph = build_graph(model, 2, 8);
    std::set<std::int32_t> used;
    for (const Operator& op : graph.operators)
      for (const ParamId p : op.params) used.insert(p.value);
    EXPECT_EQ(used.size(), model.parameters.size()) << c["config"];
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyOracle, testing::ValuesIn(families()),
                         [](const auto& case_) { return case_.param; });

}  // namespace
}  // namespace shard::model
