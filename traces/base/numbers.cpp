// Rounds before it chooses a unit, so that none shows 1000 of itself.
#include "traces/base/numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace shard {
namespace {

template <class T>
std::string to_chars(T value) {
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

std::string show_number(double value, int digits) {
  const double size = std::fabs(value);
  if (!std::isfinite(value) || (size > 0 && size < 1e-6) || size > 1e15) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*g", digits, value);
    return text.data();
  }
  const int before_point = size > 0 ? static_cast<int>(std::floor(std::log10(size))) + 1 : 1;
  if (before_point >= digits) return with_commas(std::llround(value));
  std::string number = show_fixed(value, digits - before_point);
  number.erase(number.find_last_not_of('0') + 1);  // it has a point
  if (number.back() != '.') return number;
  return with_commas(std::llround(value));
}

std::string show_fixed(double value, int decimals) {
  std::array<char, 352> text{};  // the largest double has 309 digits
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

std::string shortest(double value) {
  return to_chars(value);
}
std::string shortest(float value) {
  return to_chars(value);
}

std::string show_bytes(Bytes bytes) {
  const double mib = static_cast<double>(bytes.count()) / (1 << 20);
  if (std::fabs(mib) >= 1024) return show_fixed(mib / 1024, 2) + " GiB";
  if (std::fabs(mib) >= 0.1) return show_mib(bytes);
  return std::to_string(bytes.count()) + " B";
}

std::string show_mib(Bytes bytes, int decimals) {
  return show_fixed(static_cast<double>(bytes.count()) / (1 << 20), decimals) + " MiB";
}

std::string show_gib(Bytes bytes) {
  constexpr double kGib = 1 << 30;
  const double gib = static_cast<double>(bytes.count()) / kGib;
  if (gib > 0 && gib < 0.0005) return "<0.001 GiB";
  const bool small = gib != 0 && std::fabs(gib) < 0.9995;
  return show_fixed(gib, small ? 3 : 2) + " GiB";
}

std::string show_exact(Bytes bytes) {
  return with_commas(bytes.count()) + " B";
}

ShowBytes one_unit(Bytes largest) {
  if (largest.count() >= 1 << 30) return show_gib;
  return [](Bytes bytes) {
    return bytes.count() > 0 && bytes.count() * 200 < 1 << 20 ? std::string("<0.01 MiB") : show_mib(bytes);
  };
}

namespace {

constexpr double kLongest = 119.5;  // seconds, in one unit

/// The unit in which a time of less than kLongest has `digits` digits, and how many of it are a second.
struct TimeUnit {
  double a_second;
  const char* name;
};
TimeUnit unit_of(double seconds, int digits) {
  const double almost = 1 - 0.5 * std::pow(10.0, -digits);  // of 1000, what rounds to it
  if (seconds < almost * 1e-6) return {1e9, "ns"};
  if (seconds < almost * 1e-3) return {1e6, "us"};
  if (seconds < almost) return {1e3, "ms"};
  return {1, "s"};
}

}  // namespace

std::string duration(Seconds time, int digits) {
  const double s = time.count();
  if (s <= 0) return "0 s";
  const auto shown = [digits](double value, const char* unit) {
    int decimals = digits - 1;
    for (double next = 10; decimals > 0 && value >= next - 0.5 * std::pow(10.0, -decimals); next *= 10) --decimals;
    return show_fixed(value, decimals) + " " + unit;
  };
  const TimeUnit unit = unit_of(s, digits);
  if (s < kLongest) return shown(s * unit.a_second, unit.name);
  const auto whole = static_cast<long long>(std::llround(s));
  const auto two = [](long long value, long long per, const char* large, const char* small) {
    return std::to_string(value / per) + " " + large + " " + std::to_string(value % per) + " " + small;
  };
  if (whole < 2 * 3600) return two(whole, 60, "min", "s");
  if (whole < 2 * 86400) return two(whole / 60, 60, "h", "min");
  return two(whole / 3600, 24, "days", "h");
}

std::string duration_between(Seconds middle, Seconds low, Seconds high) {
  if (middle.count() >= kLongest) return duration(middle) + " (" + duration(low) + " to " + duration(high) + ")";
  constexpr int kDigits = 3;
  const TimeUnit unit = unit_of(middle.count(), kDigits);
  const auto shown = [&](Seconds time) { return show_number(unit.a_second * time.count(), kDigits); };
  return shown(middle) + " " + unit.name + " (" + shown(low) + " to " + shown(high) + ")";
}

std::string show_ratio(double first, double second) {
  return first == 0 ? "-" : show_fixed(second / first, 2) + "x";
}

}  // namespace shard
