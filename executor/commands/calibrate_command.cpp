// `shardscope calibrate`: trainings in turn until the time is over, then their laws, then the file.
#include "executor/commands/calibrate_command.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "executor/commands/busy_machine.h"
#include "executor/commands/calibration_cases.h"
#include "executor/commands/calibration_result.h"
#include "executor/commands/calibration_rounds.h"
#include "executor/commands/calibration_run.h"
#include "executor/launch/role.h"
#include "sim/cli/contradiction.h"
#include "sim/cli/output.h"
#include "sim/cli/output_path.h"
#include "sim/cli/progress.h"
#include "sim/cluster/write_cluster.h"
#include "sim/commands/printing.h"
#include "sim/engine/simulate.h"
#include "traces/base/numbers.h"
#include "traces/base/output_file.h"
#include "traces/base/scratch.h"

namespace shard::commands {
namespace {

constexpr const char* kCalibrateDetails =
    R"(Trains small models for a few minutes, by strategies that between them have every kind of op, and writes
what each took as a description of this machine. simulate, search and train take the file as any other.
Nothing else should run on the machine meanwhile.

On a GPU, of which the first is measured, products, memory, copies, launches and collectives are timed one thing at
a time before, collectives also between all GPUs of the machine where it has several and NCCL; each figure stands in the file with its method. Exits 69 without a driver or a GPU. Figures of
emulated-cuda mean nothing: it shows, on any machine, that a calibration comes to its end.

Examples:
  shardscope calibrate -o here.json
  shardscope calibrate --device cuda -o gpu.json
  shardscope simulate --model gpt2-nano --ranks 2 --stage 3 --cluster here.json
  shardscope train --model gpt2-nano --data random --ranks 2 --stage 3 --cluster here.json
)";

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Machine this_machine() {
  Machine machine{.processor = "an unnamed processor", .cores = cores_here(), .date = {}};
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (const std::size_t colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos) {
      machine.processor = line.substr(colon + 2);
      break;
    }
  const std::time_t now = std::time(nullptr);
  char date[16] = {};
  if (std::tm utc{}; gmtime_r(&now, &utc) != nullptr) std::strftime(date, sizeof date, "%Y-%m-%d", &utc);
  machine.date = date;
  return machine;
}

#ifdef SHARDSCOPE_MPI
constexpr bool kStartsRanks = true;
#else
constexpr bool kStartsRanks = false;
#endif

struct CalibrateOptions {
  CalibrationDevice device = CalibrationDevice::cpu;
  std::int64_t seconds = 240;
  cli::OutputPath path;
  cli::OutputOptions output;
};

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  return all;
}

/// What is left of the time is for laws and the file.
Result<Rounds> run_all(std::vector<CaseRecord>& records, const std::string& folder, Clock::time_point begin,
                       double allowed, int most_rounds, cli::Progress& progress) {
  constexpr int kSteps = 5;
  const CalibrationTime time{
      .now = [begin] { return since(begin); }, .begin = 0, .end = allowed, .most_rounds = most_rounds};
  return run_rounds(
      records, time, [&](CaseRecord& record, double seconds) { return run_case(record, folder, kSteps, seconds); },
      [&](double done, const std::string& what) { progress.update(done, what); });
}

std::vector<OccupancySamples> by_occupancy(const std::vector<CaseRecord>& records) {
  std::vector<OccupancySamples> all;
  for (const CaseRecord& record : records) {
    if (record.step_seconds.empty()) continue;  // it had no time
    auto found = std::ranges::find_if(
        all, [&](const OccupancySamples& o) { return o.ranks == record.of.ranks && o.threads == record.of.threads; });
    if (found == all.end())
      found = all.insert(all.end(), {.ranks = record.of.ranks, .threads = record.of.threads, .ops = {}, .steps = {}});
    const std::vector<cost::OpSample> ops = samples_of(record);
    found->ops.insert(found->ops.end(), ops.begin(), ops.end());
    if (record.of.serial) found->steps.push_back(step_of(record));
  }
  return all;
}

Result<std::vector<StepCheck>> checked(const std::vector<CaseRecord>& records, const cluster::Cluster& cluster) {
  std::vector<StepCheck> checks;
  for (const CaseRecord& record : records) {
    if (record.step_seconds.empty()) continue;
    const Result<engine::Simulation> predicted = engine::simulate(record.plans, cluster, {.steps = 2});
    if (!predicted) return predicted.error();
    checks.push_back({.model = record.of.model,
                      .arguments = joined(record.of.arguments),
                      .predicted_seconds = predicted->step_seconds.count(),
                      .measured_seconds = cost::median(record.step_seconds)});
  }
  return checks;
}

/// Ranks of the trainings share the GPU that was measured, where there are others too.
void show_first_gpu_alone() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string all = visible == nullptr ? "0" : visible;
  setenv("CUDA_VISIBLE_DEVICES", all.substr(0, all.find(',')).c_str(), 1);
}

