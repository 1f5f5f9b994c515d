// `shardscope compare` of two strategies.
#include "sim/commands/compare_strategies.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/cli/contradiction.h"
#include "sim/commands/foreign_files.h"
#include "sim/commands/printing.h"
#include "sim/engine/report.h"
#include "sim/strategy/fields.h"
#include "traces/base/numbers.h"
#include "traces/base/text_table.h"

namespace shard::commands {
namespace {

using Of = ComparedQuantity::Of;
using CountedIn = ComparedQuantity::CountedIn;
using Json = nlohmann::ordered_json;

/// Sums of times in another order differ by as much.
constexpr double kRounding = 1e-9;

/// The options of one file, as `simulate` reads them.
struct OneFile {
  OneFile() {
    add_simulate_options(command, options);
    add_foreign_files(command, foreign);
  }
  SimulateOptions options{};
  ForeignFiles foreign{};
  cli::Command command{"shardscope", "simulate", "", ""};
};

struct Side {
  std::string file;
  std::string assumed;  ///< for people
  Json assumed_json;
  Json foreign_json;
  Simulated simulated;
  [[nodiscard]] const engine::Simulation& simulation() const { return std::get<engine::Simulation>(simulated.figures); }
  [[nodiscard]] const Planned& planned() const { return *simulated.planned; }
};

Result<Side> predict_file(const cli::Command& shared, const std::string& file) {
  OneFile one;
  std::vector<std::string> arguments = shared.arguments_for(one.command);
  arguments.push_back("--config=" + file);
  const Result<cli::Outcome> parsed = one.command.parse(arguments);
  if (!parsed) return parsed.error();
  Result<void> has_model = require_model(one.command);
  if (!has_model) {
    Error error = has_model.error();
    error.where = file;
    error.help = "model = NAME in the file, or --model NAME for both";
    return error;
  }
  if (!one.options.like.empty())
    return cli::contradiction(one.command.describe("like") +
                                  " asks for another framework's figures, and what is compared "
                                  "are strategies of Shardscope's executor",
                              "leave it out; simulate --like predicts each");
  one.options.like = like::kOwnName;
  if (Result<void> ok = check_predictable(one.foreign); !ok) return ok.error();
  SimulateInputs inputs;
  Result<Simulated> simulated = simulate_strategy(one.command, one.options, {.inputs = inputs, .note = print_notes});
  if (!simulated) {
    Error error = simulated.error();
    error.where = error.where.empty() ? file : file + ": " + error.where;
    return error;
  }
  return Side{.file = file,
              .assumed = foreign_lines(one.foreign) + to_text(one.command, simulated->taken),
              .assumed_json = to_json(one.command, simulated->taken),
              .foreign_json = to_json(one.foreign),
              .simulated = std::move(*simulated)};
}

class Quantities {
 public:
  Quantities(const engine::Simulation& a, const engine::Simulation& b) : a_(a), b_(b) {}

  template <class Read>
  void add(Of of, CountedIn unit, std::string key, std::string name, const Read& read) {
    const auto number = [](auto value) { return static_cast<double>(value); };
    ComparedQuantity q{.of = of, .unit = unit, .key = std::move(key), .name = std::move(name)};
    q.a = number(read(a_));
    q.b = number(read(b_));
    if (q.a != 0 || q.b != 0) all_.push_back(std::move(q));
  }

  std::vector<ComparedQuantity> sorted() {
    std::ranges::stable_sort(all_, [](const auto& x, const auto& y) { return x.apart() > y.apart(); });
    return std::move(all_);
  }

