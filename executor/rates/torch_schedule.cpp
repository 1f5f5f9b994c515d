// Parameters and defaults are those of torch 2.9's torch/optim/lr_scheduler.py; rates are its closed forms.
#include "executor/rates/torch_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include "sim/foreign/python_expression.h"
#include "sim/foreign/python_tokens.h"
#include "traces/base/numbers.h"

namespace shard::rates {
namespace {

using Class = TorchSchedule::Class;
using foreign::PythonValue;

/// What a parameter may be.
enum class Takes : std::uint8_t {
  number,      ///< finite
  factor,      ///< from 0 to 1
  factor_up,   ///< above 0, to 1
  positive,    ///< above 0
  steps,       ///< a whole number of at least 1
  yes_or_no,   ///< True or False
  no,          ///< False
  strategy,    ///< 'cos' (1) or 'linear' (0)
  milestones,  ///< a list of steps, rising
  schedulers,  ///< a list of calls
  ignored,     ///< says nothing here
};

constexpr double kRequired = std::numeric_limits<double>::quiet_NaN();

struct Parameter {
  std::string_view name;
  Takes takes = Takes::number;
  double otherwise = kRequired;
};

constexpr Parameter kConstant[] = {{"factor", Takes::factor, 1.0 / 3}, {"total_iters", Takes::steps, 5}};
constexpr Parameter kLinear[] = {
    {"start_factor", Takes::factor_up, 1.0 / 3}, {"end_factor", Takes::factor, 1}, {"total_iters", Takes::steps, 5}};
constexpr Parameter kExponential[] = {{"gamma", Takes::number}};
constexpr Parameter kStep[] = {{"step_size", Takes::steps}, {"gamma", Takes::number, 0.1}};
constexpr Parameter kMultiStep[] = {{"milestones", Takes::milestones}, {"gamma", Takes::number, 0.1}};
constexpr Parameter kPolynomial[] = {{"total_iters", Takes::steps, 5}, {"power", Takes::number, 1}};
constexpr Parameter kCosine[] = {{"T_max", Takes::steps}, {"eta_min", Takes::number, 0}};
constexpr Parameter kRestarts[] = {{"T_0", Takes::steps}, {"T_mult", Takes::steps, 1}, {"eta_min", Takes::number, 0}};
constexpr Parameter kOneCycle[] = {{"max_lr", Takes::number},
                                   {"total_steps", Takes::steps},
                                   {"epochs", Takes::ignored, 0},
                                   {"steps_per_epoch", Takes::ignored, 0},
                                   {"pct_start", Takes::factor, 0.3},
                                   {"anneal_strategy", Takes::strategy, 1},
                                   {"cycle_momentum", Takes::no},
                                   {"base_momentum", Takes::ignored, 0},
                                   {"max_momentum", Takes::ignored, 0},
                                   {"div_factor", Takes::positive, 25},
                                   {"final_div_factor", Takes::positive, 1e4},
                                   {"three_phase", Takes::yes_or_no, 0}};
constexpr Parameter kSequential[] = {{"schedulers", Takes::schedulers}, {"milestones", Takes::milestones}};

struct Known {
  std::string_view name;
  std::span<const Parameter> parameters;
};

/// By Class.
constexpr Known kKnown[] = {
    {"ConstantLR", kConstant},       {"LinearLR", kLinear},
    {"ExponentialLR", kExponential}, {"StepLR", kStep},
    {"MultiStepLR", kMultiStep},     {"PolynomialLR", kPolynomial},
    {"CosineAnnealingLR", kCosine},  {"CosineAnnealingWarmRestarts", kRestarts},
    {"OneCycleLR", kOneCycle},       {"SequentialLR", kSequential},
};

const Known& known(Class of) {
  return kKnown[static_cast<std::size_t>(of)];
}

bool has_number(Takes takes) {
  return takes != Takes::milestones && takes != Takes::schedulers && takes != Takes::ignored;
}

/// The place of a parameter among numbers_.
std::size_t number_place(Class of, std::size_t parameter) {
  std::size_t place = 0;
  for (std::size_t i = 0; i < parameter; ++i)
    if (has_number(known(of).parameters[i].takes)) ++place;
  return place;
}

std::optional<double> number_in(const PythonValue& value) {
  double number = 0;
  switch (value.kind) {
    case PythonValue::Kind::integer: number = static_cast<double>(value.integer); break;
    case PythonValue::Kind::real: number = value.real; break;
    case PythonValue::Kind::none:
    case PythonValue::Kind::boolean:
    case PythonValue::Kind::text:
    case PythonValue::Kind::symbol:
    case PythonValue::Kind::list:
    case PythonValue::Kind::table:
    case PythonValue::Kind::call:
    case PythonValue::Kind::opaque: return std::nullopt;
  }
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

double cosine_between(double from, double to, double part) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
}

}  // namespace

/// From a value of the restricted Python reader.
class TorchScheduleReader {
 public:
  explicit TorchScheduleReader(std::string_view where) : where_(where) {}

