// Reads a search's JSON as a stream of values, so that a large or hostile file costs no more than its points.
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

/// Follows the few keys that matter: scalars at the top, the object "chunk", the object "variable" of "rules", and the
/// arrays "curve" or "points".
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  SearchResult result;
  std::string fault;  ///< what is wrong with the values, empty if nothing
  std::size_t fault_at = 0;
  bool is_object = false, has_answer = false, has_points = false;
  std::int64_t schema_version = 1;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override {
    number(static_cast<double>(value), value);
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kMost = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    number(static_cast<double>(value), static_cast<std::int64_t>(std::min(value, kMost)));
    return true;
  }
  bool number_float(number_float_t value, const string_t&) override {
    // Doubles that hold no 64-bit integer are no sizes.
    const bool whole = std::abs(value) < 9e18;
    number(value, whole ? static_cast<std::int64_t>(value) : 0);
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ == 1 && key_ == "rule") result.rule = value;
    if (depth_ == 1 && key_ == "why") result.why = value;
    if (SearchPoint* at = point()) {
      if (key_ == "label" || key_ == "strategy" || key_ == "name") at->label = value;
    }
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    ++depth_;
    if (depth_ == 1) is_object = true;
    if (depth_ == 2 && key_ == "chunk") {
      place_ = Place::answer;
      has_answer = true;
    }
    if (depth_ == 2 && key_ == "rules") place_ = Place::rules;
    if (depth_ == 3 && place_ == Place::rules && key_ == "variable") {
      result.variable.emplace();
      in_point_ = true;
    }
    if (depth_ == 3 && place_ == Place::points) {
      result.points.emplace_back();
      in_point_ = true;
    }
    return true;
  }
  bool end_object() override {
    if (depth_ == 3) in_point_ = false;
    return leave();
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (depth_ == 2 && (key_ == "curve" || key_ == "points")) {
      place_ = Place::points;
      has_points = true;
    }
    return true;
  }
  bool end_array() override { return leave(); }
  bool key(string_t& value) override {
    // Keys inside what is skipped do not count.
    key_ = value;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fault = "not JSON";
    fault_at = position;
    return false;
  }

 private:
  enum class Place { top, answer, points, rules };

  bool leave() {
    --depth_;
    if (depth_ == 1) place_ = Place::top;
    return true;
  }
  SearchPoint* point() {
    if (place_ == Place::answer && depth_ == 2) return &result.answer;
    if (depth_ != 3 || !in_point_) return nullptr;
    if (place_ == Place::points) return &result.points.back();
    if (place_ == Place::rules) return &*result.variable;
    return nullptr;
  }
  void number(double value, std::int64_t whole) {
    if (depth_ == 1) {
      if (key_ == "schema_version") schema_version = whole;
      if (key_ == "world_size") result.world_size = whole;
      if (key_ == "total_elements") result.total_elements = whole;
      if (key_ == "bytes_per_element") result.bytes_per_element = whole;
    }
    SearchPoint* at = point();
    if (at == nullptr) return;
    if (key_ == "chunk_elements") at->chunk_elements = whole;
    if (key_ == "chunk_count") at->chunk_count = whole;
    if (key_ == "waste_elements") at->waste_elements = whole;
    if (key_ == "gather_working_set_elements") at->gather_working_set_elements = whole;
    if (key_ == "peak_device_bytes") at->peak_device_bytes = whole;
    if (key_ == "step_seconds") at->step_seconds = value;
  }

  std::size_t depth_ = 0;
  Place place_ = Place::top;
  bool in_point_ = false;
  std::string key_;
};

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
  Handler handler;
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  if (!parsed) return malformed(std::string(label) + ": byte " + std::to_string(handler.fault_at), handler.fault);
  if (!handler.is_object) return malformed(label, "not the result of a search: no object");
  if (handler.schema_version != 1) {
    return malformed(label, "schema_version " + std::to_string(handler.schema_version) + ", this program reads 1");
  }
  if (!handler.has_points) return malformed(label, "not the result of a search: no \"curve\"");
  SearchResult& result = handler.result;
  if (result.answer_is_variable() && handler.has_answer) result.variable = result.answer;
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
  if (!handler.has_answer && !result.points.empty()) {
    result.answer = *std::min_element(
        result.points.begin(), result.points.end(),
        [](const SearchPoint& a, const SearchPoint& b) { return a.waste_elements < b.waste_elements; });
  }
  for (const SearchPoint& point : result.points) {
    if (result.answer_is_variable() || point.chunk_elements != result.answer.chunk_elements) continue;
    result.answer.peak_device_bytes = point.peak_device_bytes;
    result.answer.step_seconds = point.step_seconds;
  }
  return std::move(result);
}

Result<SearchResult> load_search_result(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path, "search result", kLargestResult);
  if (!text) return text.error();
  return parse_search_result(*text, path.string());
}

}  // namespace shard::view
