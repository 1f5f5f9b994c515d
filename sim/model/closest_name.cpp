// Restricted Damerau-Levenshtein distance over short names.
#include "sim/model/closest_name.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace shard::model {
namespace {

/// Names longer than this are never typing mistakes; the bound keeps hostile input cheap.
constexpr std::size_t kLongestName = 128;

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0U : 1U)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

bool begins_with(std::string_view name, std::string_view beginning) {
  return std::ranges::equal(name.substr(0, beginning.size()), beginning, {}, lower, lower);
}

std::optional<std::string_view> closest_name(std::string_view name, std::span<const std::string_view> candidates) {
  if (name.empty() || name.size() > kLongestName) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t best_distance = 0;
  for (std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (!best || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (best && best_distance > best->size() / 3) return std::nullopt;
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  auto closest = closest_name(name, candidates);
  // Of a name that is only begun, the first that goes on so.
  if (!closest && name.size() > 2)
    if (const auto longer = std::ranges::find_if(candidates, [&](auto each) { return each.starts_with(name); });
        longer != candidates.end())
      closest = *longer;
  return closest ? "did you mean '" + std::string(*closest) + "'?" : std::string{};
}

}  // namespace shard::model
