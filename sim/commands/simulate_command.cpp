// `shardscope simulate`: what one strategy will take, offline.
#include <memory>
#include <set>
#include <variant>

#include "sim/cli/chart.h"
#include "sim/cli/contradiction.h"
#include "sim/commands/beside.h"
#include "sim/commands/commands.h"
#include "sim/commands/dry_run_line.h"
#include "sim/commands/find_largest.h"
#include "sim/commands/foreign_files.h"
#include "sim/commands/levers.h"
#include "sim/commands/printing.h"
#include "sim/commands/simulate_line.h"
#include "sim/commands/simulate_program.h"
#include "sim/engine/report.h"
#include "sim/engine/smallest_change.h"
#include "sim/like/gemini_report.h"
#include "sim/like/report.h"
#include "sim/like/step_report.h"
#include "sim/model/read_model.h"
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
  shardscope simulate --model llama-7b --world-size 8 --stage 3 --recompute block --cluster a100-40gb-x8 \
      --find max-micro-batch
  shardscope simulate --model gpt2-medium --like pytorch --cluster a100-40gb-x8 --micro-batch 8 --what-if
  shardscope simulate --parameters params.json --like colossalai-gemini --world-size 4 --chunk-size 256Ki \
      --offload-optim-frac 1 --json
)";

/// What --find found, in words and for JSON.
struct Found {
  std::string what;  ///< "micro-batch"
  Largest largest;
  bool next_is_tight = false;
  std::int64_t step = 1;

  [[nodiscard]] std::string to_text() const {
    return "largest " + what + " that fits: " + with_commas(largest.value) +
           (largest.contradiction ? "; a larger one cannot be: " + largest.contradiction->what : "") +
           (next_is_tight ? "; " + with_commas(largest.value + step) + " is tight" : "") + "\n";
  }
  [[nodiscard]] nlohmann::ordered_json to_json() const {
    return {{"what", what},
            {"value", largest.value},
            {"limited_by", largest.contradiction ? largest.contradiction->what : std::string("memory")},
            {"tight", next_is_tight ? nlohmann::ordered_json(largest.value + step) : nlohmann::ordered_json(nullptr)}};
  }
};

/// What is asked of one strategy, and how the answer is printed.
struct SimulateCommand {
  SimulateOptions simulate;
  std::string trace;
  std::string program, save_program;
  Sought find = Sought::nothing;
  std::optional<Found> found;
  bool what_if = false, exact = false;
  std::optional<std::vector<Lever>> levers;
  ForeignFiles foreign;
  cli::OutputOptions output;
  cli::Command command{"shardscope", "simulate", "predicts memory, communication and time of one strategy",
                       kSimulateDetails};

