// `shardscope simulate`: what one strategy will take, offline.
#include <variant>

#include "sim/cli/chart.h"
#include "sim/commands/commands.h"
#include "sim/commands/foreign_files.h"
#include "sim/commands/printing.h"
#include "sim/commands/simulate_strategy.h"
#include "sim/engine/report.h"
#include "sim/engine/smallest_change.h"
#include "sim/like/gemini_report.h"
#include "sim/like/report.h"
#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

constexpr const char* kSimulateDetails =
    R"(Predicts, without running anything, what every rank will hold and send and how long a step takes.

Examples:
  shardscope simulate --model gpt2-medium --world-size 8 --stage 3 --cluster a100-40gb-x8
  shardscope simulate --model llama-7b --world-size 64 --stage 3 --recompute block --sequence 2048 --json
  shardscope simulate --model gpt2-xl --world-size 8 --device-capacity 20Gi --stage 0    (exit 3: what to change)
  shardscope simulate --model mlp-20x2000 --world-size 2 --stage 1 --partition parameter \
      --like pytorch@1.8 --optimizer adam --micro-batch 20
  shardscope simulate --model gpt2-medium --like pytorch --cluster a100-40gb-x8 --micro-batch 8 --sequence 1024
  shardscope simulate --parameters params.json --like colossalai-gemini --world-size 4 --chunk-size 256Ki \
      --offload-optim-frac 1 --json
)";

/// What is asked of one strategy, and how the answer is printed.
struct SimulateCommand {
  SimulateOptions simulate;
  std::string trace;
  ForeignFiles foreign;
  cli::OutputOptions output;
};

void declare(cli::Command& command, SimulateCommand& o) {
  add_simulate_options(command, o.simulate);
  command.group("Output").add("trace", &o.trace, "FILE", "write the predicted trace").common().writes_file();
  cli::add_output_options(command, o.output);
  add_foreign_files(command, o.foreign);
}

/// The same in every picture, whatever else is in it.
constexpr char letter_of(Category category) {
  switch (category) {
    case Category::parameter: return 'P';
    case Category::gathered: return 'F';
    case Category::gradient: return 'G';
    case Category::master_parameter: return 'M';
    case Category::optimizer_state: return 'O';
    case Category::activation: return 'A';
    case Category::workspace: return 'W';
    case Category::communication: return 'C';
    case Category::input: return 'I';
    case Category::not_known: return 'N';
  }
  return '?';
}

/// Memory over the step of the class with the largest arena, by category.
std::string picture(const engine::Simulation& s) {
  const engine::ClassResult& c = s.largest();
  std::vector<cli::Layer> layers;
  for (int k = 0; k < kCategoryCount; ++k) {
    const auto category = static_cast<Category>(k);
    cli::Layer layer{.name = to_string(category), .letter = letter_of(category), .values = {}};
    for (const engine::MemoryPoint& p : c.series)
      layer.values.push_back(static_cast<double>(p.live[static_cast<std::size_t>(k)].count()));
    layers.push_back(std::move(layer));
  }
  const auto show = [](double v) { return show_bytes(Bytes{static_cast<std::int64_t>(v)}); };
  return cli::stacked_area(layers, {.show = show, .marks = {}}, cli::style_of(1));
}

cli::Table phase_table(const engine::Simulation& s) {
  cli::Table table{.columns = {{.key = "ranks", .title = "ranks"},
                               {.key = "phase", .title = "phase", .align = cli::Align::left},
                               {.key = "memory", .title = "memory", .align = cli::Align::left},
                               {.key = "peak_bytes", .title = "peak"},
                               {.key = "live_peak_bytes", .title = "live peak"},
                               {.key = "seconds", .title = "time"}},
                   .rows = {}};
  for (const engine::ClassResult& c : s.classes)
    for (const engine::PhaseResult& p : c.phases)
      for (const engine::MemoryPeak& m : p.memory) {
        if (m.peak.count() == 0) continue;
        table.rows.push_back({static_cast<std::int64_t>(c.ranks.size()), to_string(p.phase), to_string(m.memory),
                              cli::cell(m.peak), cli::cell(m.live_peak), cli::cell(p.seconds)});
      }
  return table;
}

/// Before every answer: what was taken, and from which files.
void print_before(const cli::Command& command, const SimulateCommand& o, const Simulated& simulated,
                  cli::Format format) {
  print_assumed(format, command, simulated.taken);
  print_foreign_files(format, o.foreign);
}

void print(const cli::Command& command, const SimulateCommand& o, const Simulated& simulated,
           const engine::Simulation& simulation, cli::Format format) {
  const auto change =
      engine::change_that_fits(simulated.planned->model, simulation, simulated.cluster, simulated.options);
  print_before(command, o, simulated, format);
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("simulate");
    j["assumed"] = to_json(command, simulated.taken);
    if (!o.foreign.read.empty()) j["configurations"] = to_json(o.foreign);
    j["model"] = simulated.planned->model->name;
    j.update(engine::to_json(simulation, change));
    std::cout << cli::json_text(j);
  } else if (format == cli::Format::table) {
    cli::print(std::cout, engine::to_text(simulation, change) + '\n');
    std::cout << picture(simulation) << kWordsHint;
  } else {
    std::cout << cli::render(phase_table(simulation), format, cli::style_of(1));
  }
}

void print(const cli::Command& command, const SimulateCommand& o, const Simulated& simulated,
           const like::LikeResult& result, cli::Format format) {
  print_before(command, o, simulated, format);
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("simulate");
    j["assumed"] = to_json(command, simulated.taken);
    j.update(like::to_json(result));
    std::cout << cli::json_text(j);
  } else {
    cli::print(std::cout, format == cli::Format::markdown ? like::to_markdown(result) : like::to_text(result));
  }
}

void print(const cli::Command& command, const SimulateCommand& /*o*/, const Simulated& simulated,
           const like::GeminiResult& result, cli::Format format) {
  print_assumed(format, command, simulated.taken);
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("simulate");
    j["assumed"] = to_json(command, simulated.taken);
    j.update(like::to_json(result));
    std::cout << cli::json_text(j);
  } else if (format == cli::Format::table) {
    cli::print(std::cout, like::to_text(result));
  } else {
    std::cout << cli::render(steps_table(result), format, cli::style_of(1));
  }
}

}  // namespace

int simulate_command(std::span<const std::string> arguments) {
  SimulateCommand o;
  cli::Command command("shardscope", "simulate", "predicts memory, communication and time of one strategy",
                       kSimulateDetails);
  declare(command, o);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = cli::chosen_format(command, o.output);
  if (!format) return failed(format.error());
  if (const auto code = printed_config(command, o.foreign, *format)) return *code;
  if (Result<void> ok = check_predictable(o.foreign); !ok) return failed(ok.error());
  SimulateInputs inputs;
  const Result<Simulated> simulated = simulate_strategy(
      command, o.simulate,
      {.inputs = inputs, .note = print_notes, .series = *format == cli::Format::table, .trace = o.trace});
  if (!simulated) return failed(simulated.error());
  std::visit([&](const auto& figures) { print(command, o, *simulated, figures, *format); }, simulated->figures);
  return simulated->fits() ? 0 : exit_code(Errc::does_not_fit);
}

}  // namespace shard::commands
