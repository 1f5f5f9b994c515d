// Formatting.
#include "viewer/ui/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace shard::view {
namespace {

/// Three significant digits without an exponent for values below 10,000.
std::string three_digits(double value) {
  const double size = std::fabs(value);
  const int decimals = value == std::floor(value) && size < 1000 ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

}  // namespace

std::string with_sign(std::string_view text, double value) {
  return value > 0 ? "+" + std::string(text) : std::string(text);
}

std::string show_count(std::int64_t count) {
  return with_commas(count);
}

std::string show_percent(double share) {
  return three_digits(share * 100) + " %";
}

std::string_view fitting_tail(std::string_view name, const std::function<bool(std::string_view)>& fits) {
  while (!fits(name)) {
    const std::size_t dot = name.find('.');
    // A dot behind a space, or at the end, is none of a module's path.
    if (dot == std::string_view::npos || dot + 1 >= name.size() || name.find(' ') < dot) break;
    name.remove_prefix(dot + 1);
  }
  return name;
}

std::string ends_of(std::string_view name, const std::function<bool(std::string_view)>& fits) {
  std::string text(name);
  // Not in the middle of a character of several bytes.
  const auto inside = [&](std::size_t at) {
    return at < name.size() && (static_cast<unsigned char>(name[at]) & 0xC0U) == 0x80U;
  };
  for (std::size_t kept = name.size(); kept > 6 && !fits(text); --kept) {
    std::size_t head = kept / 3;
    std::size_t tail = name.size() - (kept - kept / 3);
    while (head > 0 && inside(head)) --head;
    while (inside(tail)) ++tail;
    text = std::string(name.substr(0, head)) + "\u2026" + std::string(name.substr(tail));
  }
  return text;
}

bool contains_text(std::string_view text, std::string_view needle) {
  return std::search(text.begin(), text.end(), needle.begin(), needle.end(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
         }) != text.end();
}

}  // namespace shard::view
