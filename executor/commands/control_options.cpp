// Options of `shardscope train` that steer steps without changing the plan.
#include "executor/commands/control_options.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "sim/cli/contradiction.h"

namespace shard::commands {
namespace {

/// "RANK:STEP"; nothing when it is not two numbers.
std::optional<executor::InjectedOverflow> read_injection(const std::string& text) {
  executor::InjectedOverflow inject;
  const char* const end = text.data() + text.size();
  const auto rank = std::from_chars(text.data(), end, inject.rank);
  if (rank.ec != std::errc{} || rank.ptr == end || *rank.ptr != ':') return std::nullopt;
  const auto step = std::from_chars(rank.ptr + 1, end, inject.step);
  if (step.ec != std::errc{} || step.ptr != end) return std::nullopt;
  inject.step = std::max<std::int64_t>(inject.step, 0) - 1;
  return inject;
}

Result<void> check_injections(const cli::Command& command, const ControlOptions& o, const plan::Strategy& s,
                              std::int64_t steps) {
  if (Result<void> ok = check_has_scaler(command, "inject-overflow", s); !ok) return ok;
  for (const std::string& text : o.inject_overflow) {
    const std::string given = "--inject-overflow " + text;
    const std::optional<executor::InjectedOverflow> inject = read_injection(text);
    if (!inject)
      return Error{.code = Errc::usage,
                   .what = given + " is not a rank and a step",
                   .where = "options",
                   .help = "--inject-overflow 0:1"};
    if (inject->rank < 0 || inject->rank >= s.world_size)
      return cli::contradiction(given + " names a rank that " + command.describe("world-size") + " does not have",
                                "a rank from 0 to " + std::to_string(s.world_size - 1));
    if (inject->step < 0 || inject->step >= steps)
      return cli::contradiction(given + " names a step that " + command.describe("steps") + " does not have",
                                "a step from 1 to " + std::to_string(steps));
  }
  return {};
}

}  // namespace

void add_control_options(cli::Command& command, ControlOptions& o) {
  cli::Group rate = command.group("Learning rate and optimizer");
  rate.add("lr", &o.learning_rate, "RATE", "learning rate, the highest where there is a schedule").common().least(0);
  rate.add_choice<rates::ScheduleKind>(
      "lr-schedule", &o.schedule,
      {{"constant", rates::ScheduleKind::constant, "the same in every step"},
       {"linear", rates::ScheduleKind::linear, "falls evenly to --min-lr after the last step"},
       {"cosine", rates::ScheduleKind::cosine, "falls along half a cosine to --min-lr after the last step"}},
      "how the learning rate goes on after the warm-up");
  rate.add("torch-scheduler", &o.torch_scheduler, "CALL",
           "instead of these a scheduler of torch.optim.lr_scheduler, as Python writes it, stepped after every step: "
           "\"SequentialLR([LinearLR(0.1, total_iters=100), CosineAnnealingLR(T_max=900)], milestones=[100])\"")
      .default_text("none");
  rate.add("warmup-steps", &o.warmup_steps, "N", "steps in which the learning rate rises evenly to --lr").least(0);
  rate.add("min-lr", &o.min_learning_rate, "RATE", "where a falling schedule ends").least(0);
  rate.add("beta1", &o.beta1, "RATE", "adam, adamw: decay of the first moment").least(0).most(1);
  rate.add("beta2", &o.beta2, "RATE", "adam, adamw: decay of the second moment").least(0).most(1);
  rate.add("epsilon", &o.epsilon, "VALUE", "adam, adamw: added to the root of the second moment").least(0);
  cli::Group tests = command.group("For tests");
  tests
      .add("inject-overflow", &o.inject_overflow, "RANK:STEP",
           "fp16: the loss scale of that rank is infinite in that step, counted from 1; may be given again")
      .default_text("none");
}

Result<void> check_control(const cli::Command& command, const ControlOptions& o, const plan::Strategy& s,
                           std::int64_t steps) {
  if (Result<void> ok = check_injections(command, o, s, steps); !ok) return ok;
  if (!o.torch_scheduler.empty())
    if (const auto read = rates::TorchSchedule::read(o.torch_scheduler, "--torch-scheduler"); !read)
      return read.error();
  if (o.warmup_steps > steps)
    return cli::contradiction(command.describe("warmup-steps") + " is more than " + command.describe("steps"),
                              "--warmup-steps " + std::to_string(steps));
  if (o.min_learning_rate > o.learning_rate)
    return cli::contradiction(command.describe("min-lr") + " is above " + command.describe("lr"), "leave --min-lr out");
  for (const auto& [name, beta] : {std::pair{"beta1", o.beta1}, {"beta2", o.beta2}})
    if (beta >= 1)
      return cli::contradiction(command.describe(name) + " forgets nothing: moments would never form", "0.9");
  return {};
}

plan::ControlKnobs knobs_of(const StrategyOptions& o) {
  return {.scaler = scaler_knobs(o.scaler), .max_norm = static_cast<float>(o.clip_norm.value_or(0))};
}

std::vector<executor::InjectedOverflow> injections_of(const ControlOptions& o) {
  std::vector<executor::InjectedOverflow> injections;
  for (const std::string& text : o.inject_overflow)
    injections.push_back(read_injection(text).value_or(executor::InjectedOverflow{}));
  return injections;
}

rates::Schedule schedule_of(const ControlOptions& o, std::int64_t steps) {
  rates::Schedule schedule{.kind = o.schedule,
                           .peak = o.learning_rate,
                           .lowest = o.min_learning_rate,
                           .warmup_steps = o.warmup_steps,
                           .steps = steps};
  if (o.torch_scheduler.empty()) return schedule;
  Result<rates::TorchSchedule> torch = rates::TorchSchedule::read(o.torch_scheduler, "--torch-scheduler");
  assert(torch);
  schedule.torch = std::make_shared<const rates::TorchSchedule>(std::move(*torch));
  return schedule;
}

}  // namespace shard::commands
