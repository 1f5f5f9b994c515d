// Models and strategies for the tests of emulation: PyTorch's recipe, and variants of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/like/simulate_like.h"
#include "sim/model/config.h"

namespace shard::like::test {

inline model::Model model_of(const std::string& json) {
  Result<model::ConfiguredModel> parsed = model::parse_config(json, "model", "config.json");
  if (!parsed) {
    ADD_FAILURE() << to_string(parsed.error());
    return {};
  }
  return parsed->model;
}

/// `layers` x Linear(width, width).
inline model::Model mlp(int layers, int width, bool bias = true) {
  std::string sizes = std::to_string(width);
  for (int i = 0; i < layers; ++i) sizes += ", " + std::to_string(width);
  return model_of(R"({"model_type": "mlp", "sizes": [)" + sizes + R"(], "bias": )" + (bias ? "true" : "false") + "}");
}

/// 20 x Linear(2000, 2000).
inline model::Model recipe_model() {
  return mlp(20, 2000);
}

/// Two ranks, batch 20 each, Adam; stage 1 is ZeroRedundancyOptimizer.
inline plan::Strategy recipe(std::int32_t stage) {
  plan::Strategy s;
  s.world_size = 2;
  s.stage = stage;
  s.partition = stage == 1 ? plan::Partition::parameter : plan::Partition::flat;
  s.micro_batch = 20;
  s.global_batch = 40;
  s.optimizer = plan::OptimizerKind::adam;
  return s;
}

inline LikeResult like(const model::Model& model, const plan::Strategy& strategy, const Rules& rules = {}) {
  Result<LikeResult> result =
      simulate_like("pytorch@1.8", model, strategy, {.device_capacity = {}, .rules = rules, .allocator = {}});
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return {};
  }
  return *result;
}

/// max_allocated of each moment.
inline std::vector<std::int64_t> maxima(const LikeResult& result) {
  std::vector<std::int64_t> bytes;
  for (const Moment& m : result.moments) bytes.push_back(m.max_allocated.count());
  return bytes;
}

/// Whether every moment's maximum is that of a dry run to the byte. None may be further off than `share` of it, that of
/// creation than `share_of_creation`; `run` names the row.
inline bool has_peaks(const LikeResult& result, const std::vector<std::int64_t>& peaks, double share,
                      const std::string& run, double share_of_creation = 0) {
  const std::vector<std::int64_t> found = maxima(result);
  EXPECT_EQ(found.size(), peaks.size()) << run;
  for (std::size_t i = 0; i < peaks.size() && i < found.size(); ++i)
    EXPECT_NEAR(static_cast<double>(found[i]), static_cast<double>(peaks[i]),
                (i == 0 ? std::max(share, share_of_creation) : share) * static_cast<double>(peaks[i]))
        << run << ", moment " << i;
  return found == peaks;
}

}  // namespace shard::like::test
