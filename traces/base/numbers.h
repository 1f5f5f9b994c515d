// Numbers as people read them, in every output: thousands apart, no exponents.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "traces/base/units.h"

namespace shard {

/// "62,418,944".
[[nodiscard]] inline std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

/// Rounded to `digits` significant digits, whole numbers to one: "44,440", "12.13", "0.0418". With an exponent only
/// where the value is not what people count: below a millionth, above 10^15.
[[nodiscard]] inline std::string show_number(double value, int digits = 4) {
  const double size = std::fabs(value);
  char text[64];
  if (!std::isfinite(value) || (size > 0 && size < 1e-6) || size > 1e15) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    return text;
  }
  const int before_point = size > 0 ? static_cast<int>(std::floor(std::log10(size))) + 1 : 1;
  if (before_point >= digits) return with_commas(std::llround(value));
  std::snprintf(text, sizeof text, "%.*f", digits - before_point, value);
  std::string number = text;
  number.erase(number.find_last_not_of('0') + 1);  // it has a point
  if (number.back() != '.') return number;
  return with_commas(std::llround(value));
}

/// "27.16 GiB", "16.00 MiB"; below 0.1 MiB "640 B".
[[nodiscard]] inline std::string show_bytes(Bytes bytes) {
  if (bytes < Bytes{0}) return "-" + show_bytes(Bytes{-bytes.count()});
  const double mib = static_cast<double>(bytes.count()) / (1 << 20);
  char text[64];
  if (mib >= 1024)
    std::snprintf(text, sizeof text, "%.2f GiB", mib / 1024);
  else if (mib >= 0.1)
    std::snprintf(text, sizeof text, "%.2f MiB", mib);
  else
    return std::to_string(bytes.count()) + " B";
  return text;
}

/// Time in a unit that keeps three digits: "412 us", "1.24 ms", "3.07 s", "4 min 12 s".
[[nodiscard]] inline std::string duration(Seconds time) {
  char text[64];
  const double s = time.count();
  const auto three_digits = [&text](double value, const char* unit) {
    const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    std::snprintf(text, sizeof text, "%.*f %s", decimals, value, unit);
    return std::string(text);
  };
  if (s <= 0) return "0 s";
  if (s < 0.9995e-6) return three_digits(s * 1e9, "ns");
  if (s < 0.9995e-3) return three_digits(s * 1e6, "us");
  if (s < 0.9995) return three_digits(s * 1e3, "ms");
  if (s < 119.5) return three_digits(s, "s");
  const auto whole = static_cast<long long>(std::llround(s));
  std::snprintf(text, sizeof text, "%lld min %lld s", whole / 60, whole % 60);
  return text;
}

}  // namespace shard
