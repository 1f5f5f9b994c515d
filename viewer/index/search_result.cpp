// What is missing in the JSON stays as it is by default; what is of another type counts as missing.
#include "viewer/index/search_result.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "traces/base/read_file.h"

namespace shard::view {
namespace {

/// Some hundred bytes a candidate, and as many candidates as anyone waits for.
constexpr Bytes kLargestResult{256 << 20};

using Json = nlohmann::json;

/// Doubles that hold no 64-bit integer are no sizes.
std::optional<std::int64_t> whole(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number()) return std::nullopt;
  if (at->is_number_unsigned())
    return static_cast<std::int64_t>(
        std::min<std::uint64_t>(at->get<std::uint64_t>(), std::numeric_limits<std::int64_t>::max()));
  if (at->is_number_integer()) return at->get<std::int64_t>();
  const auto value = at->get<double>();
  return std::abs(value) < 9e18 ? static_cast<std::int64_t>(value) : 0;
}

std::string text_in(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

SearchPoint point_in(const Json& object) {
  SearchPoint point;
  for (const char* key : {"name", "strategy", "label"})
    if (std::string text = text_in(object, key); !text.empty()) point.label = std::move(text);
  point.chunk_elements = whole(object, "chunk_elements").value_or(0);
  point.chunk_count = whole(object, "chunk_count").value_or(0);
  point.waste_elements = whole(object, "waste_elements").value_or(0);
  point.gather_working_set_elements = whole(object, "gather_working_set_elements").value_or(0);
  point.peak_device_bytes = whole(object, "peak_device_bytes");
  if (const auto at = object.find("step_seconds"); at != object.end() && at->is_number())
    point.step_seconds = at->get<double>();
  return point;
}

/// The member of that name, where it is an object.
const Json* object_in(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_object() ? &*at : nullptr;
}

Error malformed(std::string_view label, std::string what) {
  return {Errc::malformed, std::move(what), std::string(label), "write it with: shardscope search ... --json"};
}

}  // namespace

double SearchResult::waste_share(const SearchPoint& point) const {
  const double all = static_cast<double>(total_elements) + static_cast<double>(point.waste_elements);
  return all > 0 ? static_cast<double>(point.waste_elements) / all : 0;
}

std::vector<std::size_t> pareto_front(const std::vector<SearchPoint>& points) {
  // By waste, peak, time: who is beaten is beaten by someone earlier. Points lacking a value stand apart, so that
  // "not compared" never means two things at once.
  std::map<std::pair<bool, bool>, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < points.size(); ++i) {
    alike[{points[i].peak_device_bytes.has_value(), points[i].step_seconds.has_value()}].push_back(i);
  }
  std::vector<std::size_t> front;
  for (auto& [has, group] : alike) {
    const auto costs = [&](std::size_t i) {
      return std::tuple(points[i].waste_elements, points[i].peak_device_bytes.value_or(0),
                        points[i].step_seconds.value_or(0));
    };
    std::stable_sort(group.begin(), group.end(), [&](std::size_t a, std::size_t b) { return costs(a) < costs(b); });
    // Among those with no more waste: the least time for each peak, falling as the peak rises.
    std::map<std::int64_t, double> best;
    std::tuple<std::int64_t, std::int64_t, double> last{};
    bool last_kept = false;
    for (std::size_t n = 0; n < group.size(); ++n) {
      const auto now = costs(group[n]);
      if (n > 0 && now == last) {  // equals do not beat each other
        if (last_kept) front.push_back(group[n]);
        continue;
      }
      const auto& [waste, peak, seconds] = now;
      const auto above = best.upper_bound(peak);
      const bool beaten = above != best.begin() && std::prev(above)->second <= seconds;
      last = now;
      last_kept = !beaten;
      if (beaten) continue;
      front.push_back(group[n]);
      auto at = best.insert_or_assign(peak, seconds).first;
      for (++at; at != best.end() && at->second >= seconds;) at = best.erase(at);
    }
  }
  std::sort(front.begin(), front.end());
  return front;
}

Result<SearchResult> parse_search_result(std::string_view text, std::string_view label) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& fault) {
    return malformed(std::string(label) + ": byte " + std::to_string(fault.byte), "not JSON");
  } catch (const Json::exception&) {  // a number beyond all doubles
    return malformed(label, "not JSON");
  }
  if (!json.is_object()) return malformed(label, "not the result of a search: no object");
  if (const auto version = whole(json, "schema_version").value_or(1); version != 1)
    return malformed(label, "schema_version " + std::to_string(version) + ", this program reads 1");
  SearchResult result;
  bool has_points = false;
  for (const char* key : {"curve", "points"}) {
    const auto at = json.find(key);
    if (at == json.end() || !at->is_array()) continue;
    has_points = true;
    for (const Json& each : *at)
      if (each.is_object()) result.points.push_back(point_in(each));
  }
  if (!has_points) return malformed(label, "not the result of a search: no \"curve\"");
  result.rule = text_in(json, "rule");
  result.why = text_in(json, "why");
  result.world_size = whole(json, "world_size").value_or(1);
  result.total_elements = whole(json, "total_elements").value_or(0);
  result.bytes_per_element = whole(json, "bytes_per_element").value_or(4);
  const Json* answer = object_in(json, "chunk");
  if (answer != nullptr) result.answer = point_in(*answer);
  if (const Json* rules = object_in(json, "rules"))
    if (const Json* variable = object_in(*rules, "variable")) result.variable = point_in(*variable);
  if (result.answer_is_variable() && answer != nullptr) result.variable = result.answer;
  // A rule that had no answer says why instead.
  if (result.variable && result.variable->chunk_count < 1) result.variable.reset();
  const auto fault_in = [](const SearchPoint& point) -> const char* {
    if (point.chunk_elements < 0 || point.waste_elements < 0) return "a negative size in ";
    if (point.step_seconds && !std::isfinite(*point.step_seconds)) return "a step time that is none in ";
    return nullptr;
  };
  for (const SearchPoint& point : result.points)
    if (const char* fault = fault_in(point)) return malformed(label, std::string(fault) + "\"curve\"");
  if (result.variable)
    if (const char* fault = fault_in(*result.variable)) return malformed(label, std::string(fault) + "rule variable");
  std::stable_sort(result.points.begin(), result.points.end(),
                   [](const SearchPoint& a, const SearchPoint& b) { return a.chunk_elements < b.chunk_elements; });
  result.pareto = pareto_front(result.points);
  if (answer == nullptr && !result.points.empty()) {
    result.answer = *std::min_element(
        result.points.begin(), result.points.end(),
        [](const SearchPoint& a, const SearchPoint& b) { return a.waste_elements < b.waste_elements; });
  }
  for (const SearchPoint& point : result.points) {
    if (result.answer_is_variable() || point.chunk_elements != result.answer.chunk_elements) continue;
    result.answer.peak_device_bytes = point.peak_device_bytes;
    result.answer.step_seconds = point.step_seconds;
  }
  return result;
}

Result<SearchResult> load_search_result(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path, "search result", kLargestResult);
  if (!text) return text.error();
  return parse_search_result(*text, path.string());
}

}  // namespace shard::view
