// Does `--like colossalai-gemini` answer as the peer's own code did, on every key of every row recorded from it?
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/like/gemini_report.h"
#include "tests/like/gemini.h"

namespace shard::like {
namespace {

using nlohmann::json;

json rows_of(const std::string& file) {
  return json::parse(std::ifstream(TEST_DATA "/data/gemini_oracle/" + file)).at("rows");
}

ParameterList model_of(const json& row) {
  Result<ParameterList> parameters =
      read_parameter_list(TEST_DATA "/data/chunk_oracle/models/" + row.at("model").get<std::string>() + ".json");
  if (!parameters) ADD_FAILURE() << to_string(parameters.error());
  return parameters ? std::move(*parameters) : ParameterList{};
}

/// Every key of the row that says what came of it; as many steps as the row has.
void expect_row(const char* name, const json& row, const GeminiOptions& options) {
  const Result<GeminiResult> result =
      simulate_gemini(name, model_of(row), options, static_cast<std::int32_t>(row.at("iters").size()));
  ASSERT_TRUE(result) << row;
  const json ours = to_json(*result);
  for (const auto& [key, value] : row.items()) {
    const bool asked = key == "model" || key == "ws" || key == "chunk_size" || key == "policy" || key == "distributed";
    if (asked) continue;
    EXPECT_EQ(ours.at(key), value) << key << " of " << row;
  }
}

GeminiOptions split_options(const json& row) {
  return {.world_size = row.at("ws"),
          .chunk = Elems{row.at("chunk_size").get<std::int64_t>()},
          .shard_param_frac = row.at("shard_param_frac"),
          .offload_optim_frac = row.at("offload_optim_frac"),
          .offload_param_frac = row.at("offload_param_frac")};
}

TEST(GeminiOracle, EveryKeyOfEveryRow) {
  const json rows = rows_of("gemini_traffic.json");
  ASSERT_EQ(rows.size(), 30U);
  for (const json& row : rows) expect_row("colossalai-gemini", row, split_options(row));
}

TEST(GeminiOracle, OtherModelsAndFractions) {
  const json rows = rows_of("more_models.json");
  ASSERT_EQ(rows.size(), 48U);
  for (const json& row : rows) expect_row("colossalai-gemini@0.5.1", row, split_options(row));
}

TEST(GeminiOracle, TheFirstChunkManager) {
  const json rows = rows_of("v0.1.9.json");
  ASSERT_EQ(rows.size(), 48U);
  for (const json& row : rows) {
    const double offload = row.at("policy") == "cpu" ? 1 : 0;
    GeminiOptions options{.world_size = row.at("ws"),
                          .chunk = {},
                          .shard_param_frac = row.at("distributed") ? 1.0 : 0.0,
                          .offload_optim_frac = offload,
                          .offload_param_frac = offload,
                          .rank = row.at("rank")};
    if (!row.at("chunk_size").is_null()) options.chunk = Elems{row.at("chunk_size").get<std::int64_t>()};
    expect_row("colossalai-gemini@0.1.9", row, options);
  }
}

}  // namespace
}  // namespace shard::like
