// Figures of one training step.
#include "executor/commands/step_metrics.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "executor/commands/step_report.h"
#include "sim/cost/rates.h"

namespace shard::commands {
namespace {

using Json = nlohmann::ordered_json;

/// Null where the system does not tell.
Json resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t whole = 0;
  std::int64_t resident = 0;
  if (!(statm >> whole >> resident)) return nullptr;
  return resident * ::sysconf(_SC_PAGESIZE);
}

/// By key of json().
constexpr std::array<std::pair<const char*, std::string_view>, 9> kTags{{{"loss", "train/loss"},
                                                                         {"gradient_norm", "train/grad_norm"},
                                                                         {"learning_rate", "train/learning_rate"},
                                                                         {"loss_scale", "train/loss_scale"},
                                                                         {"step_seconds", "train/step_seconds"},
                                                                         {"tokens_per_second", "train/tokens_per_second"},
                                                                         {"mfu", "train/mfu"},
                                                                         {"validation_loss", "eval/loss"},
                                                                         {"resident_bytes", "memory/resident_bytes"}}};

}  // namespace

StepMetrics::StepMetrics(const Prepared& p, const cluster::Cluster& machine)
    : tokens_(static_cast<double>(p.planned.strategy.global_batch * p.planned.strategy.sequence)),
      flops_(step_flops(p.planned, p.prediction, 0).model.count()),
      peak_(cost::rates(machine, cluster::layout(machine, p.planned.strategy.world_size), p.plans.of_rank(0).target)
                .matrix.count()) {}

Json StepMetrics::json(const train::StepResult& step) const {
  Json j = step_json(step);
  j["tokens_per_second"] = tokens_ / step.seconds;
  j["mfu"] = peak_ > 0 ? Json(flops_ / step.seconds / peak_) : Json(nullptr);
  j["resident_bytes"] = resident_bytes();
  return j;
}

std::vector<Scalar> StepMetrics::scalars(const Json& step) {
  std::vector<Scalar> scalars;
  for (const auto& [key, tag] : kTags)
    if (const auto it = step.find(key); it != step.end() && it->is_number())
      scalars.push_back({.tag = tag, .value = it->get<double>()});
  return scalars;
}

}  // namespace shard::commands