 private:
  const engine::Simulation& a_;
  const engine::Simulation& b_;
  std::vector<ComparedQuantity> all_;
};

std::int64_t of_category(const engine::Simulation& s, std::size_t category) {
  const engine::PhaseResult* const phase = s.largest().peak_phase();
  return phase == nullptr ? 0 : phase->memory[engine::kDevice].by_category[category].count();
}

void add_memory(Quantities& all) {
  using engine::Simulation;
  all.add(Of::memory, CountedIn::bytes, "peak_device_bytes", "device memory, peak",
          [](const Simulation& s) { return s.largest().peak[engine::kDevice].count(); });
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    const std::string word = to_string(static_cast<Category>(c));
    all.add(Of::memory, CountedIn::bytes, "peak_" + word + "_bytes", "device memory, " + word + " at the peak",
            [c](const Simulation& s) { return of_category(s, c); });
  }
  all.add(Of::memory, CountedIn::bytes, "peak_host_bytes", "host memory, peak of a host",
          [](const Simulation& s) { return s.host_peak.count(); });
  all.add(Of::memory, CountedIn::bytes, "peak_disk_bytes", "disk, peak", [](const Simulation& s) {
    return s.largest(Memory::disk).peak[static_cast<std::size_t>(Memory::disk)].count();
  });
}

/// Of a steady step.
void add_traffic(Quantities& all) {
  using engine::Simulation;
  const auto counted = [](const Simulation& s, std::size_t kind) {
    const engine::PhaseResult* const step = s.largest().find(Phase::steady_step);
    return step == nullptr ? engine::CollectiveCounts{}[kind] : step->collectives[kind];
  };
  all.add(Of::traffic, CountedIn::bytes, "step_bytes", "all collectives of a step", [&](const Simulation& s) {
    std::int64_t bytes = 0;
    for (std::size_t k = 0; k < kCollectiveCount; ++k) bytes += counted(s, k).bytes.count();
    return bytes;
  });
  for (std::size_t k = 0; k < kCollectiveCount; ++k) {
    const std::string word = to_string(static_cast<Collective>(k));
    all.add(Of::traffic, CountedIn::bytes, "step_" + word + "_bytes", word + " of a step",
            [&](const Simulation& s) { return counted(s, k).bytes.count(); });
    all.add(Of::traffic, CountedIn::calls, "step_" + word + "_count", "calls of " + word + " in a step",
            [&](const Simulation& s) { return counted(s, k).count; });
  }
}

void add_time(Quantities& all) {
  using engine::Simulation;
  const auto of_step = [](Seconds engine::PhaseResult::*member) {
    return [member](const Simulation& s) {
      const engine::PhaseResult* const step = s.largest().find(Phase::steady_step);
      return step == nullptr ? 0.0 : (step->*member).count();
    };
  };
  all.add(Of::time, CountedIn::seconds, "step_seconds", "step",
          [](const Simulation& s) { return s.step_seconds.count(); });
  all.add(Of::time, CountedIn::seconds, "step_compute_seconds", "computing in a step",
          of_step(&engine::PhaseResult::compute_seconds));
  all.add(Of::time, CountedIn::seconds, "step_communication_seconds", "communicating in a step",
          of_step(&engine::PhaseResult::communication_seconds));
  all.add(Of::time, CountedIn::seconds, "step_exposed_communication_seconds", "exposed communication of a step",
          of_step(&engine::PhaseResult::exposed_communication_seconds));
  all.add(Of::time, CountedIn::seconds, "first_step_seconds", "first step",
          [](const Simulation& s) { return s.first_step_seconds.count(); });
  all.add(Of::time, CountedIn::per_second, "tokens_per_second", "tokens per second",
          [](const Simulation& s) { return s.tokens_per_second; });
}

std::string shown_quantity(const ComparedQuantity& q, double value) {
  switch (q.unit) {
    case CountedIn::bytes: return show_bytes(Bytes{static_cast<std::int64_t>(value)});
    case CountedIn::calls: return with_commas(static_cast<std::int64_t>(value));
    case CountedIn::seconds: return duration(Seconds{value});
    case CountedIn::per_second: return show_number(value);
  }
  return {};
}

Json quantity_json(const ComparedQuantity& q, double value) {
  if (q.unit == CountedIn::bytes || q.unit == CountedIn::calls) return static_cast<std::int64_t>(value);
  return value;
}

struct Choice {
  std::string field, a, b;
};

/// Choices of the strategies that are not the same.
std::vector<Choice> other_choices(const Side& a, const Side& b) {
  std::vector<Choice> all;
  const auto add = [&](std::string field, std::string of_a, std::string of_b) {
    if (of_a != of_b) all.push_back({std::move(field), std::move(of_a), std::move(of_b)});
  };
  add("model", a.planned().model->name, b.planned().model->name);
  add("cluster", a.simulated.cluster.name, b.simulated.cluster.name);
  for (const plan::Field& field : plan::fields())
    add(std::string(field.key), plan::value_text(field, a.planned().strategy),
        plan::value_text(field, b.planned().strategy));
  return all;
}

Json side_json(const Side& side) {
  const engine::Simulation& s = side.simulation();
  Json j{{"file", side.file},
         {"assumed", side.assumed_json},
         {"model", side.planned().model->name},
         {"strategy", engine::to_json(s.strategy)},
         {"plan_hash", s.plan_hash},
         {"fits", s.fits},
         {"verdict", cluster::to_string(s.verdict())}};
  if (!side.foreign_json.empty()) j["configurations"] = side.foreign_json;
  return j;
}

bool as_much(const std::vector<ComparedQuantity>& quantities) {
  return std::ranges::all_of(quantities, [](const ComparedQuantity& q) { return q.of == Of::time || q.a == q.b; });
}

Json strategies_json(const Side& a, const Side& b, const std::vector<ComparedQuantity>& quantities) {
  Json j = cli::json_document("compare");
  j["schema_version"] = engine::kSchemaVersion;
  j["kind"] = "strategies";
  j["equal"] = as_much(quantities);
  j["a"] = side_json(a);
  j["b"] = side_json(b);
  j["choices"] = Json::array();
  for (const Choice& each : other_choices(a, b))
    j["choices"].push_back({{"field", each.field}, {"a_value", each.a}, {"b_value", each.b}});
  j["quantities"] = Json::array();
  for (const ComparedQuantity& q : quantities)
    j["quantities"].push_back({{"of", to_string(q.of)},
                               {"quantity", q.key},
                               {"a", quantity_json(q, q.a)},
                               {"b", quantity_json(q, q.b)},
                               {"difference", quantity_json(q, q.b - q.a)},
                               {"ratio", q.a == 0 ? Json(nullptr) : Json(q.b / q.a)}});
  return j;
}

std::string strategies_text(const Side& a, const Side& b, const std::vector<ComparedQuantity>& quantities) {
  std::string text = "a  " + a.file + "\n" + a.assumed;
  text +=
      a.assumed == b.assumed ? "b  " + b.file + ", the same but for its strategy\n" : "b  " + b.file + "\n" + b.assumed;
  TextTable choices({"strategy", "a", "b"}, 3);
  for (const Choice& each : other_choices(a, b))
    choices.add({each.field, each.a.empty() ? "-" : each.a, each.b.empty() ? "-" : each.b});
  text += choices.empty() ? "\none strategy\n" : "\n" + choices.str();
  const auto fits = [](const Side& side) {
    const cluster::Verdict verdict = side.simulation().verdict();
    return verdict == cluster::Verdict::does_not_fit ? "DOES NOT FIT" : cluster::to_string(verdict);
  };
  text += std::string("\na ") + fits(a) + ", b " + fits(b) + "\n\n";
  TextTable table({"of", "", "a", "b", "difference", "ratio"}, 2);
  for (const ComparedQuantity& q : quantities) {
    const std::string apart = shown_quantity(q, std::abs(q.b - q.a));
    table.add({to_string(q.of), q.name, shown_quantity(q, q.a), shown_quantity(q, q.b),
               q.apart() < kRounding ? "equal" : (q.b > q.a ? "+" : "-") + apart, show_ratio(q.a, q.b)});
  }
  return text + table.str();
}

}  // namespace

