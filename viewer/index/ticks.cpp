// Steps of 1, 2 and 5; the unit and the decimals of a label follow from the step.
#include "viewer/index/ticks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace shard::view {
namespace {

/// The least of 1, 2, 5 x 10^n that is at least `least` (> 0).
double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    // 1e-9: what the logarithm rounds away must not double a step.
    if (digit * power >= least * (1 - 1e-9)) return digit * power;
  }
  return 10 * power;
}

std::string fixed(double value, int decimals) {
  std::array<char, 64> text{};
  const int n = std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  std::string result(text.data(), static_cast<std::size_t>(std::clamp(n, 0, 63)));
  // A rounded -0 has no sign.
  if (result.find_first_not_of("-0.") == std::string::npos && result[0] == '-') result.erase(0, 1);
  return result;
}

/// Decimals that show a step of 1, 2 or 5 x 10^n exactly.
int decimals_of(double step) {
  return std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 9);
}

struct UnitName {
  double size;
  const char* name;
};
constexpr std::array<UnitName, 4> kTimeUnits{{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};
constexpr double kKi = 1024;
constexpr std::array<UnitName, 6> kByteUnits{{{kKi * kKi * kKi * kKi * kKi, "PiB"},
                                              {kKi * kKi * kKi * kKi, "TiB"},
                                              {kKi * kKi * kKi, "GiB"},
                                              {kKi * kKi, "MiB"},
                                              {kKi, "KiB"},
                                              {1, "B"}}};
constexpr std::array<UnitName, 4> kValueUnits{{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}};

/// The largest unit that is at most `value`, else the smallest.
template <std::size_t n>
const UnitName& unit_of(const std::array<UnitName, n>& units, double value) {
  for (const UnitName& unit : units) {
    if (unit.size <= value) return unit;
  }
  return units.back();
}

template <std::size_t n>
std::vector<Tick> ticks_between(double lowest, double highest, double height, double label_height,
                                const std::array<UnitName, n>& units, bool whole, const char* gap) {
  std::vector<Tick> ticks;
  if (!(highest > lowest) || height <= 0 || !std::isfinite(highest - lowest)) return ticks;
  const UnitName& unit = unit_of(units, std::max(std::abs(lowest), std::abs(highest)));
  double step = round_step((highest - lowest) / unit.size * label_height / height);
  if (whole && unit.size <= 1) step = std::max(step, 1.0);
  const int decimals = decimals_of(step);
  const auto first = static_cast<std::int64_t>(std::ceil(lowest / unit.size / step - 1e-9));
  const auto last = static_cast<std::int64_t>(std::floor(highest / unit.size / step + 1e-9));
  for (std::int64_t i = first; i <= last; ++i) {
    const double value = static_cast<double>(i) * step;
    std::string label = i == 0 ? "0" : fixed(value, decimals) + gap + unit.name;
    ticks.push_back({(value * unit.size - lowest) / (highest - lowest) * height, std::move(label)});
  }
  return ticks;
}

}  // namespace

std::vector<Tick> time_ticks(const Camera& camera, std::int64_t zero_ns, double width, double label_width) {
  std::vector<Tick> ticks;
  if (width <= 0) return ticks;
  const double step = std::max(1.0, round_step(camera.length_ns * label_width / width));
  const double begin = camera.begin_ns - static_cast<double>(zero_ns - camera.origin_ns);
  // One unit for the axis: that of what is shown, so that far from zero the digits that differ are still there.
  const double farthest = std::max(std::abs(begin), std::abs(begin + camera.length_ns));
  const UnitName& unit = unit_of(kTimeUnits, std::min(farthest, step * 1000));
  const int decimals = decimals_of(step / unit.size);
  const auto first = static_cast<std::int64_t>(std::ceil(begin / step - 1e-9));
  const auto last = static_cast<std::int64_t>(std::floor((begin + camera.length_ns) / step + 1e-9));
  for (std::int64_t i = first; i <= last; ++i) {
    const double time = static_cast<double>(i) * step;
    ticks.push_back({(time - begin) / camera.length_ns * width,
                     i == 0 ? "0" : fixed(time / unit.size, decimals) + " " + unit.name});
  }
  return ticks;
}

std::vector<Tick> byte_ticks(std::int64_t lowest, std::int64_t highest, double height, double label_height) {
  return ticks_between(static_cast<double>(lowest), static_cast<double>(highest), height, label_height, kByteUnits,
                       true, " ");
}

std::vector<Tick> value_ticks(double lowest, double highest, double height, double label_height) {
  return ticks_between(lowest, highest, height, label_height, kValueUnits, false, "");
}

std::string duration_text(std::int64_t ns) {
  const double value = std::abs(static_cast<double>(ns));
  if (value < 1000) return std::to_string(ns) + " ns";
  const UnitName& unit = unit_of(kTimeUnits, value);
  const double scaled = value / unit.size;
  std::string text = fixed(scaled, scaled < 10 ? 3 : scaled < 100 ? 2 : 1);
  return (ns < 0 ? "-" : "") + text + " " + unit.name;
}

std::string exact_time_text(std::int64_t ns) {
  const bool negative = ns < 0;
  const std::uint64_t value = negative ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%s%llu.%03llu %03llu %03llu s", negative ? "-" : "",
                static_cast<unsigned long long>(value / 1'000'000'000),
                static_cast<unsigned long long>(value / 1'000'000 % 1000),
                static_cast<unsigned long long>(value / 1000 % 1000), static_cast<unsigned long long>(value % 1000));
  return text.data();
}

std::string size_text(std::int64_t bytes) {
  const double value = std::abs(static_cast<double>(bytes));
  const UnitName& unit = unit_of(kByteUnits, value);
  if (unit.size <= 1) return std::to_string(bytes) + " B";
  return (bytes < 0 ? "-" : "") + fixed(value / unit.size, 2) + " " + unit.name;
}

}  // namespace shard::view
