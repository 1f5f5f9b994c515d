// Each kind of scaling, from its paper or announcement, with the details that transformers settled.
#include "sim/model/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <vector>

namespace shard::model {
namespace {

constexpr std::int64_t kMostColumns = 4096;
constexpr float kLargestAngle = 1 << 20;  // executor/kernels/angle.h

/// A finite number above 0.
std::optional<double> number(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

class Scaling {
 public:
  Scaling(const nlohmann::json& scaling, const UnscaledRotary& unscaled) : json_(scaling), unscaled_(unscaled) {}

  /// theta^(-2i/R) of pair i.
  [[nodiscard]] double frequency(std::int64_t pair) const {
    return std::pow(unscaled_.theta, -static_cast<double>(2 * pair) / static_cast<double>(unscaled_.columns));
  }
  template <class F>
  [[nodiscard]] std::vector<float> each(const F& of_pair) const {
    std::vector<float> all(static_cast<std::size_t>(unscaled_.columns / 2));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(of_pair(static_cast<std::int64_t>(i)));
    return all;
  }
  /// Notes the key where it is missing; then 1.
  double need(const char* key) {
    const std::optional<double> value = number(json_, key);
    if (!value && !missing_) missing_ = std::string("lacks a number above 0 as \"") + key + "\"";
    return value.value_or(1);
  }
  [[nodiscard]] double original() const {
    if (unscaled_.original_at_top) return static_cast<double>(*unscaled_.original_at_top);
    return number(json_, "original_max_position_embeddings").value_or(static_cast<double>(unscaled_.max_sequence));
  }
  /// Where the key is there and null it follows from the lengths.
  double factor() {
    const auto found = json_.find("factor");
    if (found != json_.end() && found->is_null()) return static_cast<double>(unscaled_.max_sequence) / original();
    return need("factor");
  }

  // All at once, by a factor: kaiokendev and Chen et al. 2023, Extending context window via positional interpolation.
  void linear(RotaryScaling& into) {
    const double by = need("factor");
    into.frequencies = each([&](std::int64_t i) { return frequency(i) / by; });
  }

  // Llama 3.1: long waves by the factor, short ones not, those between in proportion.
  void llama3(RotaryScaling& into) {
    const double by = need("factor");
    const double low = need("low_freq_factor");
    const double high = need("high_freq_factor");
    const double length = original();
    into.frequencies = each([&](std::int64_t i) {
      const double f = frequency(i);
      const double wave = 2 * std::numbers::pi / f;
      if (wave < length / high) return f;
      if (wave > length / low) return f / by;
      const double smooth = (length / wave - low) / (high - low);
      return (1 - smooth) * f / by + smooth * f;
    });
  }

  // Peng et al. 2023, YaRN, sections 3.2 to 3.4: by how often a pair turns within the original length.
  void yarn(RotaryScaling& into) {
    const double by = factor();
    const auto attention = [](double scale, double m) { return scale <= 1 ? 1.0 : 0.1 * m * std::log(scale) + 1.0; };
    const std::optional<double> m = number(json_, "mscale");
    const std::optional<double> m_all = number(json_, "mscale_all_dim");
    into.factor =
        static_cast<float>(number(json_, "attention_factor")
                               .value_or(m && m_all ? attention(by, *m) / attention(by, *m_all) : attention(by, 1)));
    const auto columns = static_cast<double>(unscaled_.columns);
    const auto column_of = [&](double turns) {
      return columns * std::log(original() / (turns * 2 * std::numbers::pi)) / (2 * std::log(unscaled_.theta));
    };
    double first = column_of(number(json_, "beta_fast").value_or(32));
    double last = column_of(number(json_, "beta_slow").value_or(1));
    const auto truncate = json_.find("truncate");
    if (truncate == json_.end() || !truncate->is_boolean() || truncate->get<bool>()) {
      first = std::floor(first);
      last = std::ceil(last);
    }
    first = std::max(first, 0.0);
    last = std::min(last, columns - 1);
    if (first == last) last += 0.001;
    into.frequencies = each([&](std::int64_t i) {
      const double ramp = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
      return frequency(i) / by * ramp + frequency(i) * (1 - ramp);
    });
  }

  // Ding et al. 2024, LongRoPE: a factor for each pair, of short sequences and of long ones.
  void longrope(RotaryScaling& into) {
    const double by = number(json_, "factor").value_or(static_cast<double>(unscaled_.max_sequence) / original());
    const double growth = by <= 1 ? 1.0 : std::sqrt(1 + std::log(by) / std::log(original()));
    into.factor = static_cast<float>(number(json_, "attention_factor").value_or(growth));
    into.frequencies = by_factors("short_factor");
    into.long_frequencies = by_factors("long_factor");
    into.long_above = static_cast<std::int64_t>(original());
  }

  [[nodiscard]] const std::optional<std::string>& missing() const { return missing_; }

 private:
  std::vector<float> by_factors(const char* key) {
    const auto found = json_.find(key);
    const auto pairs = static_cast<std::size_t>(unscaled_.columns / 2);
    const bool fits = found != json_.end() && found->is_array() && found->size() == pairs &&
                      std::all_of(found->begin(), found->end(),
                                  [](const nlohmann::json& f) { return f.is_number() && f.get<double>() > 0; });
    if (!fits) {
      if (!missing_)
        missing_ = std::string("lacks a list of ") + std::to_string(pairs) + " numbers above 0 as \"" + key + "\"";
      return {};
    }
    return each([&](std::int64_t i) { return frequency(i) / (*found)[static_cast<std::size_t>(i)].get<double>(); });
  }

  const nlohmann::json& json_;
  const UnscaledRotary& unscaled_;
  std::optional<std::string> missing_;
};

}  // namespace

std::optional<std::string> scale_rotary(std::string_view type, const nlohmann::json& json,
                                        const UnscaledRotary& unscaled, RotaryScaling& into) {
  // dynamic: within max_position_embeddings, which no sequence here exceeds, it is what it is unscaled.
  if (type == "default" || type == "dynamic") return std::nullopt;
  if (unscaled.columns < 2 || unscaled.columns % 2 != 0 || unscaled.columns > kMostColumns)
    return "turns " + std::to_string(unscaled.columns) + " elements of a head; an even number up to " +
           std::to_string(kMostColumns) + " is scaled here";
  Scaling scaling(json, unscaled);
  // Phi-3's first names for longrope.
  if (type == "longrope" || type == "su" || (type == "yarn" && json.contains("short_factor")))
    scaling.longrope(into);
  else if (type == "linear")
    scaling.linear(into);
  else if (type == "llama3")
    scaling.llama3(into);
  else if (type == "yarn")
    scaling.yarn(into);
  else
    return "is a scaling of rotary positions that is not known here";
  if (scaling.missing()) return scaling.missing();
  for (const std::vector<float>* frequencies : {&into.frequencies, &into.long_frequencies})
    for (const float f : *frequencies)
      if (!(f >= 0 && f * static_cast<float>(unscaled.max_sequence) < kLargestAngle) || !std::isfinite(into.factor))
        return "leads to angles that are not computed";
  return std::nullopt;
}

}  // namespace shard::model
