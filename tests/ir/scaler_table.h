// The table of the loss scale's rule, as sim/ir/SPEC.md prints it, and the knobs it is for.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/ir/scaler.h"

namespace shard::test {

struct ScalerRow {
  bool overflow = false;
  float scale = 0;           ///< of the step
  plan::ScalerState behind;  ///< what the next step finds
};

inline constexpr plan::ScalerKnobs kTableKnobs{.initial_scale = 64,
                                               .min_scale = 16,
                                               .max_scale = 64,
                                               .growth_factor = 2,
                                               .backoff_factor = 0.5F,
                                               .growth_interval = 3,
                                               .hysteresis = 2};

inline std::vector<ScalerRow> scaler_table() {
  std::ifstream spec(TEST_DATA "/../sim/ir/SPEC.md");
  std::vector<ScalerRow> rows;
  bool inside = false;
  for (std::string line; std::getline(spec, line);) {
    if (line.starts_with("| step | overflow | scale of the step |")) {
      inside = true;
      std::getline(spec, line);
      continue;
    }
    if (inside && !line.starts_with("| ")) break;
    if (!inside) continue;
    std::istringstream words(line);
    std::string bar;
    std::string overflow;
    std::int64_t step = 0;
    ScalerRow row;
    words >> bar >> step >> bar >> overflow >> bar >> row.scale >> bar >> row.behind.good_steps >> bar >>
        row.behind.overflows >> bar >> row.behind.scale;
    EXPECT_TRUE(words) << line;
    EXPECT_EQ(step, static_cast<std::int64_t>(rows.size()) + 1) << line;
    row.overflow = overflow == "yes";
    rows.push_back(row);
  }
  EXPECT_GE(rows.size(), 10u) << "SPEC.md has no table of the loss scale's rule";
  return rows;
}

}  // namespace shard::test