  SimulateCommand() {
    add_simulate_options(command, simulate);
    cli::Group group = command.group("Output");
    group.add("trace", &trace, "FILE", "write the predicted trace; with --like a memory snapshot (.pickle)")
        .common()
        .writes_file();
    group.add("save-program", &save_program, "FILE", "write down what --like runs: allocations, operators, marks")
        .writes_file();
    command.group("Machine")
        .add("program", &program, "FILE",
             "what --save-program or dryrun's --save wrote, or a PyTorch snapshot:\nanswered in place of a model")
        .reads_file();
    group
        .add_choice<Sought>("find", &find,
                            {{"none", Sought::nothing, "what is asked for"},
                             {"max-micro-batch", Sought::micro_batch, "sequences of a rank at once"},
                             {"max-sequence", Sought::sequence, "tokens of a sequence, in steps of 64"},
                             {"max-layers", Sought::layers, "blocks of the model"}},
                            "search the largest that fits, and predict that")
        .common();
    group.add_flag("what-if", &what_if, "simulate one option more at a time, and list what lowers the peak").common();
    group.add_flag("exact", &exact, "sizes to the byte, in place of one unit that is rounded for people");
    cli::add_output_options(command, output);
    add_foreign_files(command, foreign);
  }
};

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
cli::Styled picture(const engine::Simulation& s, ShowBytes show_size) {
  const engine::ClassResult& c = s.largest();
  std::vector<cli::Layer> layers;
  for (int k = 0; k < kCategoryCount; ++k) {
    const auto category = static_cast<Category>(k);
    cli::Layer layer{.name = to_string(category), .letter = letter_of(category), .values = {}};
    for (const engine::MemoryPoint& p : c.series)
      layer.values.push_back(static_cast<double>(p.live[static_cast<std::size_t>(k)].count()));
    layers.push_back(std::move(layer));
  }
  const auto show = [show_size](double v) { return show_size(Bytes{static_cast<std::int64_t>(v)}); };
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

/// A line for arguments that were parsed before, with changes.
Result<std::unique_ptr<SimulateCommand>> read_line(std::span<const std::string> arguments,
                                                   std::span<const cli::Change> changes) {
  auto line = std::make_unique<SimulateCommand>();
  line->command.change(changes);
  if (const auto read = line->command.parse(arguments); !read) return read.error();
  line->simulate.configured = configured_framework(line->foreign);
  return line;
}

/// How this answer's sizes are written.
template <class Figures>
ShowBytes sizes_of(const SimulateCommand& o, const Figures& figures) {
  return o.exact ? show_exact : unit_of(figures);
}

/// Why the answer is our own executor's, behind the verdict's own line, and who answers for theirs.
std::string with_instead(const SimulateCommand& o, const Simulated& simulated, std::string text) {
  if (!simulated.instead) return text;
  const Instead& instead = *simulated.instead;
  const std::string said =
      "  by Shardscope's own executor; " + instead.framework + " is not predicted: " + instead.reason.what +
      "\n  theirs: " + dry_run_line(instead.framework, o.command, o.simulate, o.foreign, simulated).text + "\n";
  return text.insert(std::min(text.find('\n') + 1, text.size()), said);
}

/// The answer before all that explains it: the verdict, what decides it, the largest lever, the step; then what was
/// taken, and from which files. Without a table on stdout it stands on stderr.
void print_opening(const SimulateCommand& o, const Simulated& simulated, const std::string& verdict,
                   const std::string& step, ShowBytes show, cli::Format format) {
  if (format == cli::Format::json) return;
  std::ostream& out = format == cli::Format::table ? std::cout : std::cerr;
  cli::print(out, (o.found ? o.found->to_text() : "") + with_instead(o, simulated, verdict) +
                      (o.levers ? largest_text(*o.levers, simulated.fits(), show) : "") + step + "\n");
  print_assumed(format, o.command, simulated.taken, show);
  print_foreign_files(format, o.foreign);
  if (!o.foreign.read.empty()) out << '\n';
}

nlohmann::ordered_json instead_json(const SimulateCommand& o, const Simulated& simulated) {
  if (!simulated.instead) return nullptr;
  return {{"framework", simulated.instead->framework},
          {"reason", simulated.instead->reason.what},
          {"try", dry_run_line(simulated.instead->framework, o.command, o.simulate, o.foreign, simulated).text}};
}

/// The beginning of every JSON answer.
nlohmann::ordered_json begin_json(const SimulateCommand& o, const Simulated& simulated) {
  nlohmann::ordered_json j = cli::json_document("simulate");
  j["assumed"] = to_json(o.command, simulated.taken);
  j["instead_of"] = instead_json(o, simulated);
  if (!o.foreign.read.empty()) j["configurations"] = to_json(o.foreign);
  if (o.found) j["found"] = o.found->to_json();
  if (o.what_if) j["levers"] = to_json(*o.levers);
  return j;
}

void print(const SimulateCommand& o, const Simulated& simulated, const engine::Simulation& simulation,
           cli::Format format) {
  const auto change =
      engine::change_that_fits(simulated.planned->model, simulation, simulated.cluster, simulated.options);
  const ShowBytes show = sizes_of(o, simulation);
  print_opening(o, simulated, verdict_text(simulation, change, show), time_text(simulation), show, format);
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = begin_json(o, simulated);
    j["model"] = simulated.planned->model->name;
    j.update(engine::to_json(simulation, change));
    add_json(j, beside(simulated));
    std::cout << cli::json_text(j);
  } else if (format == cli::Format::table) {
    cli::print(std::cout, details_text(simulation, show) + "\n" + to_text(beside(simulated), show) +
                              (o.what_if ? to_text(*o.levers, show) + "\n" : ""));
    std::cout << picture(simulation, show) << kWordsHint;
  } else {
    std::cout << cli::render(phase_table(simulation), format, cli::style_of(1));
  }
}

