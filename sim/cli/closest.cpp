// Finds the closest known name.
#include "sim/cli/closest.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "sim/model/closest_name.h"

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

std::optional<std::string> closest(std::string_view name, std::span<const std::string> known) {
  const std::string wanted = folded(name);
  std::vector<std::string> others;
  for (const std::string& each : known) others.push_back(folded(each));
  const std::vector<std::string_view> views(others.begin(), others.end());
  if (const auto match = model::closest_name(wanted, views)) {
    return known[static_cast<std::size_t>(std::ranges::find(views, *match) - views.begin())];
  }
  if (wanted.size() < 2) return std::nullopt;  // one letter begins too many names
  const auto longer = std::ranges::find_if(others, [&](const std::string& other) { return other.starts_with(wanted); });
  if (longer == others.end()) return std::nullopt;
  return known[static_cast<std::size_t>(longer - others.begin())];
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
