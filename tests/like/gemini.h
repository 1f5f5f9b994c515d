// Parameter lists and runs for the tests of Gemini.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/like/simulate_gemini.h"

namespace shard::like::test {

inline constexpr const char* kSplit = "colossalai-gemini@0.5.1";
inline constexpr const char* kWhole = "colossalai-gemini@0.1.9";

/// Names and sizes in order.
inline ParameterList list_of(const std::vector<std::pair<std::string, std::int64_t>>& tensors) {
  ParameterList list;
  for (const auto& [name, size] : tensors) list.push_back({name, {size}, Elems{size}});
  return list;
}

inline GeminiResult gemini(const char* name, const ParameterList& parameters, const GeminiOptions& options) {
  Result<GeminiResult> result = simulate_gemini(name, parameters, options);
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return {};
  }
  return std::move(*result);
}

inline Calls calls(const LedgerMoment& moment, Collective kind) {
  return moment.calls[static_cast<std::size_t>(kind)];
}
inline std::int64_t on(const LedgerMoment& moment, Memory memory) {
  return moment.model_data[static_cast<std::size_t>(memory)].count();
}

}  // namespace shard::like::test