  [[nodiscard]] Result<TorchSchedule> read(const PythonValue& value, bool nested) const {
    const std::string_view called = value.kind == PythonValue::Kind::call ? std::string_view(value.text) : "";
    const std::string_view name = called.substr(called.rfind('.') + 1);
    const auto* const found = std::ranges::find(kKnown, name, &Known::name);
    if (found == std::end(kKnown))
      return fault("is no call of a scheduler that needs neither code nor a metric" +
                       (value.text.empty() ? "" : ": " + value.text),
                   "one of " + TorchSchedule::classes() + ": \"CosineAnnealingLR(T_max=1000)\"");
    TorchSchedule schedule;
    schedule.class_ = static_cast<Class>(found - std::begin(kKnown));
    if (nested && (schedule.class_ == Class::sequential || schedule.class_ == Class::one_cycle))
      return fault(std::string(name) + " within SequentialLR cannot be stepped to", "the others");
    if (Result<void> r = arguments(value, schedule); !r) return r.error();
    if (Result<void> r = together(schedule); !r) return r.error();
    return schedule;
  }

 private:
  [[nodiscard]] Error fault(std::string what, std::string help) const {
    return {Errc::usage, std::move(what), std::string(where_), std::move(help)};
  }

  [[nodiscard]] Result<void> arguments(const PythonValue& call, TorchSchedule& into) const {
    const Known& of = known(into.class_);
    std::vector<const PythonValue*> given(of.parameters.size(), nullptr);
    const std::string name(of.name);
    if (call.items.size() > given.size())
      return fault(name + " takes " + std::to_string(given.size()) + " arguments at most, the optimizer left out",
                   "what torch.optim.lr_scheduler." + name + " takes");
    for (std::size_t i = 0; i < call.items.size(); ++i) given[i] = &call.items[i];
    for (const auto& [key, value] : call.entries) {
      if (key == "verbose" || (key == "last_epoch" && number_in(value) == -1.0)) continue;
      const auto at = std::ranges::find(of.parameters, key, &Parameter::name);
      std::string all;
      for (const Parameter& p : of.parameters) all += (all.empty() ? "" : ", ") + std::string(p.name);
      if (at == of.parameters.end()) return fault(name + " has no parameter " + key, all);
      const auto place = static_cast<std::size_t>(at - of.parameters.begin());
      if (given[place] != nullptr) return fault(name + " is given " + key + " twice", "one of them");
      given[place] = &value;
    }
    for (std::size_t i = 0; i < given.size(); ++i)
      if (Result<void> r = argument(i, given[i], into); !r) return r;
    return {};
  }

  /// `value`: null where it is not given.
  [[nodiscard]] Result<void> argument(std::size_t i, const PythonValue* value, TorchSchedule& into) const {
    const Parameter& p = known(into.class_).parameters[i];
    const std::string name = std::string(known(into.class_).name) + "'s " + std::string(p.name);
    if (p.takes == Takes::ignored) {
      if (value == nullptr || value->kind == PythonValue::Kind::none || p.name.ends_with("momentum")) return {};
      return fault(name + " is not taken here", "total_steps");
    }
    if (value == nullptr) {
      if (p.takes == Takes::no)
        return fault(name + " is True where it is not given, and betas do not move here", "cycle_momentum=False");
      if (!has_number(p.takes) || std::isnan(p.otherwise))
        return fault(name + " is not given", std::string(p.name) + "=...");
      into.numbers_[number_place(into.class_, i)] = p.otherwise;
      return {};
    }
    if (p.takes == Takes::schedulers) return schedulers(*value, name, into);
    if (p.takes == Takes::milestones) return milestones(*value, name, into);
    const std::optional<double> number = as_number(p.takes, *value);
    if (!number) return fault(name + " is not " + wanted(p.takes), std::string(p.name) + "=" + example(p.takes));
    into.numbers_[number_place(into.class_, i)] = *number;
    return {};
  }

