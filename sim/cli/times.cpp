// Reading times.
#include "sim/cli/times.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace shard::cli {

Result<std::int64_t> parse_time(std::string_view text, std::string_view where) {
  constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
      {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 1}}};
  const Error wrong{Errc::usage, "'" + std::string(text) + "' is no time", std::string(where),
                    "a number with ns, us, ms or s, such as 12.5ms"};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return wrong;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double ns = value * factor;
    if (std::fabs(ns) > 9e18) return wrong;
    return static_cast<std::int64_t>(std::llround(ns));
  }
  return wrong;
}

}  // namespace shard::cli
