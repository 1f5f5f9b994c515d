// Options of the dynamic loss scaler.
#include "sim/commands/scaler_options.h"

#include "sim/cli/contradiction.h"

namespace shard::commands {
void add_scaler_options(cli::Command& command, ScalerOptions& o) {
  constexpr double kSteps = 1 << 30;
  cli::Group scaler = command.group("Loss scaler (fp16)");
  scaler.add("initial-scale", &o.initial_scale, "SCALE", "loss scale of the first step").least(1e-30).most(1e30);
  scaler.add("min-scale", &o.min_scale, "SCALE", "it never backs off below").least(1e-30).most(1e30);
  scaler.add("max-scale", &o.max_scale, "SCALE", "it never grows above").least(1e-30).most(1e30).default_text("none");
  scaler.add("growth-factor", &o.growth_factor, "FACTOR", "times the scale, when it grows").least(1).most(1e6);
  scaler.add("backoff-factor", &o.backoff_factor, "FACTOR", "times the scale, when it backs off").least(1e-6).most(1);
  scaler.add("growth-interval", &o.growth_interval, "STEPS", "good steps in a row after which it grows")
      .least(1)
      .most(kSteps);
  scaler.add("hysteresis", &o.hysteresis, "N", "overflows since it grew last before it backs off")
      .least(0)
      .most(kSteps);
}

Result<void> check_has_scaler(const cli::Command& command, const char* option, const plan::Strategy& s) {
  if (!command.given(option) || s.has_scaler()) return {};
  return cli::contradiction(
      command.describe(option) + " is of the loss scaler, which " + command.describe("precision") + " does not have",
      "--precision fp16");
}

Result<void> check_scaler(const cli::Command& command, const ScalerOptions& o, const plan::Strategy& s) {
  for (const char* option :
       {"initial-scale", "min-scale", "max-scale", "growth-factor", "backoff-factor", "growth-interval", "hysteresis"})
    if (Result<void> ok = check_has_scaler(command, option, s); !ok) return ok;
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
