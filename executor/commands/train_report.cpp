// What a training run says at its end.
#include "executor/commands/train_report.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <nlohmann/json.hpp>

#include "executor/commands/prepared.h"
#include "executor/commands/step_report.h"
#include "sim/cli/output.h"
#include "sim/cli/sizes.h"
#include "sim/compile/compile.h"
#include "sim/engine/report.h"
#include "sim/strategy/number_class.h"
#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

using Json = nlohmann::ordered_json;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Of the steady steps; of the first where there is no other.
double measured_step(const train::SessionResult& own) {
  if (own.step_seconds.size() < 2) return median(own.step_seconds);
  return median({own.step_seconds.begin() + 1, own.step_seconds.end()});
}

struct MeanCommunication {
  double transfer_seconds = 0;
  double waiting_seconds = 0;
};
/// Of the steady steps; of the first where there is no other.
MeanCommunication mean_communication(const train::SessionResult& own) {
  MeanCommunication mean;
  const std::size_t all = own.step_communication.size();
  const std::size_t first = all > 1 ? 1 : 0;
  for (std::size_t i = first; i < all; ++i) {
    const double share = 1e-9 / static_cast<double>(all - first);
    mean.transfer_seconds += static_cast<double>(own.step_communication[i].transfer_ns) * share;
    mean.waiting_seconds += static_cast<double>(own.step_communication[i].waiting_ns) * share;
  }
  return mean;
}

/// Rank 0's, of a steady step.
/// Ranks on GPUs share a process, whose memory tells nothing of one, and their collectives are not timed one by one.
bool on_cpus(const plan::Strategy& s) {
  return s.device == plan::Device::cpu;
}

/// Whether a second run has these bits, and whether other strategies have.
std::string whose_bits(const plan::Strategy& s) {
  if (!s.reproducible) return "not reproducible";
  if (plan::has_bits_of_class(s)) return "reproducible";
  const std::int64_t micro_batches = s.micro_batches();
  const bool batches = !std::has_single_bit(static_cast<std::uint64_t>(micro_batches));
  return "reproducible by this strategy alone, since " +
         (batches ? std::to_string(micro_batches) + " micro-batches in the global batch"
                  : std::to_string(s.data_parallel()) + " data-parallel ranks") +
         " are no power of two";
}

double predicted_transfer(const engine::Simulation& s) {
  const engine::ClassResult& own = s.classes.front();
  const engine::PhaseResult* step = own.find(s.steps > 1 ? Phase::steady_step : Phase::first_step);
  return step == nullptr ? 0 : step->communication_seconds.count();
}

double predicted_step(const engine::Simulation& s) {
  return s.steps > 1 ? s.step_seconds.count() : s.first_step_seconds.count();
}

std::string predicted_text(const engine::Simulation& s) {
  return engine::between_text(s, Seconds{predicted_step(s)});
}

std::int64_t tokens_per_step(const plan::Strategy& s) {
  return s.global_batch * s.sequence;
}

double model_flops_per_rank(const TrainReport& report) {
  return step_flops(*report.planned, *report.prediction, 0).model.count();
}

Bytes predicted_resident(const TrainReport& report) {
  Bytes total{0};
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank)
    for (Memory memory : {Memory::device, Memory::host, Memory::pinned})
      total += class_of(*report.prediction, static_cast<std::int32_t>(rank)).peak[static_cast<std::size_t>(memory)];
  return total;
}

/// On the device of rank 0: the arenas of the ranks that share it, and what context and libraries take.
Bytes predicted_in_use(const TrainReport& report) {
  Bytes total = report.device_overhead;
  for (int rank = 0; rank < report.own.device->ranks; ++rank)
    total += class_of(*report.prediction, rank).peak[static_cast<std::size_t>(Memory::device)];
  return total;
}

Bytes measured_resident(const TrainReport& report) {
  Bytes total{0};
  for (const RankReport& rank : report.ranks) total += rank.resident;
  return total;
}

