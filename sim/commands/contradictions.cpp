// Rules of options that are no strategy's, and the one loop over all that are about what was given.
#include "sim/commands/contradictions.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/cli/contradiction.h"
#include "sim/strategy/rules.h"

namespace shard::commands {
namespace {

using plan::Broken;
using plan::Rule;

constexpr plan::Values kAny{};
constexpr std::string_view kNoMeaning = "has no meaning for {}";

/// Of options that are no strategy's.
constexpr Rule kOfTraining[] = {
    {"beta1|beta2|epsilon", kAny, "optimizer", plan::one_of("sgd"), Broken::both_given,
     "is of the moments of adam and adamw, and {} has none", "--optimizer adamw, or leave --{} out"},
    {"lr-schedule|warmup-steps|min-lr", kAny, "torch-scheduler", kAny, Broken::both_given,
     "and {} both say how the learning rate goes", "one of the two"},
    {"min-lr", kAny, "lr-schedule", plan::one_of("constant"), Broken::if_given, kNoMeaning, "--lr-schedule cosine"},
};

/// What a search without a forecast does not ask.
constexpr std::string_view kForecast =
    "forecast-ops|stage|prefetch|cluster|sequence|micro-batch|global-batch|optimizer|recompute|clip-norm|dropout|"
    "threads|reproducible|fp32-reduce-scatter|gradient-predivide-factor";

constexpr Rule kOfSearch[] = {
    {"grids", kAny, "rule", plan::other_than("gemini-v0.1.9"), Broken::both_given, kNoMeaning,
     "--rule gemini-v0.1.9, or leave --{} out"},
    {"search-interval", kAny, "rule", plan::other_than("gemini"), Broken::both_given, kNoMeaning,
     "--rule gemini, or leave --{} out"},
    {"filter", kAny, "rule", plan::one_of("exact|variable"), Broken::both_given, kNoMeaning,
     "--rule gemini, or leave --no-filter out"},
    {"forecast", plan::one_of("true"), "parameters", kAny, Broken::both_given,
     "runs a model, and {} is a list of parameters", "--model instead of --parameters, or leave --{} out"},
    {kForecast, kAny, "parameters", kAny, Broken::both_given, "is of a training step, and {} is a list of parameters",
     "--model instead of --parameters, or leave --{} out"},
    {kForecast, kAny, "forecast", plan::one_of("false"), Broken::both_given, "is of the forecast, and {} asks for none",
     "leave one of them out"},
};

std::string filled(std::string_view text, std::string_view with) {
  std::string result(text);
  if (const std::size_t at = result.find("{}"); at != std::string::npos) result.replace(at, 2, with);
  return result;
}

/// The values in force of a command's options.
class Options {
 public:
  explicit Options(const cli::Command& command) : command_(command) {
    for (cli::Effective& option : command.effective()) options_.emplace(option.name, std::move(option));
  }
  [[nodiscard]] bool given(std::string_view name) const {
    const auto at = options_.find(name);
    return at != options_.end() && at->second.origin.source != cli::Source::fallback;
  }
  [[nodiscard]] std::string_view value(std::string_view name) const {
    const auto at = options_.find(name);
    return at == options_.end() ? std::string_view{} : at->second.value;
  }
  [[nodiscard]] Result<void> check(const Rule& rule) const {
    if (rule.broken == Broken::by_values || (rule.broken == Broken::both_given && !given(rule.other))) return {};
    if (!rule.others.hold(value(rule.other))) return {};
    if (std::ranges::any_of(plan::words_in(rule.unless), [&](std::string_view name) { return given(name); })) return {};
    for (const std::string_view option : plan::words_in(rule.options))
      if (given(option) && rule.values.hold(value(option)))
        return cli::contradiction(command_.describe(option) + ' ' + filled(rule.why, command_.describe(rule.other)),
                                  filled(rule.help, option));
    return {};
  }

 private:
  const cli::Command& command_;
  std::map<std::string, cli::Effective, std::less<>> options_;
};

}  // namespace

Result<void> check_contradictions(const cli::Command& command) {
  const Options options(command);
  if (command.name() == "search")
    for (const Rule& rule : kOfSearch)
      if (Result<void> ok = options.check(rule); !ok) return ok;
  for (const std::span<const Rule> table : {plan::rules(), std::span<const Rule>(kOfTraining)})
    for (const Rule& rule : table)
      if (Result<void> ok = options.check(rule); !ok) return ok;
  return {};
}

}  // namespace shard::commands
