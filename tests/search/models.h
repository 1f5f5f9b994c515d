// Models for the chunk search tests: the oracle's lists, and random small ones.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "sim/model/parameters.h"
#include "sim/search/search_model.h"

namespace shard::testing {

inline const ParameterList& oracle_model(const std::string& name) {
  static std::map<std::string, ParameterList> models;
  const auto found = models.find(name);
  if (found != models.end()) return found->second;
  Result<ParameterList> list = read_parameter_list(TEST_DATA "/data/chunk_oracle/models/" + name + ".json");
  if (!list) ADD_FAILURE() << to_string(list.error());
  return models[name] = list ? *list : ParameterList{};
}

inline ParameterList make_list(const std::vector<std::int64_t>& sizes, const std::vector<std::string>& modules) {
  ParameterList list;
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    list.push_back({modules[index] + ".p" + std::to_string(index), {sizes[index]}, Elems{sizes[index]}});
  }
  return list;
}

/// 1 to max_count parameters in runs of modules (which may come back); sizes from tiny to far above the rest.
inline ParameterList random_list(std::mt19937_64& random, std::size_t max_count, std::int64_t max_size) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(draw(1, static_cast<std::int64_t>(max_count))));
  std::vector<std::string> modules;
  std::string module = "m0";
  const bool few_distinct = draw(0, 2) == 0;
  for (std::int64_t& size : sizes) {
    size = few_distinct      ? draw(1, 3) * std::max(std::int64_t{1}, max_size / 4)
           : draw(0, 3) == 0 ? draw(1, 3)
                             : draw(1, max_size);
    if (draw(0, 9) == 0) size *= draw(2, 8);
    if (draw(0, 2) == 0) module = std::string("m") + static_cast<char>('0' + draw(0, 4));
    modules.push_back(module);
  }
  return make_list(sizes, modules);
}

inline SearchModel search_model(const ParameterList& list) {
  Result<SearchModel> model = make_search_model(list);
  EXPECT_TRUE(model);
  return *model;
}

}  // namespace shard::testing
