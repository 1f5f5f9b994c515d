// `shardscope sweep`: what many strategies will take, one row each.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "sim/cli/contradiction.h"
#include "sim/cli/progress.h"
#include "sim/commands/commands.h"
#include "sim/commands/foreign_files.h"
#include "sim/commands/printing.h"
#include "sim/commands/simulate_line.h"
#include "sim/commands/sweep_picture.h"
#include "sim/commands/sweep_rows.h"
#include "sim/commands/sweep_tables.h"
#include "sim/cost/laws/whole_step.h"
#include "traces/base/helper_threads.h"
#include "traces/base/numbers.h"
#include "traces/base/output_file.h"

namespace shard::commands {
namespace {

constexpr const char* kSweepDetails =
    R"(Predicts what 'simulate' predicts, for every combination of the values of every option that holds a list.

Any option that 'simulate' takes, here or in a --config file, takes several values with commas between them; a switch
takes both as --keep-gathered=true,false. A comma that belongs to a value stands behind a backslash ('a\,b.json') or in a
JSON description ('{"model_type": ...}'); of an option whose own value is a list with commas (below: "between the values
of a list") the values have semicolons between them: --freeze 'wte.*,wpe.*;wte.*'.

A row is what 'simulate' says with the row's options. Combinations that contradict themselves are rows with the reason.
* marks the Pareto front: of the strategies that fit, those that no other one beats in both peak device memory and tokens/s.
--format csv and json have every figure of every row in the order of the lists, the last changing fastest; the table has
the chief ones, the best first. Exit code 3 where nothing fits, 78 where every combination contradicts itself.

Examples:
  shardscope sweep --model llama-7b --world-size 8 --cluster h100-80gb-x8 --stage 0,1,2,3 --micro-batch 1,2,4
  shardscope sweep --model gpt2-medium --world-size 4 --cluster a100-40gb-x8 --stage 2,3 --unit chunk \
      --chunk-size 16Mi,32Mi,variable --placement device,host --format csv > sweep.csv
  shardscope sweep --model gpt2,gpt2-medium --world-size 4 --stage 3 --recompute none,block --keep-gathered=true,false \
      --cluster a100-40gb-x8,v100-16gb-x8 --picture sweep.svg
)";

/// More rows nobody reads, and each takes some kilobytes.
constexpr std::size_t kMostStrategies = 100'000;

/// A command line, of which in each list one value counts.
struct SweepLine {
  SimulateOptions simulate;
  std::string picture;
  ForeignFiles foreign;
  cli::OutputOptions output;
  cli::Command command{"shardscope", "sweep", "predicts many strategies, one row each, from lists in any option",
                       kSweepDetails};

