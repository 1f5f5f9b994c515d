// The levers that people pull, in turn.
#include "sim/commands/levers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

/// A value of an option, or with an empty one a flag.
struct LeverChoice {
  std::string option;
  std::string value;
};

/// Options that say together where model data rests: a lever that says one says all.
constexpr const char* kPlacements[] = {"placement", "param-placement", "grad-placement", "optimizer-placement"};

/// Values that a framework's rules do not have are refused, and so left out.
const LeverChoice kChoices[] = {
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

/// What lowers a host's memory: kinds of model data back on the device or on a disk, each with where the others are
/// said to rest.
const std::vector<std::vector<LeverChoice>> kHostChoices{
    {{"stage", "1"}},
    {{"stage", "2"}},
    {{"stage", "3"}},
    {{"placement", "device"}},
    {{"param-placement", "host"}, {"grad-placement", "host"}, {"optimizer-placement", "device"}},
    {{"param-placement", "host"}, {"grad-placement", "host"}, {"optimizer-placement", "disk"}},
    {{"grad-placement", "host"}, {"optimizer-placement", "host"}},
    {{"pin-memory", "false"}},
    {{"zero-init", "yes"}},
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
                               const std::function<Result<LeverAnswer>(const std::vector<std::string>&)>& answer_of) {
  std::vector<Lever> levers;
  const bool host = base.memory == Memory::host;
  const auto pull = [&](std::span<const LeverChoice> choices) {
    std::vector<std::string> arguments(base.arguments.begin(), base.arguments.end());
    for (const LeverChoice& choice : choices) {
      const bool flag = choice.value.empty();
      if (host && choice.option.ends_with("placement"))
        for (const char* each : kPlacements) arguments = without(arguments, each, true);
      arguments = without(arguments, choice.option, !flag);
      if (flag && choice.option.starts_with("no-")) arguments = without(arguments, choice.option.substr(3), false);
    }
    std::string typed;
    for (const LeverChoice& choice : choices) {
      typed += (typed.empty() ? "--" : " --") + choice.option + (choice.value.empty() ? "" : " " + choice.value);
      arguments.push_back("--" + choice.option + (choice.value.empty() ? "" : "=" + choice.value));
      const auto names_disk = [](const std::string& word) { return is_option(word, "disk-path"); };
      if (choice.value == "disk" && std::ranges::none_of(arguments, names_disk))
        arguments.emplace_back("--disk-path=."), typed += " --disk-path DIR";
    }
    if (const Result<LeverAnswer> answer = answer_of(arguments); answer && answer->peak < base.peak)
      levers.push_back({typed, answer->peak, base.peak - answer->peak, base.memory, answer->verdict});
  };
  if (host)
    for (const std::vector<LeverChoice>& choices : kHostChoices) pull(choices);
  else
    for (const LeverChoice& choice : kChoices) pull({&choice, 1});
  const LeverChoice half{"micro-batch", std::to_string(base.micro_batch / 2)};
  if (base.micro_batch > 1) pull({&half, 1});
  std::ranges::stable_sort(levers, [](const Lever& a, const Lever& b) { return a.saved > b.saved; });
  return levers;
}

nlohmann::ordered_json to_json(const std::vector<Lever>& levers) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Lever& lever : levers)
    all.push_back({{"option", lever.option},
                   {"peak_bytes", lever.peak.count()},
                   {"saved_bytes", lever.saved.count()},
                   {"memory", to_string(lever.memory)},
                   {"verdict", cluster::to_string(lever.verdict)}});
  return all;
}

std::string to_text(const std::vector<Lever>& levers) {
  if (levers.empty()) return "what if: no single option that is modelled lowers the peak\n";
  std::string text = "what if, each alone and simulated anew";
  text += levers.front().memory == Memory::host ? "; host memory of a host:\n" : ":\n";
  for (const Lever& lever : levers) {
    std::string saved = show_mib(lever.saved);
    text += std::string(16 - std::min<std::size_t>(16, saved.size()), ' ') + saved + " less  " + lever.option + "  (" +
            show_mib(lever.peak) + ")" + (lever.verdict == cluster::Verdict::does_not_fit ? ", does not fit" : "") +
            "\n";
  }
  return text;
}

}  // namespace shard::commands