/// What was live, as the prediction says it.
std::vector<engine::Moment> measured_moments(const train::SessionResult& own) {
  std::vector<engine::Moment> moments;
  for (const train::MeasuredMoment& m : own.moments) {
    Bytes live{0};
    for (Bytes bytes : m.by_category) live += bytes;
    moments.push_back({.name = m.name, .live = live, .live_peak = live, .by_category = m.by_category});
  }
  return moments;
}

/// Device memory of rank 0 behind each part of the run, and whether it is what the plan said.
std::string moments_text(const TrainReport& report) {
  const std::vector<engine::Moment> measured = measured_moments(report.own);
  if (measured.empty()) return {};
  std::string out = "\nrank 0, device memory live after each part of the run, measured\n" +
                    engine::moments_table(measured) + "  predicted       ";
  const std::vector<engine::Moment>& predicted = class_of(*report.prediction, 0).moments;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const bool known = i < predicted.size() && predicted[i].name == measured[i].name;
    const bool equal = known && predicted[i].by_category == measured[i].by_category;
    const std::string cell = equal ? "equal" : known ? std::to_string(predicted[i].live.count()) + " B" : "-";
    out += std::string(15 - std::min<std::size_t>(15, cell.size()), ' ') + cell;
  }
  return out + '\n';
}

void add_steps(Json& j, const TrainReport& report) {
  j["steps"] = Json::array();
  j["skipped_steps"] = Json::array();
  for (std::size_t i = 0; i < report.own.losses.size(); ++i) {
    train::StepResult step{.step = static_cast<std::int64_t>(i),
                           .loss = report.own.losses[i],
                           .seconds = report.own.step_seconds[i],
                           .learning_rate = report.own.learning_rates[i]};
    if (i < report.own.controls.size()) step.control = report.own.controls[i];
    j["steps"].push_back(step_json(step));
    if (step.control && step.control->skip != 0)
      j["skipped_steps"].push_back(skipped_json(*report.planned->model, step.step, *step.control));
  }
}

/// What each rank held and sent, beside what was predicted of its class.
void add_ranks(Json& j, const TrainReport& report) {
  j["arenas"] = Json::array();
  j["collectives"] = Json::array();
  j["optimizer_state_bytes"] = Json::array();
  j["wire_bytes"] = nullptr;
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const RankReport& rank = report.ranks[i];
    const engine::ClassResult& c = class_of(*report.prediction, static_cast<std::int32_t>(i));
    for (std::size_t m = 0; m < rank.peak.size(); ++m) {
      if (m > 0 && c.peak[m] == Bytes{0} && rank.peak[m] == Bytes{0}) continue;
      j["arenas"].push_back({{"rank", i},
                             {"memory", to_string(static_cast<Memory>(m))},
                             {"predicted_peak_bytes", c.peak[m].count()},
                             {"measured_peak_bytes", rank.peak[m].count()}});
    }
    for (int k = 0; k < kCollectiveCount; ++k) {
      const auto kind = static_cast<Collective>(k);
      const auto& predicted = c.collectives[static_cast<std::size_t>(k)];
      const CollectiveCount& measured = rank.collectives[kind];
      if (predicted.count == 0 && measured.calls == 0) continue;
      j["collectives"].push_back({{"rank", i},
                                  {"kind", to_string(kind)},
                                  {"predicted_count", predicted.count},
                                  {"measured_count", measured.calls},
                                  {"predicted_bytes", predicted.bytes.count()},
                                  {"measured_bytes", measured.bytes.count()}});
    }
    j["optimizer_state_bytes"].push_back(rank.optimizer_state.count());
    if (rank.collectives.wire.count() > 0) j["wire_bytes"].push_back(rank.collectives.wire.count());
  }
}