void print(const SimulateCommand& o, const Simulated& simulated, const like::LikeResult& result, cli::Format format) {
  const ShowBytes show = sizes_of(o, result);
  print_opening(o, simulated, verdict_text(result, show), step_text(result), show, format);
  const DryRunLine exact = dry_run_line(simulated.taken.memory_of, o.command, o.simulate, o.foreign, simulated);
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = begin_json(o, simulated);
    nlohmann::json answer = like::to_json(result);
    like::add_step(answer, result);
    j.update(answer);
    add_json(j, beside(simulated));
    j["dry_run"] = exact.is_recipe ? nlohmann::ordered_json(exact.text) : nlohmann::ordered_json(nullptr);
    std::cout << cli::json_text(j);
  } else if (format == cli::Format::table) {
    cli::print(std::cout, details_text(result, who(result), show) + to_text(beside(simulated), show));
    if (exact.is_recipe) cli::print(std::cout, "exactly, by the PyTorch that is installed: " + exact.text + "\n");
    if (o.what_if) cli::print(std::cout, to_text(*o.levers, show));
  } else {
    print_tables(result, format);
  }
}

void print(const SimulateCommand& o, const Simulated& simulated, const like::GeminiResult& result, cli::Format format) {
  const ShowBytes show = sizes_of(o, result);
  print_opening(o, simulated, verdict_text(result, show), "", show, format);
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = begin_json(o, simulated);
    j.update(like::to_json(result));
    std::cout << cli::json_text(j);
  } else if (format == cli::Format::table) {
    cli::print(std::cout, details_text(result, show));
  } else {
    std::cout << cli::render(steps_table(result), format, cli::style_of(1));
  }
}

/// "max-micro-batch" searches the option, or for layers the model's own number.
constexpr const char* word_of(Sought sought) {
  switch (sought) {
    case Sought::nothing: return "nothing";
    case Sought::micro_batch: return "micro-batch";
    case Sought::sequence: return "sequence";
    case Sought::layers: return "layers";
  }
  return "?";
}

/// One number for the other, as if a file gave it.
Result<void> put(SimulateCommand& line, Sought sought, std::int64_t number) {
  if (sought == Sought::layers) {
    line.simulate.strategy.model = model::with_layers(line.simulate.strategy.model, number);
    return {};
  }
  return line.command.offer(word_of(sought), std::to_string(number),
                            {.source = line.command.origin("find").source, .where = "--find"});
}

/// What has to be left open, or there, for a search.
Result<void> check_find(const SimulateCommand& o) {
  const cli::Command& command = o.command;
  const char* const word = word_of(o.find);
  if (o.find != Sought::layers && command.typed(word))
    return cli::contradiction(command.describe("find") + " and " + command.describe(word) + " both say the " + word,
                              std::string("leave --") + word + " out");
  if (o.find == Sought::micro_batch && command.given("global-batch"))
    return cli::contradiction(
        command.describe("find") + " has few numbers to choose from: " + command.describe("global-batch"),
        "leave --global-batch out");
  if (o.what_if)
    return cli::contradiction(command.describe("find") + " and " + command.describe("what-if") + " both change options",
                              "--what-if with the number that was found");
  if (!o.trace.empty())
    return cli::contradiction(command.describe("find") + " has no trace: it simulates many strategies",
                              "--trace with the number that was found");
  return {};
}

/// Is there a memory to fill?
bool has_limit(const Simulated& simulated) {
  return std::visit([](const auto& of) { return of.device_capacity.has_value(); }, simulated.figures);
}