  [[nodiscard]] static std::optional<double> as_number(Takes takes, const PythonValue& value) {
    const std::optional<double> number = number_in(value);
    const auto only_if = [&](bool right) { return right ? number : std::nullopt; };
    switch (takes) {
      case Takes::number: return number;
      case Takes::factor: return only_if(number && *number >= 0 && *number <= 1);
      case Takes::factor_up: return only_if(number && *number > 0 && *number <= 1);
      case Takes::positive: return only_if(number && *number > 0);
      case Takes::steps: return only_if(number && *number >= 1 && *number <= 1e15 && std::floor(*number) == *number);
      case Takes::yes_or_no:
      case Takes::no:
        if (value.kind != PythonValue::Kind::boolean || (takes == Takes::no && value.flag)) return std::nullopt;
        return value.flag ? 1 : 0;
      case Takes::strategy:
        if (value.kind != PythonValue::Kind::text || (value.text != "cos" && value.text != "linear"))
          return std::nullopt;
        return value.text == "cos" ? 1 : 0;
      case Takes::milestones:
      case Takes::schedulers:
      case Takes::ignored: break;
    }
    return std::nullopt;
  }

  [[nodiscard]] static std::string wanted(Takes takes) {
    switch (takes) {
      case Takes::number: return "a finite number";
      case Takes::factor: return "a number from 0 to 1";
      case Takes::factor_up: return "a number above 0 and up to 1";
      case Takes::positive: return "a number above 0";
      case Takes::steps: return "a whole number of steps, at least 1";
      case Takes::yes_or_no: return "True or False";
      case Takes::no: return "False, and betas do not move here";
      case Takes::strategy: return "'cos' or 'linear'";
      case Takes::milestones: return "a list of steps that rise";
      case Takes::schedulers: return "a list of schedulers";
      case Takes::ignored: break;
    }
    return "taken";
  }
  [[nodiscard]] static std::string example(Takes takes) {
    switch (takes) {
      case Takes::steps: return "1000";
      case Takes::yes_or_no:
      case Takes::no: return "False";
      case Takes::strategy: return "'cos'";
      case Takes::milestones: return "[100, 200]";
      case Takes::number:
      case Takes::factor:
      case Takes::factor_up:
      case Takes::positive:
      case Takes::schedulers:
      case Takes::ignored: break;
    }
    return "0.1";
  }

  [[nodiscard]] Result<void> milestones(const PythonValue& value, const std::string& name, TorchSchedule& into) const {
    const Error wrong = fault(name + " is not " + wanted(Takes::milestones), example(Takes::milestones));
    if (value.kind != PythonValue::Kind::list) return wrong;
    for (const PythonValue& item : value.items) {
      const std::optional<double> step = as_number(Takes::steps, item);
      if (!step || (!into.milestones_.empty() && static_cast<double>(into.milestones_.back()) > *step)) return wrong;
      into.milestones_.push_back(static_cast<std::int64_t>(*step));
    }
    return {};
  }

  [[nodiscard]] Result<void> schedulers(const PythonValue& value, const std::string& name, TorchSchedule& into) const {
    if (value.kind != PythonValue::Kind::list || value.items.empty())
      return fault(name + " is not " + wanted(Takes::schedulers), "[LinearLR(), CosineAnnealingLR(T_max=1000)]");
    for (const PythonValue& item : value.items) {
      Result<TorchSchedule> part = read(item, true);
      if (!part) return part.error();
      into.parts_.push_back(std::move(*part));
    }
    return {};
  }

  [[nodiscard]] Result<void> together(const TorchSchedule& schedule) const {
    if (schedule.class_ != Class::sequential || schedule.parts_.size() == schedule.milestones_.size() + 1) return {};
    return fault("SequentialLR has " + std::to_string(schedule.parts_.size()) + " schedulers and " +
                     std::to_string(schedule.milestones_.size()) + " milestones between them",
                 "a milestone fewer than schedulers");
  }