  explicit SweepLine(cli::Choose choose) {
    add_simulate_options(command, simulate);
    command.group("Output")
        .add("picture", &picture, "FILE.svg", "draw device memory against speed, with the Pareto front")
        .common()
        .once()
        .writes_file();
    cli::add_output_options(command, output);
    add_foreign_files(command, foreign);
    command.take_lists(std::move(choose));
  }
};

Result<std::size_t> product_of(const std::vector<SweptOption>& lists) {
  std::size_t count = 1;
  std::string factors;
  std::set<std::string_view> options;
  for (const SweptOption& list : lists) {
    factors += (factors.empty() ? "" : " x ") + std::to_string(list.values.size()) + " of --" + list.option;
    if (!options.insert(list.option).second)
      return Error{.code = Errc::usage,
                   .what = "--" + list.option + " holds two lists",
                   .where = "",
                   .help = "one list, or one value more often"};
    count = count > kMostStrategies ? count : count * list.values.size();
  }
  if (count > kMostStrategies)
    return cli::contradiction(factors + " are more than " + with_commas(kMostStrategies) + " strategies",
                              "shorter lists, or several sweeps");
  return count;
}

/// What one strategy of the product takes, and what is to be noted of it.
SweepRow row_of(std::span<const std::string> arguments, const std::vector<SweptOption>& lists, std::size_t index,
                SimulateInputs& inputs, std::vector<std::string>& notes) {
  std::vector<std::size_t> digits(lists.size());
  for (std::size_t k = lists.size(); k-- > 0; index /= lists[k].values.size())
    digits[k] = index % lists[k].values.size();
  SweepRow row;
  for (std::size_t k = 0; k < lists.size(); ++k) row.values.push_back(lists[k].values[digits[k]]);
  const auto read = [&](std::span<const cli::Change> changes) -> Result<std::unique_ptr<SweepLine>> {
    // They are met in the same order in every row.
    auto next = std::make_unique<SweepLine>(
        [&digits, met = std::size_t{0}](const std::string&, const std::vector<std::string>&) mutable {
          return met < digits.size() ? digits[met++] : std::size_t{0};
        });
    next->command.change(changes);
    if (const Result<cli::Outcome> parsed = next->command.parse(arguments); !parsed) return parsed.error();
    if (const Result<void> ok = check_predictable(next->foreign); !ok) return ok.error();
    next->simulate.configured = configured_framework(next->foreign);
    return next;
  };
  Result<std::unique_ptr<SweepLine>> line = read({});
  if (!line) {
    row.error = line.error();
    return row;
  }
  const Result<Simulated> simulated = simulate_line<SweepLine>(
      {}, read,
      {.inputs = inputs,
       .note = [&](const std::vector<std::string>& more) { notes.insert(notes.end(), more.begin(), more.end()); }},
      *line);
  if (simulated)
    row.figures = figures_of(*simulated);
  else
    row.error = simulated.error();
  return row;
}

/// Is it one row's, and not the end of the sweep?
bool belongs_to_row(const Error& error) {
  return error.code == Errc::contradiction || error.code == Errc::does_not_fit;
}

struct Swept {
  std::vector<SweepRow> rows;
  std::vector<std::string> notes;  ///< that all rows with figures have in common
};

/// Calls work(0), ..., work(count - 1) on as many threads as there are processors; the caller's too, which is told so.
void on_all_processors(std::size_t count, const std::function<void(std::size_t index, bool is_caller)>& work) {
  std::atomic<std::size_t> next = 0;
  const std::function<void(std::size_t)> run = [&](std::size_t worker) {
    for (std::size_t i = next++; i < count; i = next++) work(i, worker == 0);
  };
  const std::size_t threads = std::min<std::size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  HelperThreads helpers;
  for (std::size_t worker = 1; worker < threads && helpers.start(run, worker);) ++worker;
  run(0);
  helpers.join();
}

/// All rows, in order. What is wrong with more than its own row is the error: that of the first such row.
Result<Swept> sweep(std::span<const std::string> arguments, const std::vector<SweptOption>& lists, std::size_t count) {
  Swept swept;
  swept.rows.resize(count);
  std::vector<std::vector<std::string>> notes(count);
  SimulateInputs inputs;
  cli::Progress progress(std::cerr, "sweep", cli::style_of(2));
  std::atomic<std::size_t> done = 0;
  std::atomic<std::size_t> first_fault = count;
  on_all_processors(count, [&](std::size_t i, bool is_caller) {
    if (i > first_fault) return;
    swept.rows[i] = row_of(arguments, lists, i, inputs, notes[i]);
    if (swept.rows[i].error && !belongs_to_row(*swept.rows[i].error))
      for (std::size_t known = first_fault; i < known && !first_fault.compare_exchange_weak(known, i);) {
      }
    const std::size_t so_far = ++done;
    if (is_caller)
      progress.update(static_cast<double>(so_far) / static_cast<double>(count),
                      std::to_string(so_far) + " of " + std::to_string(count));
  });
  progress.finish();
  if (first_fault < count) return *swept.rows[first_fault].error;
  bool first = true;
  for (std::size_t i = 0; i < count; ++i) {
    const SweepRow& row = swept.rows[i];
    if (!row.figures) continue;
    if (std::exchange(first, false)) swept.notes = notes[i];
    std::erase_if(swept.notes,
                  [&](const std::string& note) { return std::ranges::find(notes[i], note) == notes[i].end(); });
  }
  mark_front(swept.rows);
  return swept;
}

/// Where no combination can be: its reason, or the first of several.
Error nothing_left(const std::vector<SweptOption>& lists, const std::vector<SweepRow>& rows) {
  Error error = *rows.front().error;
  if (rows.size() == 1) return error;
  error.what = "each of the " + std::to_string(rows.size()) + " strategies contradicts itself; the first, " +
               options_of(lists, rows.front()) + ": " + error.what;
  error.where.clear();
  error.mentions.clear();
  return error;
}

/// What all rows rest on: of the lines that say so, those that no list changes.
std::string shared_lines(const cli::Command& command, const std::vector<SweptOption>& lists,
                         const std::vector<SweepRow>& rows) {
  struct Line {
    std::string_view begin;
    std::set<std::string_view> options;
  };
  static const std::vector<Line> kLines{{"model ", {"model", "parameters"}},
                                        {"precision ", {"precision", "model", "like"}},
                                        {"batch ",
                                         {"model", "parameters", "sequence", "micro-batch", "global-batch",
                                          "world-size", "nodes", "tensor-parallel", "cluster", "like"}},
                                        {"machine ", {"cluster", "nodes", "world-size", "device-capacity"}},
                                        {"memory ", {"like"}}};
  const auto simulated = std::ranges::find_if(rows, [](const SweepRow& row) { return row.figures.has_value(); });
  if (simulated == rows.end()) return "";
  std::istringstream in(to_text(command, simulated->figures->taken));
  std::string text;
  for (std::string line; std::getline(in, line);) {
    const auto known = std::ranges::find_if(kLines, [&](const Line& each) { return line.starts_with(each.begin); });
    const bool varies = known != kLines.end() && std::ranges::any_of(lists, [&](const SweptOption& list) {
                          return known->options.contains(list.option);
                        });
    if (!varies) text += line + '\n';
  }
  return text;
}

struct Counts {
  std::ptrdiff_t fit, tight, do_not_fit, contradict, front;
};

Counts counts_of(const std::vector<SweepRow>& rows) {
  const auto fit = std::ranges::count_if(rows, &SweepRow::fits);
  const auto contradict = std::ranges::count_if(rows, &SweepRow::contradicts);
  return {.fit = fit,
          .tight = std::ranges::count_if(rows, &SweepRow::tight),
          .do_not_fit = std::ssize(rows) - fit - contradict,
          .contradict = contradict,
          .front = std::ranges::count_if(rows, &SweepRow::on_front)};
}

/// How many of those that fit are as fast as the fastest, as far as laws of kernels can tell.
std::string not_told_apart(const std::vector<SweepRow>& rows) {
  const auto speed = [](const SweepRow& row) {
    const bool by_laws = row.fits() && row.figures->times && row.figures->times->step_low;
    return by_laws ? row.figures->times->tokens_per_second : 0;
  };
  const double fastest = speed(*std::ranges::max_element(rows, {}, speed));
  const auto near = std::ranges::count_if(
      rows, [&](const SweepRow& row) { return speed(row) > 0 && speed(row) > fastest * (1 - cost::kLawError); });
  if (near < 2) return "";
  return "; the " + std::to_string(near) + " fastest are within " + show_fixed(100 * cost::kLawError, 0) +
         " % of one another, which laws of kernels cannot tell apart";
}

std::string summary_of(const std::vector<SweepRow>& rows) {
  const Counts counts = counts_of(rows);
  std::string text = std::to_string(rows.size()) + (rows.size() == 1 ? " strategy: " : " strategies: ") +
                     std::to_string(counts.fit) + (counts.fit == 1 ? " fits" : " fit");
  if (counts.tight > 0) text += " (" + std::to_string(counts.tight) + " tight)";
  if (counts.do_not_fit > 0)
    text += ", " + std::to_string(counts.do_not_fit) + (counts.do_not_fit == 1 ? " does not" : " do not");
  if (counts.contradict > 0)
    text += ", " + std::to_string(counts.contradict) +
            (counts.contradict == 1 ? " contradicts itself" : " contradict themselves");
  return text;
}

nlohmann::ordered_json sweep_json(const SweepLine& line, const std::vector<SweptOption>& lists,
                                  const std::vector<SweepRow>& rows) {
  const Counts counts = counts_of(rows);
  nlohmann::ordered_json j = cli::json_document("sweep");
  j["swept"] = nlohmann::ordered_json::array();
  for (const SweptOption& each : lists) j["swept"].push_back({{"option", each.option}, {"values", each.values}});
  j["row_count"] = rows.size();
  j["fits_count"] = counts.fit;
  j["tight_count"] = counts.tight;
  j["does_not_fit_count"] = counts.do_not_fit;
  j["contradiction_count"] = counts.contradict;
  j["front_count"] = counts.front;
  if (!line.foreign.read.empty()) j["configurations"] = to_json(line.foreign);
  j["rows"] = cli::to_json(all_columns(lists, rows));
  return j;
}

void print_sweep(const SweepLine& line, const std::vector<SweptOption>& lists, const std::vector<SweepRow>& rows,
                 cli::Format format) {
  const cli::Style style = cli::style_of(1);
  if (format == cli::Format::json) {
    std::cout << cli::json_text(sweep_json(line, lists, rows));
    return;
  }
  std::ostream& before = format == cli::Format::table ? std::cout : std::cerr;
  cli::print(before, shared_lines(line.command, lists, rows));
  print_foreign_files(format, line.foreign);
  if (format == cli::Format::csv) {
    std::cout << cli::render(all_columns(lists, rows), format, style);
    return;
  }
  std::vector<std::string> reasons;
  const cli::Styled table = cli::render(chief_columns(lists, rows, reasons), format, style);
  if (format == cli::Format::table) std::cout << '\n' << summary_of(rows) << not_told_apart(rows) << "\n\n";
  std::cout << table;
  std::string behind;
  for (std::size_t i = 0; i < reasons.size(); ++i) behind += "[" + std::to_string(i + 1) + "] " + reasons[i] + '\n';
  cli::print(before, behind.empty() ? "" : '\n' + behind);
  if (format == cli::Format::table)
    std::cout << "\n* no other that fits takes at most this memory and is as fast" << kWordsHint;
}

Result<void> draw(const SweepLine& line, const std::vector<SweptOption>& lists, const std::vector<SweepRow>& rows) {
  if (line.picture.empty()) return {};
  std::string title = "sweep";
  for (const char* option : {"model", "cluster"})
    if (line.command.given(option) && std::ranges::find(lists, option, &SweptOption::option) == lists.end())
      title += std::string(title == "sweep" ? " of " : " on ") + line.command.typed(option).value_or("");
  return write_file(line.picture, sweep_svg(lists, rows, title + ", " + summary_of(rows)));
}

}  // namespace

int sweep_command(std::span<const std::string> arguments) {
  std::vector<SweptOption> lists;
  SweepLine line([&](const std::string& option, const std::vector<std::string>& values) {
    lists.push_back({option, values});
    return std::size_t{0};
  });
  const Result<cli::Outcome> outcome = line.command.parse(arguments);
  if (outcome && *outcome == cli::Outcome::help) {
    std::cout << line.command.help(cli::style_of(1).width);
    return 0;
  }
  // The first combination may contradict a file of another tool, and others not: that is its row's.
  const bool is_first_rows = !outcome && belongs_to_row(outcome.error()) && line.command.config_file().empty();
  if (!outcome && (!is_first_rows || lists.empty())) return failed(outcome.error());
  const Result<cli::Format> format = cli::chosen_format(line.command, line.output);
  if (!format) return failed(format.error());
  if (const auto code = printed_config(line.command, line.foreign, *format)) return *code;
  if (!line.picture.empty() && !line.picture.ends_with(".svg"))
    return failed({.code = Errc::usage,
                   .what = "'" + line.picture + "' does not end in .svg: that is what is drawn",
                   .where = line.command.describe("picture"),
                   .help = "--picture FILE.svg"});
  const Result<std::size_t> count = product_of(lists);
  if (!count) return failed(count.error());
  const Result<Swept> swept = sweep(arguments, lists, *count);
  if (!swept) return failed(swept.error());
  const std::vector<SweepRow>& rows = swept->rows;
  const Counts counts = counts_of(rows);
  if (counts.fit + counts.do_not_fit == 0) return failed(nothing_left(lists, rows));
  print_notes(swept->notes);
  if (Result<void> drawn = draw(line, lists, rows); !drawn) return failed(drawn.error());
  print_sweep(line, lists, rows, *format);
  return counts.fit > 0 ? 0 : exit_code(Errc::does_not_fit);
}

}  // namespace shard::commands
