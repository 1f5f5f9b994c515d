// `shardscope validate`: predictions beside published runs.
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/cli/progress.h"
#include "sim/cli/table.h"
#include "sim/cluster/read_cluster.h"
#include "sim/commands/commands.h"
#include "sim/commands/printing.h"
#include "sim/commands/read_once.h"
#include "sim/validate/validation.h"
#include "traces/base/numbers.h"
#include "traces/base/read_file.h"

namespace shard::commands {
namespace {

constexpr const char* kValidateDetails =
    R"(Reads a table of runs that somebody measured and published, one row each, predicts every run's peak memory and
throughput, and sums the errors up by framework and kind of memory. Memory is what 'simulate --like' answers.

The table has typed columns: tests/validation/README.md lists them, and normalise.py there makes them of rows in their
publishers' words. Rows that cannot be predicted are counted by the reason. Errors are absolute percentage errors.

Examples:
  shardscope validate tests/validation/typed.csv
  shardscope validate tests/validation/typed.csv --format markdown > errors.md
  shardscope validate tests/validation/typed.csv --json
)";

/// Larger tables are no tables of runs that people published.
constexpr Bytes kMostBytes{64 << 20};

struct ValidateFlags {
  std::string file;
  cli::OutputOptions output;
};

std::string percent(double fraction) {
  return show_fixed(100 * fraction, 1) + " %";
}

cli::Cell fraction_cell(std::optional<double> fraction) {
  return fraction ? cli::Cell(cli::Cell::Value(*fraction), percent(*fraction)) : cli::Cell();
}

cli::Table rows_table(const validate::Validation& v) {
  cli::Table table{.columns = {{"id", "row", cli::Align::left},
                               {"framework", "framework", cli::Align::left},
                               {"model", "model", cli::Align::left},
                               {"rules", "rules", cli::Align::left},
                               {"memory_kind", "memory", cli::Align::left},
                               {"measured_peak_bytes", "measured"},
                               {"predicted_peak_bytes", "predicted"},
                               {"memory_error", "error"},
                               {"measured_second_peak_bytes", "second"},
                               {"predicted_second_peak_bytes", "predicted"},
                               {"second_memory_error", "error"},
                               {"measured_tokens_per_second", "tokens/s"},
                               {"predicted_tokens_per_second", "predicted"},
                               {"predicted_tokens_per_second_low", "low"},
                               {"predicted_tokens_per_second_high", "high"},
                               {"throughput_error", "error"},
                               {"outcome", "outcome", cli::Align::left},
                               {"predicted_fits", "fits"},
                               {"extrapolated", "extrapolated"},
                               {"assumed", "assumed", cli::Align::left},
                               {"reason", "not predicted", cli::Align::left},
                               {"reason_detail", "because of", cli::Align::left},
                               {"throughput_reason", "no time", cli::Align::left}},
                   .rows = {}};
  for (const validate::ValidatedRow& row : v.rows) {
    const std::optional<validate::Prediction>& memory = row.predicted.memory;
    std::vector<cli::Cell> cells{row.run.id, row.run.framework_name, row.run.model, word(row.run.framework).text};
    cells.push_back(row.run.memory.empty() ? cli::Cell() : cli::Cell(to_string(row.run.memory.front().kind)));
    for (std::size_t i = 0; i < 2; ++i) {
      const bool stated = i < row.run.memory.size();
      cells.push_back(stated ? cli::cell(row.run.memory[i].bytes) : cli::Cell());
      const auto kind = stated ? row.run.memory[i].kind : validate::MemoryKind::allocated;
      cells.push_back(memory && (stated || i == 0) ? cli::cell(memory->of(kind)) : cli::Cell());
      cells.push_back(fraction_cell(stated ? row.memory_error(i) : std::nullopt));
    }
    const auto tokens = [](std::optional<double> t) {
      return t ? cli::Cell(cli::Cell::Value(*t), show_number(*t)) : cli::Cell();
    };
    cells.push_back(tokens(row.run.tokens_per_second));
    const auto of = [&](double validate::Throughput::*member) {
      return row.throughput ? std::optional((*row.throughput).*member) : std::nullopt;
    };
    for (const auto member :
         {&validate::Throughput::tokens_per_second, &validate::Throughput::low, &validate::Throughput::high})
      cells.push_back(tokens(of(member)));
    cells.push_back(fraction_cell(row.throughput_error()));
    cells.emplace_back(row.run.outcome == validate::Outcome::out_of_memory ? "out of memory"
                       : row.run.outcome == validate::Outcome::fits        ? "fits"
                                                                           : "ran");
    cells.push_back(memory ? cli::Cell(memory->fits) : cli::Cell());
    cells.emplace_back(!row.machine.alike || !row.run.assumed.empty());
    cells.push_back(row.run.assumed.empty() ? cli::Cell() : cli::Cell(row.run.assumed));
    cells.push_back(memory ? cli::Cell() : cli::Cell(word(row.predicted.reason).help));
    cells.push_back(row.predicted.detail.empty() ? cli::Cell() : cli::Cell(row.predicted.detail));
    cells.push_back(row.throughput_reason.empty() ? cli::Cell() : cli::Cell(row.throughput_reason));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// Of the speeds that were predicted: how many lay within their interval.
std::optional<double> share_within(const validate::Errors& e) {
  if (e.intervals.rows == 0) return std::nullopt;
  return static_cast<double>(e.intervals.within) / static_cast<double>(e.intervals.rows);
}

cli::Table errors_table(const std::vector<validate::Errors>& all, const std::string& what) {
  cli::Table table{.columns = {{what, what, cli::Align::left},
                               {"rows", "rows"},
                               {"memory_count", "memory"},
                               {"memory_median_ape", "median"},
                               {"memory_mean_ape", "mean"},
                               {"memory_p90_ape", "90 %"},
                               {"throughput_count", "time"},
                               {"throughput_median_ape", "median"},
                               {"throughput_mean_ape", "mean"},
                               {"throughput_p90_ape", "90 %"},
                               {"throughput_within", "within"}},
                   .rows = {}};
  for (const validate::Errors& e : all) {
    std::vector<cli::Cell> cells{e.name, e.rows};
    for (const validate::ErrorSummary* s : {&e.peak_memory, &e.throughput}) {
      cells.emplace_back(s->count);
      for (const double x : {s->median_ape, s->mean_ape, s->p90_ape})
        cells.push_back(s->count > 0 ? fraction_cell(x) : cli::Cell());
    }
    cells.push_back(fraction_cell(share_within(e)));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

cli::Table unpredicted_table(const validate::Validation& v) {
  cli::Table table{
      .columns = {{"reason", "not predicted", cli::Align::left}, {"rows", "rows"}, {"rows_with_memory", "with memory"}},
      .rows = {}};
  for (const validate::Unpredicted& u : v.unpredicted)
    table.rows.push_back({word(u.reason).help, u.rows, u.with_memory});
  return table;
}

nlohmann::ordered_json to_json(const validate::ErrorSummary& s) {
  if (s.count == 0) return {{"count", 0}, {"median_ape", nullptr}, {"mean_ape", nullptr}, {"p90_ape", nullptr}};
  return {{"count", s.count}, {"median_ape", s.median_ape}, {"mean_ape", s.mean_ape}, {"p90_ape", s.p90_ape}};
}

nlohmann::ordered_json to_json(const std::vector<validate::Errors>& all, const char* key) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const validate::Errors& e : all)
    list.push_back({{key, e.name},
                    {"rows", e.rows},
                    {"peak_memory", to_json(e.peak_memory)},
                    {"throughput", to_json(e.throughput)},
                    {"throughput_within", share_within(e) ? nlohmann::ordered_json(*share_within(e)) : nullptr}});
  return list;
}

nlohmann::ordered_json to_json(const validate::Classified& c) {
  return {{"count", c.count}, {"predicted", c.predicted}, {"right", c.right}};
}

void print_json(const validate::Validation& v) {
  nlohmann::ordered_json j = cli::json_document("validate");
  j["rows"] = cli::to_json(rows_table(v));
  j["frameworks"] = to_json(v.frameworks, "framework");
  j["memory_kinds"] = to_json(v.memory_kinds, "memory_kind");
  j["speed_kinds"] = to_json(v.speed_kinds, "speed_kind");
  j["not_predicted"] = nlohmann::ordered_json::array();
  for (const validate::Unpredicted& u : v.unpredicted)
    j["not_predicted"].push_back(
        {{"reason", word(u.reason).text}, {"rows", u.rows}, {"rows_with_memory", u.with_memory}});
  j["overall"] = {
      {"rows", v.overall.rows},
      {"peak_memory", to_json(v.overall.peak_memory)},
      {"throughput", to_json(v.overall.throughput)},
      {"throughput_within", share_within(v.overall) ? nlohmann::ordered_json(*share_within(v.overall)) : nullptr},
      {"throughput_median_of_medians", v.median_of_medians ? nlohmann::ordered_json(*v.median_of_medians) : nullptr},
      {"modelled_fraction", v.modelled_fraction},
      {"oom", to_json(v.oom)},
      {"fits", to_json(v.fits)}};
  std::cout << cli::json_text(j);
}

std::string sentence(const validate::Validation& v) {
  const auto of = [](const validate::Classified& c) {
    return std::to_string(c.right) + " of " + std::to_string(c.predicted) + " predicted of " + std::to_string(c.count);
  };
  return percent(v.modelled_fraction) + " of the measured dense runs without pipelines and context parallelism are " +
         "predicted; of those that ran out of memory " + of(v.oom) + " were foretold, of those that ran " + of(v.fits) +
         " were said to fit." +
         (v.median_of_medians
              ? " Of speeds, the frameworks' median errors have the median " + percent(*v.median_of_medians) + "."
              : "") +
         "\n";
}

void print_tables(const validate::Validation& v, cli::Format format) {
  const cli::Style style = cli::style_of(1);
  const std::pair<const std::vector<validate::Errors>&, const char*> parts[] = {
      {v.frameworks, "framework"}, {v.memory_kinds, "kind"}, {v.speed_kinds, "speeds of"}};
  for (const auto& [errors, what] : parts) std::cout << cli::render(errors_table(errors, what), format, style) << '\n';
  std::cout << cli::render(errors_table({v.overall}, "all"), format, style) << '\n';
  std::cout << cli::render(unpredicted_table(v), format, style) << '\n';
  cli::print(std::cout, sentence(v));
}

/// The chief columns of what was predicted, and after them what was not.
void print_rows(const validate::Validation& v) {
  const cli::Table all = rows_table(v);
  cli::Table chief, absent;
  const auto pick = [&](cli::Table& to, std::initializer_list<std::size_t> columns, bool predicted) {
    for (const std::size_t c : columns) to.columns.push_back(all.columns[c]);
    for (std::size_t i = 0; i < all.rows.size(); ++i) {
      if (v.rows[i].predicted.memory.has_value() != predicted) continue;
      std::vector<cli::Cell> cells;
      for (const std::size_t c : columns) cells.push_back(all.rows[i][c]);
      to.rows.push_back(std::move(cells));
    }
  };
  pick(chief, {0, 2, 4, 5, 6, 7, 11, 12, 13, 14, 15, 16}, true);
  pick(absent, {0, 1, 2, 18, 19}, false);
  const cli::Style style = cli::style_of(1);
  std::cout << cli::render(chief, cli::Format::table, style) << '\n'
            << cli::render(absent, cli::Format::table, style) << '\n';
}

Result<cluster::Cluster> read_by_name(std::string_view name) {
  return cluster::read_cluster(name);
}

}  // namespace

int validate_command(std::span<const std::string> arguments) {
  ValidateFlags o;
  cli::Command command("shardscope", "validate", "checks predictions against published runs", kValidateDetails);
  command.add_positional("ROWS", &o.file, "a table of published runs, typed columns (CSV)").required().reads_file();
  cli::add_output_options(command, o.output);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = cli::chosen_format(command, o.output);
  if (!format) return failed(format.error());
  const Result<std::string> text = read_file(o.file, "table of published runs", kMostBytes);
  if (!text) return failed(text.error());
  Result<std::vector<validate::PublishedRun>> runs = validate::read_published_runs(*text, o.file);
  if (!runs) return failed(runs.error());
  cli::Progress progress(std::cerr, "validate", cli::style_of(2));
  ReadOnce<cluster::Cluster> clusters(read_by_name);
  const auto count = static_cast<double>(std::max<std::size_t>(runs->size(), 1));
  const validate::Validation v = validate::validate_runs(
      std::move(*runs),
      [&](std::string_view name) -> Result<cluster::Cluster> {
        const auto found = clusters.get(std::string(name));
        if (!found) return found.error();
        return **found;
      },
      [&](std::size_t done) { progress.update(static_cast<double>(done) / count); });
  progress.finish();
  if (*format == cli::Format::json) {
    print_json(v);
  } else if (*format == cli::Format::csv) {
    std::cout << cli::render(rows_table(v), *format, cli::style_of(1));
  } else {
    if (*format == cli::Format::table) print_rows(v);
    print_tables(v, *format);
  }
  return 0;
}

}  // namespace shard::commands