  std::string_view where_;
};

Result<TorchSchedule> TorchSchedule::read(std::string_view text, std::string_view where) {
  const auto tokens = foreign::python_tokens(text, where);
  if (!tokens) return tokens.error();
  foreign::PythonNames names;
  names.star_import = true;
  names.keep_calls = true;
  for (const Known& each : kKnown)
    names.scopes.back().emplace(each.name, foreign::python_symbol(std::string(each.name)));
  for (const char* const module : {"lr_scheduler", "optim", "torch"})
    names.scopes.back().emplace(module, foreign::python_symbol(module));
  std::vector<foreign::PythonCall> calls;
  foreign::PythonExpressions expressions(text, where, *tokens, names, calls);
  const PythonValue value = expressions.expression();
  if (expressions.error()) return *expressions.error();
  while (expressions.now().kind == foreign::PythonTokenKind::newline) expressions.advance();
  if (expressions.now().kind != foreign::PythonTokenKind::end)
    return Error{Errc::usage, "something follows the scheduler: " + expressions.now().text, std::string(where),
                 "one call, SequentialLR(...) for several"};
  return TorchScheduleReader(where).read(value, false);
}

namespace {

/// Of torch's OneCycleLR, with `part`s of total_steps as it cuts them.
double one_cycle_at(std::span<const double> n, std::int64_t step) {
  const double max = n[0];
  const double total = n[1];
  const double start = n[2];
  const bool cosine = n[3] != 0;
  const double initial = max / n[5];
  const double lowest = initial / n[6];
  const bool three = n[7] != 0;
  struct Phase {
    double end, from, to;
  };
  const Phase three_phases[] = {
      {start * total - 1, initial, max}, {2 * start * total - 2, max, initial}, {total - 1, initial, lowest}};
  const Phase two_phases[] = {{start * total - 1, initial, max}, {total - 1, max, lowest}};
  const std::span<const Phase> phases =
      three ? std::span<const Phase>(three_phases) : std::span<const Phase>(two_phases);
  const double at = std::min(static_cast<double>(step), total - 1);
  double begin = 0;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& p = phases[i];
    if (at <= p.end || i + 1 == phases.size()) {
      const double part = p.end == begin ? 1 : (at - begin) / (p.end - begin);
      return cosine ? cosine_between(p.from, p.to, part) : (p.to - p.from) * part + p.from;
    }
    begin = p.end;
  }
  return lowest;
}

}  // namespace

double TorchSchedule::at(double rate, std::int64_t step) const {
  const auto& n = numbers_;
  const auto t = static_cast<double>(step);
  switch (class_) {
    case Class::constant: return t < n[1] ? rate * n[0] : rate;
    case Class::linear: return rate * (n[0] + (n[1] - n[0]) * std::min(t, n[2]) / n[2]);
    case Class::exponential: return rate * std::pow(n[0], t);
    case Class::step: return rate * std::pow(n[1], std::floor(t / n[0]));
    case Class::multi_step:
      return rate *
             std::pow(n[0], static_cast<double>(std::ranges::upper_bound(milestones_, step) - milestones_.begin()));
    case Class::polynomial: return rate * std::pow(1 - std::min(t, n[0]) / n[0], n[1]);
    case Class::cosine_annealing: return cosine_between(rate, n[1], t / n[0]);
    case Class::cosine_annealing_warm_restarts: {
      double length = n[0];
      double in = t;
      if (n[1] == 1) in = std::fmod(t, length);
      while (in >= length) in -= length, length *= n[1];
      return cosine_between(rate, n[2], in / length);
    }
    case Class::one_cycle: return one_cycle_at(n, step);
    case Class::sequential: {
      const auto part = static_cast<std::size_t>(std::ranges::upper_bound(milestones_, step) - milestones_.begin());
      return parts_[part].at(rate, part == 0 ? step : step - milestones_[part - 1]);
    }
  }
  return rate;
}

std::string TorchSchedule::text() const {
  const Known& of = known(class_);
  std::string list;
  const auto add = [&](std::string_view name, const std::string& value) {
    list += (list.empty() ? "" : ", ") + std::string(name) + "=" + value;
  };
  for (std::size_t i = 0; i < of.parameters.size(); ++i) {
    const Parameter& p = of.parameters[i];
    const double number = has_number(p.takes) ? numbers_[number_place(class_, i)] : 0;
    std::string items;
    switch (p.takes) {
      case Takes::ignored: break;
      case Takes::milestones:
        for (const std::int64_t each : milestones_) items += (items.empty() ? "" : ", ") + std::to_string(each);
        add(p.name, "[" + items + "]");
        break;
      case Takes::schedulers:
        for (const TorchSchedule& each : parts_) items += (items.empty() ? "" : ", ") + each.text();
        add(p.name, "[" + items + "]");
        break;
      case Takes::yes_or_no:
      case Takes::no: add(p.name, number != 0 ? "True" : "False"); break;
      case Takes::strategy: add(p.name, number != 0 ? "'cos'" : "'linear'"); break;
      case Takes::number:
      case Takes::factor:
      case Takes::factor_up:
      case Takes::positive:
      case Takes::steps: add(p.name, shortest(number)); break;
    }
  }
  return std::string(of.name) + "(" + list + ")";
}

std::string TorchSchedule::classes() {
  std::string all;
  for (const Known& each : kKnown) all += (all.empty() ? "" : ", ") + std::string(each.name);
  return all;
}

}  // namespace shard::rates