void add_weights(Json& j, const TrainReport& report) {
  const WeightsReport& w = report.weights;
  j["weights"] = nullptr;
  if (!w.read.empty()) {
    j["weights"] = {{"read", w.read}, {"tensors", w.tensors}, {"read_bytes", Json::array()}};
    for (const RankReport& rank : report.ranks) j["weights"]["read_bytes"].push_back(rank.weights_read.count());
  }
  j["resumed"] = nullptr;
  if (report.resumed != nullptr)
    j["resumed"] = {{"path", report.resumed->path().string()}, {"step", report.resumed->manifest().step}};
  j["saved_checkpoints"] = nlohmann::json::array();
  for (const train::SavedCheckpoint& c : report.saved)
    j["saved_checkpoints"].push_back(
        {{"path", c.path.string()}, {"step", c.step}, {"bytes", c.bytes.count()}, {"seconds", c.seconds}});
  j["saved_weights"] = nullptr;
  if (!w.saved.empty())
    j["saved_weights"] = {{"file", w.saved}, {"files", w.saved_files}, {"file_bytes", w.saved_bytes.count()}};
}

void add_evaluations(Json& j, const TrainReport& report) {
  j["validation_data"] = report.validation.empty() ? Json(nullptr) : Json(report.validation);
  j["evaluations"] = Json::array();
  for (const train::EvaluationResult& e : report.own.evaluations) j["evaluations"].push_back(evaluation_json(e));
}

void add_moments(Json& j, const TrainReport& report) {
  j["moments"] = Json::array();
  const std::vector<engine::Moment>& predicted_moments = class_of(*report.prediction, 0).moments;
  for (std::size_t i = 0; i < report.own.moments.size() && i < predicted_moments.size(); ++i)
    j["moments"].push_back({{"name", report.own.moments[i].name},
                            {"predicted_by_category", engine::to_json(predicted_moments[i].by_category)},
                            {"measured_by_category", engine::to_json(report.own.moments[i].by_category)}});
}

}  // namespace

std::string pack(const RankReport& r) {
  Json j{{"peak", Json::array()},          {"state", r.optimizer_state.count()},
         {"resident", r.resident.count()}, {"weights", r.weights_read.count()},
         {"process", r.process},           {"processor", r.processor_seconds}};
  for (const Bytes peak : r.peak) j["peak"].push_back(peak.count());
  j["wire"] = r.collectives.wire.count();
  for (const CollectiveCount& c : r.collectives.by_kind) j["collectives"].push_back({c.calls, c.bytes.count()});
  return j.dump();
}

RankReport unpack(std::string_view text) {
  const Json j = Json::parse(text, nullptr, false);
  assert(!j.is_discarded());
  RankReport r;
  for (std::size_t m = 0; m < r.peak.size(); ++m) r.peak[m] = Bytes{j["peak"][m].get<std::int64_t>()};
  r.optimizer_state = Bytes{j["state"].get<std::int64_t>()};
  r.resident = Bytes{j["resident"].get<std::int64_t>()};
  r.weights_read = Bytes{j["weights"].get<std::int64_t>()};
  r.process = j["process"].get<std::int64_t>();
  r.processor_seconds = j["processor"].get<double>();
  r.collectives.wire = Bytes{j["wire"].get<std::int64_t>()};
  for (std::size_t k = 0; k < r.collectives.by_kind.size(); ++k)
    r.collectives.by_kind[k] = {j["collectives"][k][0].get<std::int64_t>(),
                                Bytes{j["collectives"][k][1].get<std::int64_t>()}};
  return r;
}

