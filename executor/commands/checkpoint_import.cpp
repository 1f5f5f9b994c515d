// Notes say what was taken for what; nothing is left out in silence.
#include "executor/commands/checkpoint_import.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "executor/state/safetensors.h"
#include "executor/state/torch/convert.h"
#include "executor/state/torch/open.h"
#include "sim/cli/output.h"
#include "sim/cli/progress.h"
#include "sim/cli/table.h"
#include "traces/base/numbers.h"
#include "traces/base/printable.h"
#include "traces/base/read_file.h"

namespace shard::commands {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kConfigFile = "config.json";
constexpr Bytes kLargestConfig{1 << 20};

/// The model's configuration, in the folder or the one around it.
std::string config_near(const fs::path& from) {
  std::error_code fault;
  const fs::path folder = fs::is_directory(from, fault) ? from : from.parent_path();
  for (const fs::path& where : {folder, fs::absolute(folder).lexically_normal().parent_path()}) {
    if (!fs::is_regular_file(where / kConfigFile, fault)) continue;
    Result<std::string> text = read_file(where / kConfigFile, "configuration", kLargestConfig);
    if (text && Json::accept(*text)) return std::move(*text);
  }
  return {};
}

struct StateTotals {
  std::int64_t tensors = 0, elements = 0;
};

StateTotals state_totals(const torch::TrainingState& state, bool moments) {
  StateTotals totals;
  for (const torch::StateTensor& t : state.tensors) {
    if ((t.role != torch::Role::weight) != moments) continue;
    ++totals.tensors;
    totals.elements += torch::elements_of(t.shape);
  }
  return totals;
}

std::string state_totals_text(const StateTotals& totals) {
  return totals.tensors == 0 ? "none"
                             : with_commas(totals.tensors) + " tensors, " + with_commas(totals.elements) + " elements";
}

Json state_totals_json(const StateTotals& totals) {
  return {{"tensor_count", totals.tensors}, {"element_count", totals.elements}};
}

std::string name_in_checkpoint(const torch::StateTensor& t) {
  return t.role == torch::Role::weight ? t.name : t.name + '.' + to_string(t.role);
}

std::string summary_text(const torch::TrainingState& state) {
  std::string text = "weights          " + state_totals_text(state_totals(state, false)) + "\n";
  text += "optimizer state  " + state_totals_text(state_totals(state, true)) + "\n";
  for (const std::string& note : state.notes) text += "note             " + printable_line(note) + "\n";
  return text;
}

void add_summary(const torch::TrainingState& state, Json& j) {
  j["form"] = state.form;
  j["weights"] = state_totals_json(state_totals(state, false));
  j["optimizer_state"] = state_totals_json(state_totals(state, true));
  j["notes"] = state.notes;
}

}  // namespace

Result<Imported> import_checkpoint(const ImportRequest& request) {
  Result<torch::TrainingState> state = torch::open(request.from);
  if (!state) return state.error();
  Imported imported{.state = std::move(*state), .path = {}, .step = 0};
  imported.step = request.step.value_or(imported.state.step.value_or(0));
  cli::Progress progress(std::cerr, "import", cli::style_of(2));
  Result<fs::path> path =
      torch::convert(imported.state, {.folder = request.into,
                                      .step = imported.step,
                                      .config = config_near(request.from),
                                      .progress = [&](double fraction) { progress.update(fraction, request.from); }});
  progress.finish();
  if (!path) return path.error();
  imported.path = std::move(*path);
  return imported;
}

std::string imported_text(const Imported& imported) {
  return "from             " + imported.state.path + ", " + imported.state.form + "\ncheckpoint       " +
         imported.path.string() + "\nstep             " + with_commas(imported.step) + "\n" +
         summary_text(imported.state) + "\nGo on from it: shardscope train ... --resume " +
         imported.path.parent_path().string() + " --resume-inexact\n";
}

Json imported_json(const Imported& imported) {
  Json j = cli::json_document("checkpoint");
  j["action"] = "import";
  j["from"] = imported.state.path;
  j["path"] = imported.path.string();
  j["step"] = imported.step;
  add_summary(imported.state, j);
  return j;
}

std::string foreign_text(const torch::TrainingState& state, bool tensors) {
  std::string text = "checkpoint       " + state.path + "\nform             " + state.form + "\nstep             " +
                     (state.step ? with_commas(*state.step) : "not said") + "\n" + summary_text(state);
  if (!tensors) return text;
  cli::Table table;
  table.columns = {{"name", "tensor", cli::Align::left}, {"shape", "shape"}, {"parts", "parts"}};
  for (const torch::StateTensor& t : state.tensors) {
    const std::string name = name_in_checkpoint(t);
    table.rows.push_back({{name, printable_line(name)}, safetensors::shape_text(t.shape), std::ssize(t.blocks)});
  }
  return text + "\n" + cli::render(table, cli::Format::table, {}).str();
}

Json foreign_json(const torch::TrainingState& state, bool tensors) {
  Json j = cli::json_document("checkpoint");
  j["action"] = "show";
  j["path"] = state.path;
  j["step"] = state.step ? Json(*state.step) : Json(nullptr);
  add_summary(state, j);
  j["tensors"] = nullptr;
  if (!tensors) return j;
  j["tensors"] = Json::array();
  for (const torch::StateTensor& t : state.tensors)
    j["tensors"].push_back({{"name", name_in_checkpoint(t)}, {"shape", t.shape}, {"parts", t.blocks.size()}});
  return j;
}

}  // namespace shard::commands
