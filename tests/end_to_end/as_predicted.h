// `shardscope train --json`, and whether its answer is what the plan said.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "tests/end_to_end/program.h"

namespace shard::test {

inline Words train(const Words& more) {
  Words words{"train", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The contract on memory and communication: equal to the byte and to the call, on every rank.
inline void expect_as_predicted(const nlohmann::json& run, std::size_t ranks) {
  EXPECT_EQ(run["moments"].size(), 4u);
  for (const nlohmann::json& moment : run["moments"])
    EXPECT_EQ(moment["measured_by_category"], moment["predicted_by_category"]) << moment["name"];
  std::size_t device_arenas = 0;
  for (const nlohmann::json& arena : run["arenas"]) {
    if (arena["memory"] == "device") {
      EXPECT_EQ(arena["rank"], device_arenas++);
    }
    EXPECT_GT(arena["measured_peak_bytes"], 0);
    EXPECT_EQ(arena["predicted_peak_bytes"], arena["measured_peak_bytes"]);
  }
  EXPECT_EQ(device_arenas, ranks);
  for (const nlohmann::json& each : run["collectives"]) {
    EXPECT_EQ(each["predicted_count"], each["measured_count"]) << each;
    EXPECT_EQ(each["predicted_bytes"], each["measured_bytes"]) << each;
  }
}

/// The whole process, to 1 % or 8 MiB.
inline void expect_resident(const nlohmann::json& run) {
#ifdef SANITIZED
  return;  // shadow memory and quarantine are in no plan
#endif
  const double predicted = run["resident_bytes"]["predicted"];
  const double measured = run["resident_bytes"]["measured"];
  EXPECT_LE(std::abs(measured - predicted), std::max(0.01 * predicted, 8.0 * (1 << 20)))
      << "predicted " << predicted << ", measured " << measured;
}

}  // namespace shard::test
