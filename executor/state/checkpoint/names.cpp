// Names are written and read here only.
#include "executor/state/checkpoint/names.h"

#include <charconv>
#include <cstddef>

#include "traces/base/file_place.h"

namespace shard::checkpoint {
namespace {

constexpr std::string_view kStepName = "step-";
constexpr std::size_t kStepDigits = 8;
constexpr std::size_t kHiddenDigits = 16;

std::string_view suffix_of(DirectoryKind kind) {
  switch (kind) {
    case DirectoryKind::step: return "";
    case DirectoryKind::partial: return ".partial";
    case DirectoryKind::replaced: return ".replaced";
    case DirectoryKind::removed: return ".removed";
  }
  return "";
}

std::optional<std::int64_t> parse_step_name(std::string_view name) {
  if (!name.starts_with(kStepName)) return std::nullopt;
  const std::string_view digits = name.substr(kStepName.size());
  std::int64_t step = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (fault != std::errc{} || end != digits.data() + digits.size() || step_name(step) != name) return std::nullopt;
  return step;
}

}  // namespace

std::string step_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kStepDigits) digits.insert(0, kStepDigits - digits.size(), '0');
  return std::string(kStepName) + digits;
}

std::string hidden_name(std::int64_t step, DirectoryKind kind) {
  return unique_name('.' + step_name(step)) + std::string(suffix_of(kind));
}

std::optional<DirectoryName> parse_directory_name(std::string_view name) {
  if (!name.starts_with('.')) {
    const std::optional<std::int64_t> step = parse_step_name(name);
    if (!step) return std::nullopt;
    return DirectoryName{DirectoryKind::step, *step};
  }
  for (const DirectoryKind kind : {DirectoryKind::partial, DirectoryKind::replaced, DirectoryKind::removed}) {
    const std::string_view suffix = suffix_of(kind);
    const std::size_t tail = 1 + kHiddenDigits + suffix.size();
    if (!name.ends_with(suffix) || name.size() <= tail + 1) continue;
    const std::string_view random = name.substr(name.size() - tail, 1 + kHiddenDigits);
    if (random[0] != '.' || random.substr(1).find_first_not_of("0123456789abcdef") != std::string_view::npos) continue;
    if (const auto step = parse_step_name(name.substr(1, name.size() - tail - 1))) return DirectoryName{kind, *step};
  }
  return std::nullopt;
}

std::filesystem::path without_slash(const std::filesystem::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace shard::checkpoint
