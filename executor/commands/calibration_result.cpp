// Samples to a cluster, and the answer of `shardscope calibrate`.
#include "executor/commands/calibration_result.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "sim/cli/output.h"
#include "sim/cli/sizes.h"
#include "sim/cli/table.h"
#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

using Json = nlohmann::ordered_json;
using model::OperatorKind;

/// Smaller ops lie in caches, and their calls cost more than their bytes.
constexpr double kLargeBytes = 4 << 20;

/// Of all cores busy, else of what there is most of.
const OccupancySamples& fullest(std::span<const OccupancySamples> samples) {
  return *std::ranges::max_element(
      samples, {}, [](const OccupancySamples& o) { return std::pair(std::int64_t{o.ranks} * o.threads, o.ranks); });
}

/// The best rate of `amount` over the samples that it is positive for; `otherwise` where there is none.
double best_rate(const OccupancySamples& from, double otherwise,
                 const std::function<double(const cost::OpSample&)>& amount) {
  double best = 0;
  for (const cost::OpSample& s : from.ops)
    if (s.seconds > 0) best = std::max(best, from.ranks * amount(s) / s.seconds);
  return best > 0 ? best : otherwise;
}

bool begins(const cost::OpSample& s, const char* name) {
  return to_string(s.kind).starts_with(name);
}

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

constexpr const char* kMethod =
    "Trainings of five small models, each by strategies that bring every kind of op, run as 'shardscope train' runs "
    "them, in turn and again as long as time was left. An op's time is the lower quartile over steady steps, "
    "repetitions and ranks of its traced span (of a collective: while data moved), since disturbances only add. Each "
    "kind of op has one law per type: t = (call + flops x flop + bytes of parameters x weight_byte + other bytes x "
    "byte), by least squares of relative errors without negative terms, times the median of measured over law at the "
    "op's size. between_seconds, meeting_seconds and waiting_share are what the median step took beside its ops: "
    "between two ops, at each collective until the others had come, and as a share of the ops, by least squares.";

}  // namespace

double StepCheck::error() const {
  return measured_seconds > 0 ? std::abs(predicted_seconds / measured_seconds - 1) : 0;
}

cluster::Cluster cluster_of(std::span<const OccupancySamples> samples, const Machine& machine) {
  const OccupancySamples& all = fullest(samples);
  const auto flops_of = [](const char* name, Dtype dtype) {
    return [name, dtype](const cost::OpSample& s) { return begins(s, name) && s.dtype == dtype ? s.work.flops : 0.0; };
  };
  cluster::Cluster c;
  c.name = "calibrated-cpu";
  c.source = "measured by 'shardscope calibrate' on " + machine.date + ": " + std::to_string(machine.cores) +
             " cores of " + machine.processor +
             ". Peaks are the best that products, and memory bandwidth what optimizer "
             "steps of more than 4 MiB, reached with all cores busy; the link is what gathers reached.";
  c.device = cluster::DeviceKind::cpu;
  c.hosts = 1;
  c.ranks_share_device = true;
  c.streams_overlap = false;
  c.cores = machine.cores;
  const double product = best_rate(all, 1e9, flops_of("linear ", Dtype::f32));
  c.peak_fp32 = FlopsPerSecond{product};
  c.peak_bf16 = FlopsPerSecond{best_rate(all, product, flops_of("linear ", Dtype::bf16))};
  c.attention_efficiency = std::min(1.0, best_rate(all, product, flops_of("attention ", Dtype::f32)) / product);
  c.memory_bandwidth = BytesPerSecond{best_rate(all, 1e9, [](const cost::OpSample& s) {
    return begins(s, "adam") && s.work.bytes > kLargeBytes ? s.work.bytes : 0.0;
  })};
  cluster::Measured measured{.method = kMethod, .occupancies = {}};
  for (const OccupancySamples& o : samples) {
    const cost::BesideOps beside = cost::beside_ops(o.steps);
    measured.occupancies.push_back({.ranks = o.ranks,
                                    .threads = o.threads,
                                    .between_seconds = beside.between_seconds,
                                    .meeting_seconds = beside.meeting_seconds,
                                    .waiting_share = beside.waiting_share,
                                    .laws = cost::laws_of(o.ops)});
    if (&o == &all) {
      c.launch = Seconds{beside.between_seconds};
      c.intra_host.base = Seconds{beside.meeting_seconds};
    }
  }
  c.intra_host.bus_bandwidth =
      BytesPerSecond{best_rate(all, c.memory_bandwidth.count() / 2,
                               [](const cost::OpSample& s) { return begins(s, "all_gather") ? s.work.bytes : 0.0; }) /
                     all.ranks};
  c.measured = std::move(measured);
  return c;
}

Json to_json(const CalibrationResult& r, const std::string& file) {
  Json j = cli::json_document("calibrate");
  j["file"] = file;
  j["cores"] = r.cluster.cores;
  j["calibration_seconds"] = r.seconds;
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
  return j;
}

std::string to_text(const CalibrationResult& r, const std::string& file) {
  const auto percent = [](double share) { return show_fixed(100 * share, 1) + " %"; };
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
  return cli::render(table, cli::Format::table, {}) + "\nsteps of the calibration, predicted with it: median error " +
         percent(middle_error(r.steps)) + ", worst " + percent(worst_error(r.steps)) + " of " +
         std::to_string(r.steps.size()) + "\nproducts reached " + show_number(r.cluster.peak_fp32.count() / 1e9) +
         " GFLOP/s, memory " + show_number(r.cluster.memory_bandwidth.count() / 1e9) + " GB/s, with all cores busy\n" +
         left_out_text(r) + "took " + duration(Seconds{r.seconds}) + ", " + std::to_string(r.repetitions) +
         " rounds\nwrote " + file + ": --cluster takes it\n";
}

}  // namespace shard::commands
