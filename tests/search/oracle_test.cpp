// Does every rule answer as the peers' own code did, on every row that was recorded from it?
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/search/chunk_search.h"
#include "sim/search/curve.h"
#include "tests/search/models.h"
#include "tests/search/oracle_options.h"

namespace shard::testing {
namespace {

using Json = nlohmann::json;

const Json& rows() {
  static const Json oracle = Json::parse(std::ifstream(TEST_DATA "/data/chunk_oracle/chunk_search.json"));
  return oracle.at("rows");
}

TEST(ChunkOracle, EveryFieldOfEveryRow) {
  ASSERT_EQ(rows().size(), 430U);
  for (const Json& row : rows()) {
    const Result<RuleAnswer> answer = choose_chunk(oracle_model(row.at("model")), options_of(row));
    ASSERT_TRUE(answer) << row << to_string(answer.error());
    const auto expect = [&](const char* key, std::int64_t ours) {
      EXPECT_EQ(ours, row.value(key, ours)) << key << " of " << row;
    };
    expect("chunk_size", answer->chunk.count());
    expect("num_chunks", answer->chunk_count);
    expect("layout_waste_elems", answer->waste.count());
    expect("search_waste_elems", answer->reported_waste.value().count());
    expect("filtered_params", answer->filtered_parameters);
    expect("candidates", answer->candidates);
    EXPECT_EQ(answer->keep_gathered, row.value("keep_gathered", false)) << row;
  }
}

// The candidates of a row are first, first + interval, ..., first + range, aligned to the world size afterwards: within
// the same bounds there must be no better layout than exact's.
TEST(ChunkOracle, ExactIsNeverAboveTheBestOfThePeersCandidates) {
  int compared = 0;
  for (const Json& row : rows()) {
    if (!row.contains("best_layout_same_candidates")) continue;
    const Json& best = row.at("best_layout_same_candidates");
    ChunkSearchOptions options = options_of(row);
    options.rule = ChunkRule::exact;
    const Result<RuleAnswer> answer = choose_chunk(oracle_model(row.at("model")), options);
    ASSERT_TRUE(answer) << to_string(answer.error());
    EXPECT_LE(answer->waste.count(), best.at("waste_elems").get<std::int64_t>()) << row;

    // At that one size, the layout is the one that was recorded.
    const CurvePoint same =
        curve_point(search_model(oracle_model(row.at("model"))), options.world_size, Elems{best.at("chunk_size")});
    EXPECT_EQ(same.waste.count(), best.at("waste_elems").get<std::int64_t>()) << row;
    EXPECT_EQ(same.chunk_count, best.at("num_chunks").get<std::int64_t>()) << row;
    ++compared;
  }
  EXPECT_EQ(compared, 188);
}

}  // namespace
}  // namespace shard::testing
