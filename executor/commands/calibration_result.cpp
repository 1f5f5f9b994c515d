// The answer of `shardscope calibrate`.
#include "executor/commands/calibration_result.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/cli/output.h"
#include "sim/cli/sizes.h"
#include "sim/cli/table.h"
#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

using Json = nlohmann::ordered_json;

double middle_error(const std::vector<StepCheck>& steps) {
  std::vector<double> errors;
  for (const StepCheck& s : steps) errors.push_back(s.error());
  return cost::median(std::move(errors));
}

double worst_error(const std::vector<StepCheck>& steps) {
  double worst = 0;
  for (const StepCheck& s : steps) worst = std::max(worst, s.error());
  return worst;
}

std::string left_out_text(const CalibrationResult& r) {
  if (r.left_out == 0) return {};
  return "no time for " + std::to_string(r.left_out) + " of " + std::to_string(std::size(r.steps) + r.left_out) +
         " trainings: kinds of op that only they have are priced by the general figures; --seconds gives them more\n";
}

std::string percent(double share) {
  return show_fixed(100 * share, 1) + " %";
}

/// One line for each number of ranks and threads.
std::string laws_text(const CalibrationResult& r) {
  cli::Table table{.columns = {{"ranks", "ranks"},
                               {"threads", "threads"},
                               {"laws", "laws"},
                               {"samples", "samples"},
                               {"median_error", "error, median"}},
                   .rows = {}};
  for (const cluster::Occupancy& o : r.cluster.measured->occupancies) {
    std::int64_t samples = 0;
    std::vector<double> errors;
    for (const cluster::OpLaw& law : o.laws) samples += law.samples, errors.push_back(law.median_error);
    const double error = cost::median(std::move(errors));
    table.rows.push_back({o.ranks, o.threads, std::ssize(o.laws), samples, cli::Cell(error, percent(error))});
  }
  return cli::render(table, cli::Format::table, {}).str();
}

std::string figures_text(const CalibrationResult& r) {
  const cluster::Cluster& c = r.cluster;
  const std::string reached = "products reached " + show_number(c.peak_fp32.count() / 1e9) + " GFLOP/s";
  const std::string memory = ", memory " + show_number(c.memory_bandwidth.count() / 1e9) + " GB/s";
  if (r.device == CalibrationDevice::cpu) return reached + memory + ", with all cores busy\n";
  cli::Table table{.columns = {{"figure", "figure"}, {"value", "value"}, {"unit", "unit"}}, .rows = {}};
  for (const cluster::Figure& f : c.measured->figures)
    table.rows.push_back({f.name, cli::Cell(f.value, show_number(f.value)), f.unit});
  const auto gflops = [](const std::optional<FlopsPerSecond>& rate) {
    return show_number(rate.value_or(FlopsPerSecond{}).count() / 1e9);
  };
  return cli::render(table, cli::Format::table, {}).str() + "\n" + reached + " in fp32, " + gflops(c.peak_tf32) +
         " in tf32, " + gflops(c.peak_bf16) + " in bf16, " + gflops(c.peak_fp16) + " in fp16" + memory + "\n";
}

}  // namespace

double StepCheck::error() const {
  return measured_seconds > 0 ? std::abs(predicted_seconds / measured_seconds - 1) : 0;
}

double likely_error(const CalibrationResult& r) {
  constexpr double kFourOfFive = 0.8, kLeast = 0.1;
  std::vector<double> errors;
  for (const StepCheck& s : r.steps) {
    if (s.predicted_seconds <= 0 || s.measured_seconds <= 0) continue;
    const double ratio = s.predicted_seconds / s.measured_seconds;
    errors.push_back(std::max(ratio, 1 / ratio) - 1);
  }
  return errors.empty() ? 1 : std::max(kLeast, cost::quantile(std::move(errors), kFourOfFive));
}

Json to_json(const CalibrationResult& r, const std::string& file) {
  Json j = cli::json_document("calibrate");
  j["device"] = to_string(r.device);
  j["file"] = file;
  j["cores"] = r.cluster.cores > 0 ? Json(r.cluster.cores) : Json();
  j["calibration_seconds"] = r.seconds;
  j["busy_cores"] = r.busy_cores;
  j["repetitions"] = r.repetitions;
  j["left_out"] = r.left_out;
  j["step_error"] = {{"median", middle_error(r.steps)}, {"worst", worst_error(r.steps)}};
  j["steps"] = Json::array();
  for (const StepCheck& s : r.steps)
    j["steps"].push_back({{"model", s.model},
                          {"arguments", s.arguments},
                          {"step_seconds", {{"predicted", s.predicted_seconds}, {"measured", s.measured_seconds}}}});
  j["laws"] = Json::array();
  for (const cluster::Occupancy& o : r.cluster.measured->occupancies)
    for (const cluster::OpLaw& law : o.laws)
      j["laws"].push_back({{"ranks", o.ranks},
                           {"threads", o.threads},
                           {"kind", law.kind},
                           {"dtype", to_string(law.dtype)},
                           {"samples", law.samples},
                           {"median_error", law.median_error}});
  j["figures"] = Json::array();
  for (const cluster::Figure& f : r.cluster.measured->figures)
    j["figures"].push_back({{"name", f.name}, {"value", f.value}, {"unit", f.unit}, {"method", f.method}});
  return j;
}

std::string to_text(const CalibrationResult& r, const std::string& file) {
  const bool emulated = r.device == CalibrationDevice::emulated_cuda;
  return std::string(emulated ? "of an emulated GPU, for development: these figures mean nothing\n\n" : "") +
         laws_text(r) + "\nsteps of the calibration, predicted with it: median error " +
         percent(middle_error(r.steps)) + ", worst " + percent(worst_error(r.steps)) + " of " +
         std::to_string(r.steps.size()) + "\n" + figures_text(r) + left_out_text(r) + "took " +
         duration(Seconds{r.seconds}) + ", " + std::to_string(r.repetitions) + " rounds\nwrote " + file +
         ": --cluster takes it\n";
}

}  // namespace shard::commands