Json to_json(const cli::Command& command, const TrainReport& report) {
  const plan::Strategy& s = report.planned->strategy;
  const engine::Simulation& p = *report.prediction;
  const nlohmann::json answer = engine::to_json(p);
  Json j = cli::json_document("train");
  j["schema_version"] = answer["schema_version"];
  j["assumed"] = to_json(command, assumed_of(*report.planned, p));
  j["model"] = report.planned->model->name;
  j["parameter_elements"] = report.planned->model->parameter_elements();
  j["strategy"] = answer["strategy"];
  j["data"] = report.data;
  j["transport"] = report.transport;
  j["world_size"] = s.world_size;
  j["plan_hash"] = p.plan_hash;
  add_weights(j, report);
  add_steps(j, report);
  add_evaluations(j, report);
  j["state_sha256"] = report.own.state_sha256;
  j["numerics"] = {{"instruction_set", cpu::to_string(report.instruction_set)},
                   {"library", cpu::matrix_library()},
                   {"reproducible", s.reproducible},
                   {"bits_promised", plan::has_bits_of_class(s)}};
  for (const char* key : {"fits", "device_capacity_bytes", "headroom_bytes", "largest_holders", "smallest_change"})
    j[key] = answer[key];
  add_ranks(j, report);
  add_moments(j, report);
  j["resident_bytes"] = {{"predicted", predicted_resident(report).count()}, {"measured", nullptr}};
  if (on_cpus(s)) j["resident_bytes"]["measured"] = measured_resident(report).count();
  j["device_in_use_bytes"] = nullptr;
  if (report.own.device)
    j["device_in_use_bytes"] = {{"predicted", predicted_in_use(report).count()},
                                {"measured", report.own.device->bytes.count()}};
  const double step = measured_step(report.own);
  const Seconds predicted{predicted_step(p)};
  j["step_seconds"] = {{"predicted", predicted.count()},
                       {"predicted_low", p.low(predicted).count()},
                       {"predicted_high", p.high(predicted).count()},
                       {"measured", step}};
  const double tokens = static_cast<double>(tokens_per_step(s));
  const double flops = model_flops_per_rank(report) * s.world_size;
  j["communication"] = nullptr;
  if (s.world_size > 1) {
    const MeanCommunication measured = mean_communication(report.own);
    j["communication"] = {{"predicted_transfer_seconds", predicted_transfer(p)},
                          {"measured_transfer_seconds", nullptr},
                          {"measured_waiting_seconds", nullptr}};
    if (on_cpus(s)) {
      j["communication"]["measured_transfer_seconds"] = measured.transfer_seconds;
      j["communication"]["measured_waiting_seconds"] = measured.waiting_seconds;
    }
  }
  j["busy_cores"] = report.cores_of_others;
  j["tokens_per_second"] = {{"predicted", tokens / predicted_step(p)}, {"measured", tokens / step}};
  j["tflops"] = {{"predicted", flops / predicted_step(p) / 1e12}, {"measured", flops / step / 1e12}};
  j["profile"] = nullptr;
  if (report.profile) j["profile"] = to_json(*report.profile);
  return j;
}

Assumed assumed_of(const Planned& planned, const engine::Simulation& prediction) {
  Assumed taken = assumed(*planned.model, planned.strategy, prediction.cluster, prediction.device_capacity);
  taken.config_dtype = planned.config_dtype;
  taken.config_dropouts = planned.config_dropouts;
  return taken;
}

std::string heading(const cli::Command& command, const Planned& planned, const engine::Simulation& prediction,
                    const std::string& data, cpu::InstructionSet instruction_set) {
  std::string out = to_text(command, assumed_of(planned, prediction));
  out += "strategy  " + plan::to_string(planned.strategy) + '\n';
  out += "data      " + data + '\n';
  out += "numerics  ";
  if (on_cpus(planned.strategy))
    out += std::string(cpu::to_string(instruction_set)) + " (" + cpu::matrix_library() + "), ";
  out += whose_bits(planned.strategy) + '\n';
  out += "predicted " + cli::mib(prediction.largest().peak[0]) + " per rank at most, " + predicted_text(prediction) +
         " per step\n";
  return out;
}