void add_shared_options(cli::Command& command, SimulateOptions& options) {
  add_simulate_options(command, options);
}

Result<void> refuse_shared_options(const cli::Command& command) {
  const OneFile one;
  const std::vector<std::string> given = command.arguments_for(one.command);
  if (given.empty()) return {};
  return cli::contradiction(given.front() + " is of strategies, and these are traces", "leave it out");
}

double ComparedQuantity::apart() const {
  const double most = std::max(std::abs(a), std::abs(b));
  return most == 0 ? 0 : std::abs(b - a) / most;
}

std::vector<ComparedQuantity> compared_quantities(const engine::Simulation& a, const engine::Simulation& b) {
  Quantities all(a, b);
  add_memory(all);
  add_traffic(all);
  add_time(all);
  return all.sorted();
}

int compare_strategies(const cli::Command& command, const std::string& first, const std::string& second,
                       cli::Format format, bool check) {
  const Result<Side> a = predict_file(command, first);
  if (!a) return failed(a.error());
  const Result<Side> b = predict_file(command, second);
  if (!b) return failed(b.error());
  const std::vector<ComparedQuantity> quantities = compared_quantities(a->simulation(), b->simulation());
  if (format == cli::Format::json)
    std::cout << cli::json_text(strategies_json(*a, *b, quantities));
  else
    cli::print(std::cout, strategies_text(*a, *b, quantities));
  return check && !as_much(quantities) ? exit_code(Errc::check_failed) : 0;
}

}  // namespace shard::commands