/// The line that asks for the largest number, and its figures; of 1 where nothing fits.
Result<Simulated> find(std::span<const std::string> arguments, std::unique_ptr<SimulateCommand>& line,
                       SimulateInputs& inputs, bool series) {
  if (Result<void> ok = check_find(*line); !ok) return ok.error();
  const Sought sought = line->find;
  std::optional<Simulated> best;
  std::unique_ptr<SimulateCommand> best_line;
  bool limited = true;
  // Who answers for the first number answers for all.
  std::vector<cli::Change> same;
  std::optional<Instead> instead;
  std::string origin;
  std::set<std::int64_t> tight;
  const auto fits = [&](std::int64_t number) -> Result<bool> {
    const auto read = [&](std::span<const cli::Change> changes) {
      Result<std::unique_ptr<SimulateCommand>> next = read_line(arguments, changes);
      if (!next) return next;
      if (Result<void> ok = put(**next, sought, number); !ok)
        return Result<std::unique_ptr<SimulateCommand>>(ok.error());
      return next;
    };
    Result<std::unique_ptr<SimulateCommand>> first = read(same);
    if (!first) return first.error();
    std::unique_ptr<SimulateCommand> next = std::move(*first);
    Result<Simulated> simulated = simulate_line<SimulateCommand>(
        same, read,
        {.inputs = inputs, .note = best ? [](const std::vector<std::string>&) {} : print_notes, .series = series},
        next);
    if (!simulated) return simulated.error();
    limited = has_limit(*simulated);
    if (!limited) return false;
    if (!best && !next->command.given("like")) same = {{"like", simulated->taken.memory_of}};
    if (!best) instead = simulated->instead, origin = simulated->taken.memory_origin;
    simulated->instead = instead;
    simulated->taken.memory_origin = origin;
    const cluster::Verdict verdict = simulated->verdict();
    if (verdict == cluster::Verdict::tight) tight.insert(number);
    const bool yes = verdict == cluster::Verdict::fits;
    if (yes || !best) best = std::move(*simulated), best_line = std::move(next);
    return yes;
  };
  constexpr std::int64_t kTokens = 64;
  const std::int64_t step = sought == Sought::sequence ? kTokens : 1;
  const Result<Largest> largest = find_largest(step, fits);
  if (!largest) return largest.error();
  if (!limited)
    return cli::contradiction(line->command.describe("find") + " has no memory to fill",
                              "--cluster with GPUs, or --device-capacity");
  line = std::move(best_line);
  line->found = Found{.what = word_of(sought),
                      .largest = *largest,
                      .next_is_tight = tight.contains(largest->value + step),
                      .step = step};
  return std::move(*best);
}

/// What there is too little of; none where it fits, or where nothing says it.
std::optional<Memory> short_of(const Simulated& simulated) {
  if (const auto* own = std::get_if<engine::Simulation>(&simulated.figures)) return own->short_of();
  if (const auto* like = std::get_if<like::LikeResult>(&simulated.figures)) return like->short_of();
  return std::nullopt;
}

/// The host's memory where that is too small, else the device's.
Memory memory_to_lower(const Simulated& simulated) {
  const std::optional<Memory> small = short_of(simulated);
  return small && is_host(*small) ? Memory::host : Memory::device;
}

/// What decides whether it fits: of devices extents of our own executor, reserved bytes of others; of a host what all
/// its ranks take.
Bytes peak_of(const Simulated& simulated, Memory memory) {
  const bool host = memory == Memory::host;
  if (const auto* own = std::get_if<engine::Simulation>(&simulated.figures))
    return host ? own->host_peak : own->largest().peak[static_cast<std::size_t>(Memory::device)];
  if (const auto* like = std::get_if<like::LikeResult>(&simulated.figures))
    return host ? like->host_of_all() : like->peak_reserved();
  return Bytes{0};
}

