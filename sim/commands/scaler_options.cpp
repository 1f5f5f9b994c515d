// Options of the dynamic loss scaler.
#include "sim/commands/scaler_options.h"

#include <type_traits>
#include <variant>

#include "sim/cli/contradiction.h"

namespace shard::commands {
namespace {

constexpr double kSteps = 1 << 30;

struct Knob {
  const char* option;
  std::variant<double ScalerOptions::*, std::optional<double> ScalerOptions::*, std::int64_t ScalerOptions::*> member;
  const char* value_name;
  const char* help;
  double least;
  double most;
};

constexpr Knob kKnobs[] = {
    {"initial-scale", &ScalerOptions::initial_scale, "SCALE", "loss scale of the first step", 1e-30, 1e30},
    {"min-scale", &ScalerOptions::min_scale, "SCALE", "it never backs off below", 1e-30, 1e30},
    {"max-scale", &ScalerOptions::max_scale, "SCALE", "it never grows above", 1e-30, 1e30},
    {"growth-factor", &ScalerOptions::growth_factor, "FACTOR", "times the scale, when it grows", 1, 1e6},
    {"backoff-factor", &ScalerOptions::backoff_factor, "FACTOR", "times the scale, when it backs off", 1e-6, 1},
    {"growth-interval", &ScalerOptions::growth_interval, "STEPS", "good steps in a row after which it grows", 1,
     kSteps},
    {"hysteresis", &ScalerOptions::hysteresis, "N", "overflows since it grew last before it backs off", 0, kSteps},
};

}  // namespace

void add_scaler_options(cli::Command& command, ScalerOptions& o) {
  cli::Group scaler = command.group("Loss scaler (fp16)");
  for (const Knob& knob : kKnobs)
    std::visit(
        [&](auto member) {
          cli::Option option = scaler.add(knob.option, &(o.*member), knob.value_name, knob.help);
          option.least(knob.least).most(knob.most);
          if constexpr (std::is_same_v<decltype(member), std::optional<double> ScalerOptions::*>)
            option.default_text("none");
        },
        knob.member);
}

std::vector<std::string_view> scaler_option_names() {
  std::vector<std::string_view> names;
  for (const Knob& knob : kKnobs) names.emplace_back(knob.option);
  return names;
}

Result<void> check_has_scaler(const cli::Command& command, const char* option, const plan::Strategy& s) {
  if (!command.given(option) || s.has_scaler()) return {};
  return cli::contradiction(
      command.describe(option) + " is of the loss scaler, which " + command.describe("precision") + " does not have",
      "--precision fp16");
}

Result<void> check_scaler(const cli::Command& command, const ScalerOptions& o, const plan::Strategy& s) {
  for (const Knob& knob : kKnobs)
    if (Result<void> ok = check_has_scaler(command, knob.option, s); !ok) return ok;
  if (o.min_scale > o.initial_scale)
    return cli::contradiction(command.describe("min-scale") + " is above " + command.describe("initial-scale"),
                              "leave --min-scale out");
  if (o.max_scale && *o.max_scale < o.initial_scale)
    return cli::contradiction(command.describe("max-scale") + " is below " + command.describe("initial-scale"),
                              "leave --max-scale out");
  return {};
}

plan::ScalerKnobs scaler_knobs(const ScalerOptions& o) {
  plan::ScalerKnobs knobs{.initial_scale = static_cast<float>(o.initial_scale),
                          .min_scale = static_cast<float>(o.min_scale),
                          .growth_factor = static_cast<float>(o.growth_factor),
                          .backoff_factor = static_cast<float>(o.backoff_factor),
                          .growth_interval = static_cast<std::int32_t>(o.growth_interval),
                          .hysteresis = static_cast<std::int32_t>(o.hysteresis)};
  if (o.max_scale) knobs.max_scale = static_cast<float>(*o.max_scale);
  return knobs;
}

}  // namespace shard::commands
