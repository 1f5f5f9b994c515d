// Finds the closest known name.
#include "sim/cli/closest.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace shard::cli {
namespace {

std::string folded(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c != '-' && c != '_') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: two back, one back, current.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> closest(std::string_view name, std::span<const std::string> known) {
  const std::string wanted = folded(name);
  if (wanted.empty()) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : known) {
    const std::string other = folded(candidate);
    std::size_t distance = edit_distance(wanted, other);
    // A third of the letters may be wrong: 'strage' is 'stage', 'cat' is not 'dog'.
    const std::size_t limit = std::max<std::size_t>(1, std::max(wanted.size(), other.size()) / 3);
    const bool begins = wanted.size() >= 2 && other.starts_with(wanted);
    if (distance > limit && !begins) continue;
    if (begins) distance = std::min<std::size_t>(distance, 1);
    if (!best || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggest(std::string_view name, std::span<const std::string> known, std::string_view prefix) {
  if (const auto match = closest(name, known)) return "did you mean '" + std::string(prefix) + *match + "'?";
  constexpr std::size_t kListed = 12;
  std::string text = "one of";
  for (std::size_t i = 0; i < std::min(kListed, known.size()); ++i) {
    text.append(i == 0 ? " " : ", ").append(prefix).append(known[i]);
  }
  if (known.size() > kListed) text += ", ...";
  return known.empty() ? "" : text;
}

}  // namespace shard::cli