/// Of one rank, by laws of kernels; 0: not known.
double speed_of(const Simulated& simulated) {
  const auto* like = std::get_if<like::LikeResult>(&simulated.figures);
  return like != nullptr && like->step ? like->step->tokens_per_second : 0;
}

Result<void> add_levers(std::span<const std::string> arguments, SimulateCommand& line, const Simulated& simulated,
                        SimulateInputs& inputs) {
  if (!simulated.planned)
    return cli::contradiction(line.command.describe("what-if") + " is not known for " + line.command.describe("like"),
                              "leave --what-if out");
  const Memory memory = memory_to_lower(simulated);
  line.levers =
      find_levers({.peak = peak_of(simulated, memory),
                   .memory = memory,
                   .tokens_per_second = speed_of(simulated),
                   .micro_batch = simulated.planned->strategy.micro_batch,
                   .has_disk = line.command.given("disk-path")},
                  [&](std::span<const cli::Change> changes) -> Result<LeverAnswer> {
                    // Who answers for what was asked answers for what is changed, too.
                    std::vector<cli::Change> all(changes.begin(), changes.end());
                    if (simulated.instead || !line.command.given("like"))
                      all.push_back({"like", simulated.taken.memory_of});
                    const Result<std::unique_ptr<SimulateCommand>> next = read_line(arguments, all);
                    if (!next) return next.error();
                    const Result<Simulated> figures = simulate_strategy(
                        (*next)->command, (*next)->simulate,
                        {.inputs = inputs, .note = [](const std::vector<std::string>&) {}, .base = &simulated});
                    if (!figures) return figures.error();
                    return LeverAnswer{.peak = peak_of(*figures, memory),
                                       .verdict = figures->verdict(),
                                       .tokens_per_second = speed_of(*figures),
                                       .short_of = short_of(*figures)};
                  });
  return {};
}

}  // namespace

int simulate_command(std::span<const std::string> arguments) {
  auto line = std::make_unique<SimulateCommand>();
  if (const auto code = parsed(line->command, arguments)) return *code;
  const Result<cli::Format> format = cli::chosen_format(line->command, line->output);
  if (!format) return failed(format.error());
  if (const auto code = printed_config(line->command, line->foreign, *format)) return *code;
  if (Result<void> ok = check_predictable(line->foreign); !ok) return failed(ok.error());
  if (!line->program.empty())
    return simulate_program(line->command,
                            {.path = line->program,
                             .cluster = line->simulate.cluster,
                             .device_capacity = line->simulate.strategy.placement.device_capacity,
                             .host_capacity = line->simulate.strategy.placement.host_capacity,
                             .allocator = line->simulate.allocator,
                             .trace = line->trace,
                             .exact = line->exact},
                            *format);
  line->simulate.configured = configured_framework(line->foreign);
  SimulateInputs inputs;
  const bool series = *format == cli::Format::table;
  const Result<Simulated> simulated =
      line->find != Sought::nothing
          ? find(arguments, line, inputs, series)
          : simulate_line<SimulateCommand>(
                {}, [&](std::span<const cli::Change> changes) { return read_line(arguments, changes); },
                {.inputs = inputs, .note = print_notes, .series = series, .trace = line->trace}, line);
  if (!simulated) return failed(simulated.error());
  // The one that saves most is part of every verdict that people read.
  const bool in_verdict = series && line->find == Sought::nothing && has_limit(*simulated) && simulated->planned;
  if (line->what_if || in_verdict)
    if (Result<void> ok = add_levers(arguments, *line, *simulated, inputs); !ok) return failed(ok.error());
  if (!line->save_program.empty()) {
    const auto* const like = std::get_if<like::LikeResult>(&simulated->figures);
    if (Result<void> ok = save_program(line->command, like == nullptr ? nullptr : like->program.get(),
                                       line->simulate.allocator, line->save_program);
        !ok)
      return failed(ok.error());
  }
  std::visit([&](const auto& figures) { print(*line, *simulated, figures, *format); }, simulated->figures);
  return simulated->fits() ? 0 : exit_code(Errc::does_not_fit);
}

}  // namespace shard::commands