std::string to_text(const TrainReport& report) {
  const engine::Simulation& p = *report.prediction;
  const plan::Strategy& s = report.planned->strategy;
  std::string out = "\nmemory and communication, predicted = measured?\n";
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const RankReport& rank = report.ranks[i];
    const engine::ClassResult& c = class_of(p, static_cast<std::int32_t>(i));
    for (std::size_t m = 0; m < rank.peak.size(); ++m) {
      if (m > 0 && c.peak[m] == Bytes{0} && rank.peak[m] == Bytes{0}) continue;
      out += m == 0 ? "  rank " + std::to_string(i) + "  arena peak "
                    : "          " + std::string(to_string(static_cast<Memory>(m))) + " peak ";
      out += std::to_string(c.peak[m].count()) + (c.peak[m] == rank.peak[m] ? " = " : " != ") +
             std::to_string(rank.peak[m].count()) + " bytes (" + cli::mib(rank.peak[m]) + ")\n";
    }
    for (int k = 0; k < kCollectiveCount; ++k) {
      const auto kind = static_cast<Collective>(k);
      const auto& predicted = c.collectives[static_cast<std::size_t>(k)];
      const CollectiveCount& measured = rank.collectives[kind];
      if (predicted.count == 0 && measured.calls == 0) continue;
      const bool equal = predicted.count == measured.calls && predicted.bytes == measured.bytes;
      out += "          " + std::string(to_string(kind)) + ": " + std::to_string(predicted.count) + " calls, " +
             std::to_string(predicted.bytes.count()) + " bytes " + (equal ? "= " : "!= ") +
             std::to_string(measured.calls) + " calls, " + std::to_string(measured.bytes.count()) + " bytes\n";
    }
    if (rank.collectives.wire.count() > 0)
      out += "          over the wire: " + std::to_string(rank.collectives.wire.count()) + " bytes sent\n";
    out += "          optimizer state " + std::to_string(rank.optimizer_state.count()) + " bytes\n";
  }
  out += moments_text(report);
  const double step = measured_step(report.own);
  const double tokens = static_cast<double>(tokens_per_step(s));
  const double flops = model_flops_per_rank(report) * s.world_size;
  if (on_cpus(s))
    out += "resident  predicted " + cli::mib(predicted_resident(report)) + ", measured " +
           cli::mib(measured_resident(report)) + " (all ranks, above the libraries)\n";
  if (report.own.device)
    out += "in use    predicted " + cli::mib(predicted_in_use(report)) + ", measured " +
           cli::mib(report.own.device->bytes) + " of the GPU" +
           (report.device_overhead > Bytes{0} ? "" : "; the prediction lacks context and libraries (calibrate says)") +
           '\n';
  out += "step      predicted " + predicted_text(p) + ", measured " + cli::duration(Seconds{step}) + ": " +
         show_number(tokens / step) + " tokens/s, " + show_number(flops / step / 1e12, 3) + " TFLOPS\n";
  if (s.world_size > 1) {
    const MeanCommunication measured = mean_communication(report.own);
    out += "collectives of a step, rank 0: transfer predicted " + cli::duration(Seconds{predicted_transfer(p)});
    if (on_cpus(s))
      out += ", measured " + cli::duration(Seconds{measured.transfer_seconds}) + ", waiting beside that " +
             cli::duration(Seconds{measured.waiting_seconds});
    out += '\n';
  }
  out += "plan      " + p.plan_hash + '\n';
  out += "state     sha256 " + report.own.state_sha256 + ", computed " +
         (on_cpus(s) ? std::string("with ") + cpu::to_string(report.instruction_set) : std::string("on a GPU")) + '\n';
  if (!report.weights.saved.empty())
    out += "saved     " + report.weights.saved + ", " +
           (report.weights.saved_files > 1 ? std::to_string(report.weights.saved_files) + " files, " : "") +
           std::to_string(report.weights.saved_bytes.count()) + " bytes\n";
  if (report.profile) out += "\n" + to_text(*report.profile);
  return out;
}

}  // namespace shard::commands
