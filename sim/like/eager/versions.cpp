// The table of releases, and questions to it.
#include "sim/like/eager/versions.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace shard::like::eager {
namespace {

constexpr Version kOfPyTorch[] = {kNewest, 210, 209, 208};
constexpr Version kOfTransformers[] = {524, kUsualTransformers, 514, 505, 457};
constexpr Version kOfDeepSpeed[] = {kUsualDeepSpeed, 1809};
constexpr Version kOfMegatron[] = {16};

constexpr std::array kLibraries{LibraryRow{Library::pytorch, "PyTorch", kOfPyTorch},
                                LibraryRow{Library::transformers, "transformers", kOfTransformers},
                                LibraryRow{Library::deepspeed, "DeepSpeed", kOfDeepSpeed},
                                LibraryRow{Library::megatron, "Megatron-LM core", kOfMegatron}};

constexpr std::array kRules{kKeepsLtWorkspace, kCastsLogits,         kCopiesFrequencies, kMaskedBiasOfGpt2,
                            kMaskOfGpt2,       kAttentionWrittenOut, kReplacesLinear};

bool has_same_rules(Library library, Version a, Version b) {
  return std::ranges::all_of(
      kRules, [&](const VersionRule& rule) { return rule.library != library || rule.holds(a) == rule.holds(b); });
}

/// The number that `text` begins with, which goes from it; none where there is none of at most `most`.
std::optional<Version> leading_number(std::string_view& text, Version most) {
  Version number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || text.front() == '-' || number > most) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::span<const VersionRule> version_rules() {
  return kRules;
}

const LibraryRow& library_row(Library library) {
  return *std::ranges::find(kLibraries, library, &LibraryRow::library);
}

std::optional<Version> version_of(std::string_view text) {
  constexpr Version kMajor = 100, kMost = 99;
  const std::optional<Version> major = leading_number(text, kMost);
  if (!major || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const std::optional<Version> minor = leading_number(text, kMost);
  if (!minor) return std::nullopt;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!leading_number(text, kMost)) return std::nullopt;
  }
  return text.empty() ? std::optional(*major * kMajor + *minor) : std::nullopt;
}

bool is_compared(Library library, Version version) {
  return std::ranges::find(library_row(library).compared, version) != library_row(library).compared.end();
}

bool is_known(Library library, Version version) {
  if (is_compared(library, version)) return true;
  const std::span<const Version> compared = library_row(library).compared;
  const auto before = std::ranges::find_if(compared, [&](Version each) { return each < version; });
  if (before == compared.begin() || before == compared.end()) return false;
  return has_same_rules(library, *before, *std::prev(before)) && has_same_rules(library, *before, version);
}

std::string compared_text(Library library) {
  std::string text;
  for (const Version each : library_row(library).compared) text += (text.empty() ? "" : ", ") + to_text(library, each);
  return text;
}

}  // namespace shard::like::eager
