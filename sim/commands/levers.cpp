// The levers that people pull, in turn.
#include "sim/commands/levers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

/// A value of an option, or with an empty one a flag.
struct LeverChoice {
  const char* option;
  const char* value;
};

/// Values that a framework's rules do not have are refused, and so left out.
constexpr LeverChoice kChoices[] = {
    {"recompute", "selective"},
    {"recompute", "block"},
    {"stage", "1"},
    {"stage", "2"},
    {"stage", "3"},
    {"sequence-parallel", ""},
    {"attention", "sdpa"},
    {"optimizer-implementation", "fused"},
    {"optimizer-implementation", "for-loop"},
    {"optimizer-placement", "host"},
    {"param-placement", "host"},
    {"zero-grad", "none"},
    {"no-reproducible", ""},
    {"allocator-conf", "expandable_segments:True"},
};

/// Whether `word` is this option, with or without a value behind "=".
bool is_option(const std::string& word, const std::string& option) {
  return word == "--" + option || word.starts_with("--" + option + "=");
}

/// Without an option, and without what follows it where that is its value.
std::vector<std::string> without(std::span<const std::string> arguments, const std::string& option, bool has_value) {
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!is_option(arguments[i], option))
      rest.push_back(arguments[i]);
    else if (has_value && arguments[i] == "--" + option)
      ++i;
  }
  return rest;
}

}  // namespace

std::vector<Lever> find_levers(const LeverBase& base,
                               const std::function<Result<Bytes>(const std::vector<std::string>&)>& peak_of) {
  std::vector<Lever> levers;
  const auto pull = [&](const std::string& option, const std::string& value) {
    std::vector<std::string> arguments = without(base.arguments, option, !value.empty());
    if (value.empty() && option.starts_with("no-")) arguments = without(arguments, option.substr(3), false);
    const std::string word = "--" + option + (value.empty() ? "" : " " + value);
    arguments.push_back("--" + option + (value.empty() ? "" : "=" + value));
    if (const Result<Bytes> peak = peak_of(arguments); peak && *peak < base.peak)
      levers.push_back({word, *peak, base.peak - *peak});
  };
  for (const LeverChoice& choice : kChoices) pull(choice.option, choice.value);
  if (base.micro_batch > 1) pull("micro-batch", std::to_string(base.micro_batch / 2));
  std::ranges::stable_sort(levers, [](const Lever& a, const Lever& b) { return a.saved > b.saved; });
  return levers;
}

nlohmann::ordered_json to_json(const std::vector<Lever>& levers) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Lever& lever : levers)
    all.push_back({{"option", lever.option}, {"peak_bytes", lever.peak.count()}, {"saved_bytes", lever.saved.count()}});
  return all;
}

std::string to_text(const std::vector<Lever>& levers) {
  if (levers.empty()) return "what if: no single option that is modelled lowers the peak\n";
  std::string text = "what if, each alone and simulated anew:\n";
  for (const Lever& lever : levers) {
    std::string saved = show_mib(lever.saved);
    text += std::string(16 - std::min<std::size_t>(16, saved.size()), ' ') + saved + " less  " + lever.option + "  (" +
            show_mib(lever.peak) + ")\n";
  }
  return text;
}

}  // namespace shard::commands
