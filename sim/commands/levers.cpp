// The levers that people pull, in turn.
#include "sim/commands/levers.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/cost/laws/whole_step.h"
#include "traces/base/parallel.h"

namespace shard::commands {
namespace {

/// Of a flag "true" or "false".
struct LeverChoice {
  std::string option;
  std::string value;
};

/// As it is typed.
std::string typed(const LeverChoice& choice) {
  if (choice.value == "true") return "--" + choice.option;
  if (choice.value == "false" && choice.option == "reproducible") return "--no-" + choice.option;
  return "--" + choice.option + " " + choice.value;
}

/// Options that say together where model data rests: a lever that says one says all.
constexpr const char* kPlacements[] = {"placement", "param-placement", "grad-placement", "optimizer-placement"};

/// Values that a framework's rules do not have are refused, and so left out.
const LeverChoice kChoices[] = {
    {"recompute", "selective"},
    {"recompute", "block"},
    {"stage", "1"},
    {"stage", "2"},
    {"stage", "3"},
    {"sequence-parallel", "true"},
    {"attention", "sdpa"},
    {"optimizer-implementation", "fused"},
    {"optimizer-implementation", "for-loop"},
    {"optimizer-placement", "host"},
    {"param-placement", "host"},
    {"zero-grad", "none"},
    {"reproducible", "false"},
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

/// What it costs: nearer to one another than laws are right, two speeds cannot be told apart.
std::string speed_text(const Lever& lever) {
  if (lever.faster <= 0) return "";
  const double change = lever.faster - 1;
  if (std::abs(change) < cost::kLawError) return ", about as fast";
  return ", " + show_fixed(100 * std::abs(change), 0) + (change < 0 ? " % fewer" : " % more") + " tokens/s";
}

std::string outcome_text(const Lever& lever) {
  if (lever.verdict != cluster::Verdict::does_not_fit) return speed_text(lever);
  const bool of_another = lever.short_of && is_host(*lever.short_of) != is_host(lever.memory);
  return speed_text(lever) + ", does not fit" +
         (of_another ? is_host(*lever.short_of) ? " the host" : " the device" : "");
}

/// Of a run that does not fit, where each lever alone is too little.
std::string none_fits(const std::vector<Lever>& levers) {
  const bool none =
      std::ranges::all_of(levers, [](const Lever& lever) { return lever.verdict == cluster::Verdict::does_not_fit; });
  return none ? "  no single option makes it fit: --find max-micro-batch or max-sequence says how far down, more ranks "
                "(--world-size) or two options together do\n"
              : "";
}

/// What is tried, each by itself.
std::vector<std::vector<LeverChoice>> choices_for(const LeverBase& base) {
  std::vector<std::vector<LeverChoice>> all;
  if (base.memory == Memory::host)
    all = kHostChoices;
  else
    for (const LeverChoice& choice : kChoices) all.push_back({choice});
  if (base.micro_batch > 1) all.push_back({{"micro-batch", std::to_string(base.micro_batch / 2)}});
  return all;
}

using AnswerOf = std::function<Result<LeverAnswer>(std::span<const cli::Change>)>;

/// None where what is changed contradicts itself or what is modelled, or lowers nothing.
std::optional<Lever> pulled(const LeverBase& base, const std::vector<LeverChoice>& choices, const AnswerOf& answer_of) {
  std::vector<cli::Change> changes;
  std::string option;
  const auto says = [&](std::string_view name) {
    return std::ranges::find(choices, name, &LeverChoice::option) != choices.end();
  };
  if (base.memory == Memory::host && std::ranges::any_of(kPlacements, says))
    for (const char* each : kPlacements)
      if (!says(each)) changes.push_back({each});
  for (const LeverChoice& choice : choices) {
    option += (option.empty() ? "" : " ") + typed(choice);
    changes.push_back({choice.option, choice.value});
    if (choice.value == "disk" && !base.has_disk) changes.push_back({"disk-path", "."}), option += " --disk-path DIR";
  }
  const Result<LeverAnswer> answer = answer_of(changes);
  if (!answer || answer->peak >= base.peak) return std::nullopt;
  return Lever{.option = option,
               .peak = answer->peak,
               .saved = base.peak - answer->peak,
               .memory = base.memory,
               .verdict = answer->verdict,
               .short_of = answer->short_of,
               .faster = base.tokens_per_second > 0 ? answer->tokens_per_second / base.tokens_per_second : 0};
}

}  // namespace

std::vector<Lever> find_levers(const LeverBase& base, const AnswerOf& answer_of) {
  const std::vector<std::vector<LeverChoice>> choices = choices_for(base);
  std::vector<std::optional<Lever>> found(choices.size());
  for_each_index(choices.size(), true, [&](std::size_t i) { found[i] = pulled(base, choices[i], answer_of); });
  std::vector<Lever> levers;
  for (std::optional<Lever>& lever : found)
    if (lever) levers.push_back(std::move(*lever));
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
                   {"verdict", cluster::to_string(lever.verdict)},
                   {"relative_speed", lever.faster > 0 ? nlohmann::ordered_json(lever.faster) : nullptr}});
  return all;
}

std::string to_text(const std::vector<Lever>& levers, ShowBytes show) {
  if (levers.empty()) return "what if: no single option that is modelled lowers the peak\n";
  std::string text = "what if, each alone and simulated anew";
  text += levers.front().memory == Memory::host ? "; host memory of a host:\n" : ":\n";
  for (const Lever& lever : levers) {
    const std::string saved = show(lever.saved);
    text += std::string(16 - std::min<std::size_t>(16, saved.size()), ' ') + saved + " less  " + lever.option + "  (" +
            show(lever.peak) + ")" + outcome_text(lever) + "\n";
  }
  return text;
}

std::string largest_text(const std::vector<Lever>& levers, bool fits, ShowBytes show) {
  if (levers.empty()) return "";
  const Lever& largest = levers.front();
  return "  largest lever: " + largest.option + ", " + show(largest.saved) + " less (" + show(largest.peak) + ")" +
         outcome_text(largest) + "\n" + (fits ? "" : none_fits(levers));
}

}  // namespace shard::commands
