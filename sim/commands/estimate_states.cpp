// The estimators count model states alone; the plan beside them is of one sequence a rank, with all that it holds.
#include "sim/commands/estimate_states.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "sim/cli/sizes.h"
#include "sim/cli/table.h"
#include "sim/cluster/read_cluster.h"
#include "sim/commands/printing.h"
#include "sim/compile/compile.h"
#include "sim/engine/simulate.h"
#include "sim/like/deepspeed_estimate.h"
#include "sim/model/family.h"
#include "sim/model/graph_limits.h"
#include "sim/model/read_model.h"
#include "sim/strategy/checks.h"
#include "sim/strategy/fields.h"

namespace shard::commands {
namespace {

/// Of a plan of ours: of the rank that takes most, and of one host.
struct OwnAnswer {
  Bytes gpu;
  Bytes host;
};

struct EstimatedRow {
  like::Estimate theirs;
  std::optional<OwnAnswer> ours;  ///< nothing where the model cannot be planned
};

plan::Strategy strategy_of(const like::EstimateQuery& q, const model::Model& model) {
  plan::Strategy s;
  s.world_size = q.gpus_per_node * q.nodes;
  s.stage = q.stage;
  s.precision = plan::Precision::bf16;
  s.device = plan::Device::cuda;
  s.micro_batch = 1;
  s.global_batch = s.world_size;
  s.sequence = model.max_sequence > 0 ? std::min(model.max_sequence, plan::kDefaultSequence) : plan::kDefaultSequence;
  s.placement.policy = plan::PlacementPolicy::fixed;
  if (q.offload_optimizer) s.placement.optimizer = plan::kOnHost;
  if (q.offload_parameters) s.placement.parameters = plan::kOnHost;
  return s;
}

Result<OwnAnswer> own_answer(const std::shared_ptr<const model::Model>& model, const like::EstimateQuery& q,
                             cluster::Cluster cluster) {
  const plan::Strategy s = strategy_of(q, *model);
  if (Result<void> ok = model::check_batch(*model, s.micro_batch, s.sequence); !ok) return ok.error();
  if (Result<void> ok = plan::check(*model, s); !ok) return ok.error();
  cluster.devices_per_host = q.gpus_per_node;
  cluster.hosts = q.nodes;
  cluster.device_memory = std::nullopt;
  cluster.host_memory = std::nullopt;
  const Result<plan::PlanSet> plans = plan::compile(model, s, plan::MicroSteps::folded);
  if (!plans) return plans.error();
  const Result<engine::Simulation> answer = engine::simulate(*plans, cluster, {.series = false, .holders = 0});
  if (!answer) return answer.error();
  return OwnAnswer{.gpu = answer->largest().peak[static_cast<std::size_t>(Memory::device)], .host = answer->host_peak};
}

Result<std::vector<EstimatedRow>> rows_of(const like::EstimatedModel& known, model::Model model,
                                          const EstimateFlags& flags) {
  std::shared_ptr<const model::Model> planned;
  if (!model.not_simulated) planned = std::make_shared<const model::Model>(model::simulated_part(std::move(model)));
  const Result<cluster::Cluster> cluster = cluster::read_cluster("h100-80gb-x8");
  if (!cluster) return cluster.error();
  std::vector<EstimatedRow> rows;
  for (const like::Estimate& theirs :
       like::estimates(known, static_cast<std::int32_t>(flags.gpus_per_node), static_cast<std::int32_t>(flags.nodes))) {
    EstimatedRow row{.theirs = theirs, .ours = std::nullopt};
    if (planned) {
      const Result<OwnAnswer> ours = own_answer(planned, theirs.query, *cluster);
      if (!ours) return ours.error();
      row.ours = *ours;
    }
    rows.push_back(row);
  }
  return rows;
}

/// Theirs under DeepSpeed's own names.
nlohmann::ordered_json to_json(const EstimatedRow& row) {
  const like::EstimateQuery& q = row.theirs.query;
  nlohmann::ordered_json j = {{"fn", q.stage == 2 ? "zero2" : "zero3"}, {"cpu_offload", q.offload_optimizer}};
  if (q.stage == 3) j["cpu_offload_params"] = q.offload_parameters, j["zero_init"] = q.zero_init;
  j["cpu_mem"] = row.theirs.host.count();
  j["gpu_mem"] = row.theirs.gpu.count();
  j["own_gpu_bytes"] = row.ours ? nlohmann::ordered_json(row.ours->gpu.count()) : nullptr;
  j["own_host_bytes"] = row.ours ? nlohmann::ordered_json(row.ours->host.count()) : nullptr;
  return j;
}

cli::Table table_of(const std::vector<EstimatedRow>& rows) {
  cli::Table table{.columns = {{.key = "stage", .title = "stage"},
                               {.key = "offload", .title = "offload", .align = cli::Align::left},
                               {.key = "zero_init", .title = "zero_init", .align = cli::Align::left},
                               {.key = "gpu_bytes", .title = "a GPU"},
                               {.key = "host_bytes", .title = "a host"},
                               {.key = "own_gpu_bytes", .title = "ours: a GPU"},
                               {.key = "own_host_bytes", .title = "a host"}},
                   .rows = {}};
  for (const EstimatedRow& row : rows) {
    const like::EstimateQuery& q = row.theirs.query;
    const auto own = [&](Bytes OwnAnswer::*part) { return row.ours ? cli::cell((*row.ours).*part) : cli::Cell{}; };
    table.rows.push_back({static_cast<std::int64_t>(q.stage),
                          q.offload_parameters  ? "parameters, optimizer"
                          : q.offload_optimizer ? "optimizer"
                                                : "none",
                          q.stage < 3   ? ""
                          : q.zero_init ? "yes"
                                        : "no",
                          cli::cell(row.theirs.gpu), cli::cell(row.theirs.host), own(&OwnAnswer::gpu),
                          own(&OwnAnswer::host)});
  }
  return table;
}

}  // namespace

int estimate_states(const std::string& path, const EstimateFlags& flags, cli::Format format) {
  if (flags.of != "deepspeed")
    return failed({.code = Errc::usage,
                   .what = "'" + flags.of + "' has no estimator that is known here",
                   .where = "--estimate",
                   .help = "--estimate deepspeed"});
  Result<model::ConfiguredModel> read = model::read_configured_model(path);
  if (!read) return failed(read.error());
  print_notes(read->model.notes);
  const like::EstimatedModel known = like::estimated_model(read->model.parameters);
  const std::string name = read->model.name;
  const Result<std::vector<EstimatedRow>> rows = rows_of(known, std::move(read->model), flags);
  if (!rows) return failed(rows.error());
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("inspect");
    j["file"] = path;
    j["model"] = name;
    j["estimate"] = {{"of", flags.of},
                     {"total_params", known.parameters.count()},
                     {"largest_layer_params", known.largest_layer.count()},
                     {"num_gpus_per_node", flags.gpus_per_node},
                     {"num_nodes", flags.nodes},
                     {"rows", nlohmann::ordered_json::array()}};
    for (const EstimatedRow& row : *rows) j["estimate"]["rows"].push_back(to_json(row));
    std::cout << cli::json_text(j);
    return 0;
  }
  std::string text = name + ", " + cli::elements_and_mib(known.parameters, 2) + " in 16 bits, largest layer " +
                     std::to_string(known.largest_layer.count()) + " parameters; " + std::to_string(flags.nodes) +
                     (flags.nodes == 1 ? " host of " : " hosts of ") + std::to_string(flags.gpus_per_node) + " GPUs\n";
  cli::print(std::cout, text + "\n");
  std::cout << cli::render(table_of(*rows), format, cli::style_of(1));
  cli::print(std::cout,
             "\nDeepSpeed's estimators count model states alone, with half as much again in host memory. Ours is the "
             "peak of\nShardscope's own executor in bf16 with one sequence a rank, activations and buffers "
             "included.\n");
  return 0;
}

}  // namespace shard::commands
