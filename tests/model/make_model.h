// A model from config.json text, for tests in which that must succeed.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "sim/model/config.h"

namespace shard::model {

inline ConfiguredModel configure(std::string_view json) {
  Result<ConfiguredModel> result = parse_config(json, "model", "config.json");
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return {};
  }
  return *result;
}

inline Model make_model(std::string_view json) {
  return configure(json).model;
}

}  // namespace shard::model