/// What is trained where, planned; nothing has run yet.
Result<std::vector<CaseRecord>> planned_cases(CalibrationDevice device, int cores, int devices,
                                              const std::string& folder) {
  const bool cpu = device == CalibrationDevice::cpu;
  const bool emulated = device == CalibrationDevice::emulated_cuda;
  for (const CalibrationModel& model : cpu ? calibration_models() : device_models(emulated))
    if (Result<void> w = write_file(folder + "/" + model.name + ".json", model.config); !w) return w.error();
  std::vector<CaseRecord> records;
  for (const CalibrationCase& each : cpu ? calibration_cases(cores, kStartsRanks) : device_cases(emulated, devices)) {
    Result<CaseRecord> planned = plan_case(each, folder);
    if (!planned) return planned.error();
    records.push_back(std::move(*planned));
  }
  return records;
}

Result<CalibrationResult> calibrate(const CalibrateOptions& o) {
  const auto begin = Clock::now();
  const Machine machine = this_machine();
  const auto allowed = static_cast<double>(o.seconds);
  cli::Progress progress(std::cerr, "calibrating", cli::style_of(2));
  std::optional<DeviceFigures> figures;
  if (o.device != CalibrationDevice::cpu) {
    Result<DeviceFigures> measured =
        measure_device(o.device == CalibrationDevice::emulated_cuda, machine.cores,
                       [&](const std::string& what) { progress.update(std::min(0.99, since(begin) / allowed), what); });
    if (!measured) return measured.error();
    figures = std::move(*measured);
    if (!figures->between) show_first_gpu_alone();
  }
  const std::optional<Scratch> folder = Scratch::make("/tmp");
  if (!folder) return Error{Errc::cannot_create, "no folder can be made for the trainings' files", "/tmp", ""};
  Result<std::vector<CaseRecord>> records =
      planned_cases(o.device, machine.cores, figures && figures->between ? figures->devices : 1, folder->path());
  if (!records) return records.error();
  // What means nothing is not repeated.
  const int most_rounds = o.device == CalibrationDevice::emulated_cuda ? 1 : 8;
  const Result<Rounds> rounds = run_all(*records, folder->path(), begin, allowed, most_rounds, progress);
  if (!rounds) return rounds.error();
  const std::vector<OccupancySamples> samples = by_occupancy(*records);
  CalibrationResult result{.device = o.device,
                           .cluster = figures ? cluster_of(samples, machine, *figures) : cluster_of(samples, machine),
                           .steps = {},
                           .seconds = 0,
                           .repetitions = std::max(rounds->whole, 1),
                           .left_out = rounds->left_out};
  Result<std::vector<StepCheck>> steps = checked(*records, result.cluster);
  if (!steps) return steps.error();
  result.steps = std::move(*steps);
  result.seconds = since(begin);
  return result;
}

}  // namespace

int calibrate_command(std::span<const std::string> arguments) {
  CalibrateOptions o;
  cli::Command command("shardscope", "calibrate", "measures this machine, so that predicted times are its own",
                       kCalibrateDetails);
  cli::Group group = command.group("Calibrate");
  group
      .add_choice<CalibrationDevice>(
          "device", &o.device,
          {{"cpu", CalibrationDevice::cpu, "ranks on this machine's cores"},
           {"cuda", CalibrationDevice::cuda, "an NVIDIA GPU and ranks that share it, or have one each"},
           {"emulated-cuda", CalibrationDevice::emulated_cuda,
            "a GPU that this machine's processor plays, for development: its figures mean nothing"}},
          "what is measured")
      .common();
  group
      .add("seconds", &o.seconds, "SECONDS",
           "how long it takes at most. Trainings are repeated until then; each once takes about a minute on two cores")
      .common()
      .least(1)
      .most(3600);
  cli::add_output_path(command, group, o.path);
  cli::add_output_options(command, o.output);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = document_format(command, o.output);
  if (!format) return failed(format.error());
  const Result<std::string> path = o.path.chosen();
  if (!path) return failed(path.error());
  const Result<Role> role = role_from_environment();
  if (!role) return failed(role.error());
  if (role->launcher != Launcher::none)
    return failed(cli::contradiction(
        std::string("calibrate starts its own ranks, and is one of ") + to_string(role->launcher) + "'s",
        "shardscope calibrate, without a launcher"));
  const ProcessorTime processors;
  Result<CalibrationResult> result = calibrate(o);
  if (!result) return failed(result.error());
  // Trainings are children, which have ended; kernels are this process's.
  const double busy = processors.cores_of_others(processors.of_this_process() + processors.of_ended_children());
  if (is_busy(busy))
    print_notes(
        {busy_text(busy) +
         "what was measured is slower than the machine, and predicts so; calibrate again when nothing else runs"});
  result->busy_cores = busy;
  result->cluster.measured->step_error = likely_error(*result) + (is_busy(busy) ? busy / cores_here() : 0);
  if (const Result<void> written = write_file(*path, cluster::to_json(result->cluster)); !written)
    return failed(written.error());
  if (*format == cli::Format::json)
    std::cout << cli::json_text(to_json(*result, *path));
  else
    cli::print(std::cout, to_text(*result, *path));
  return 0;
}

}  // namespace shard::commands
