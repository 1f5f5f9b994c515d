// The JSON form of a chunk search's result.
#include "sim/search/chunk_search_json.h"

namespace shard {
namespace {

using Json = nlohmann::ordered_json;

void add_forecast(Json& json, const ChunkForecast& forecast) {
  json["peak_device_bytes"] = forecast.peak_device_bytes.count();
  json["step_seconds"] = forecast.step_seconds.count();
}

Json answer_json(const RuleAnswer& answer) {
  Json json{{"chunk_elements", answer.chunk.count()},
            {"chunk_count", answer.chunk_count},
            {"waste_elements", answer.waste.count()},
            {"reported_waste_elements", nullptr},
            {"gather_working_set_elements", answer.gather_working_set.count()},
            {"keep_gathered", answer.keep_gathered},
            {"filtered_parameters", answer.filtered_parameters},
            {"candidates", answer.candidates}};
  if (answer.reported_waste) json["reported_waste_elements"] = answer.reported_waste->count();
  if (answer.rule == ChunkRule::variable) {
    json["module_boundaries"] = answer.module_boundaries;
    json["max_chunk_elements"] = answer.max_chunk.count();
  }
  if (answer.forecast) add_forecast(json, *answer.forecast);
  return json;
}

Json point_json(const ForecastCurvePoint& at) {
  Json json{{"chunk_elements", at.point.chunk.count()},
            {"chunk_count", at.point.chunk_count},
            {"waste_elements", at.point.waste.count()},
            {"gather_working_set_elements", at.point.gather_working_set.count()}};
  if (at.forecast) add_forecast(json, *at.forecast);
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const ChunkSearchResult& result) {
  Json json{{"schema_version", 1},
            {"rule", to_string(result.rule)},
            {"world_size", result.world_size},
            {"parameter_count", result.parameter_count},
            {"total_elements", result.total.count()},
            {"bytes_per_element", result.bytes_per_element.count()},
            {"chunk", answer_json(result.answer)}};
  if (result.rule == ChunkRule::variable) {
    Json& chunks = json["chunks"] = Json::array();
    for (const VariableChunk& chunk : result.answer.chunks) {
      chunks.push_back({{"chunk_elements", chunk.elems.count()},
                        {"used_elements", chunk.used.count()},
                        {"waste_elements", (chunk.elems - chunk.used).count()},
                        {"first_parameter", chunk.first_parameter},
                        {"parameter_count", chunk.parameter_count}});
    }
  }
  Json& curve = json["curve"] = Json::array();
  for (const ForecastCurvePoint& point : result.curve) curve.push_back(point_json(point));
  Json& rules = json["rules"] = Json::object();
  for (std::size_t index = 0; index < result.rules.size(); ++index) {
    const Result<RuleAnswer>& answer = result.rules[index];
    rules[to_string(kChunkRules[index])] = answer ? answer_json(*answer) : Json{{"error", to_string(answer.error())}};
  }
  if (result.forecasts > 0)
    json["forecast"] = {{"layouts", result.forecasts},
                        {"left_out_layouts", result.forecasts_left_out},
                        {"planned_ops", result.forecast_ops}};
  json["why"] = result.why;
  json["seconds"] = result.answer.seconds.count();
  return json;
}

}  // namespace shard
